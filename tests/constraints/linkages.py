"""Planar linkages with answers in closed form: postures of a four-bar by two circles, and a parallelogram."""

import numpy as np

import kinegrad as kg

GROUND, CRANK, COUPLER, ROCKER = 0.5, 0.2, 0.45, 0.4


def four_bar_postures(angle, side=1.0):
    """Coordinates of :func:`samples.four_bar` by crank angles, (...), on the branch of q = 0 or, with −1, the other.

    The pin B is where a circle about the crank's end A meets one about the rocker's pivot D.
    """

    def angles(theta, side):
        A = CRANK * np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        to_pivot = np.array([GROUND, 0.0]) - A
        far = np.linalg.norm(to_pivot, axis=-1)
        along = (COUPLER**2 - ROCKER**2 + far**2) / (2 * far)
        across = side * np.sqrt(COUPLER**2 - along**2)
        unit = to_pivot / far[..., None]
        arm = along[..., None] * unit + across[..., None] * np.stack([-unit[..., 1], unit[..., 0]], axis=-1)
        B = A + arm
        return np.stack([np.arctan2(arm[..., 1], arm[..., 0]) - theta, np.arctan2(B[..., 1], B[..., 0] - GROUND)], -1)

    angle = np.asarray(angle, dtype=float)
    both = angles(angle, side) - angles(np.zeros(()), 1.0)
    return np.concatenate([angle[..., None], both], axis=-1)


def turned(q, expected):
    """The largest difference of two sets of angles, whole turns apart or not."""
    return np.abs(np.angle(np.exp(1j * (q - expected)))).max()


def parallelogram(crank=0.2, ground=0.5):
    """Crank and rocker of one length, coupler and ground of another; at q = 0 the crank points up."""
    builder = kg.ModelBuilder("parallelogram")
    rod = kg.Inertia.rod
    builder.add("crank", None, kg.revolute("-y"), link="crank", inertia=rod(0.4, [0, 0, 0], [0, 0, crank]))
    builder.add(
        "coupler", "crank", kg.revolute("-y"), link="coupler", placement=[0, 0, crank],
        inertia=rod(1.0, [0, 0, 0], [ground, 0, 0]),
    )  # fmt: skip
    builder.add(
        "rocker", None, kg.revolute("-y"), link="rocker", placement=[ground, 0, 0],
        inertia=rod(0.4, [0, 0, 0], [0, 0, crank]),
    )  # fmt: skip
    model = builder.build()
    loop = kg.Loop("coupler", [ground, 0, 0], "rocker", [0, 0, crank], directions="xz", name="pin")
    return model, kg.ConstraintSet(model, [loop])
