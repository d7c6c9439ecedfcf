"""Models whose constants are stepped into the complex plane, for the oracle; knows nothing of kinegrad's names."""

from dataclasses import replace

import numpy as np

import kinegrad as kg
from kinegrad import DH, Design, Inertia, Model
from tests.conftest import parts, random_loads, random_state
from tests.reference import oracle
from tests.test_forward_dynamics import conditioned

# A dual number's slope is rounded like its value, to some 1e-16 of the terms that make it up.  By the largest entry of
# all columns, 2e-15 is the worst seen of torques, 2e-14 of accelerations; single columns may be far smaller.
CLOSE = 1e-11
h = oracle.STEP
XYZ = "xyz"
MOMENTS = ("xx", "yy", "zz", "xy", "xz", "yz")
PER_JOINT = ("stiffness", "rest", "damping", "armature")
ROW = ("theta", "d", "a", "alpha")


def turn(axis, angle):
    """Rotation by a complex angle as small as h: cos is 1."""
    T = np.eye(4, dtype=complex)
    T[:3, :3] += oracle.skew(np.eye(3)[axis]) * angle
    return T


def shift(axis, by):
    T = np.eye(4, dtype=complex)
    T[axis, 3] += by
    return T


def stepped(model, convention="distal", **steps):
    """The model with each named constant moved by i·h times its coefficient; knows nothing of kinegrad's names."""
    fields = {}

    def field(what):
        return fields.setdefault(what, np.array(getattr(model, what), dtype=complex))

    for name, coefficient in steps.items():
        by = 1j * h * coefficient
        if name.startswith("gravity."):
            field("gravity")[XYZ.index(name[-1])] += by
            continue
        owner, quantity = split(model, name)
        head, _, tail = quantity.partition(".")
        i = (model.link_names if head in ("mass", "com", "inertia") else model.joint_names).index(owner)
        if head == "inertia":
            j, k = XYZ.index(tail[0]), XYZ.index(tail[1])
            field(head)[i, j, k] += by
            if j != k:
                field(head)[i, k, j] += by
        elif head == "com":
            field(head)[i, XYZ.index(tail)] += by
        elif head in ("placement", "tip"):
            field(head)[i, XYZ.index(tail), 3] += by
        elif head == "pitch":
            joints = fields.setdefault("joints", list(model.joints))
            joints[i] = replace(joints[i])
            object.__setattr__(joints[i], "pitch", joints[i].pitch + by)
        elif head in ROW:
            # Rz, Tz commute, and Rx, Tx: whatever the row, a step of one of its numbers multiplies P or F
            step = {"theta": turn(2, by), "d": shift(2, by), "a": shift(0, by), "alpha": turn(0, by)}[head]
            if head in ("theta", "d"):
                field("tip")[i] = step @ field("tip")[i]
            else:
                what = "tip" if convention == "distal" else "placement"
                field(what)[i] = field(what)[i] @ step
        else:
            field(head)[i] += by
    return oracle.with_constants(model, **fields)


def split(model, name):
    for owner in sorted({*model.link_names, *model.joint_names}, key=len, reverse=True):
        if name.startswith(owner + "."):
            return owner, name[len(owner) + 1 :]
    raise AssertionError(name)


def random_dh(n, seed, convention):
    """A tree from a table whose first row has neither a nor alpha, as the first row of Craig's tables."""
    rng = np.random.default_rng([seed, 5])
    variables = ("theta", "-theta", "d", "-d")
    rows = [DH(*rng.normal(size=4), variable=str(rng.choice(variables))) for _ in range(n)]
    rows[0] = DH(rows[0].theta, rows[0].d)
    rows[-1] = DH(*rng.normal(size=4), pitch=0.1)
    inertias = [Inertia.box(1 + rng.random(), 0.1 + rng.random(3), rng.normal(size=3)) for _ in range(n)]
    parents = [-1, *(int(rng.integers(i)) for i in range(1, n))]
    return Model.from_dh(rows, parents=parents, convention=convention, inertias=inertias, name=f"{convention}{seed}")


def quantities(model, q, v, a, tau, loads):
    """τ, M, the acceleration by τ, T, both energies, of one state; complex-safe."""
    M = oracle.mass_matrix(model, q)
    found = oracle.regular_lagrangian(model, q, v, a, *loads)
    acceleration = np.linalg.solve(M, tau - (found - M @ a))
    energies = oracle.kinetic_energy(model, q, v), oracle.potential_energy(model, q)
    return found, M, acceleration, oracle.transforms(model, q), *energies


def desired(model, steps, state, loads, convention):
    """Derivatives of the quantities by each parameter, on the last axis."""
    columns = [quantities(stepped(model, convention, **step), *state, loads) for step in steps]
    return [np.stack([np.imag(x) / h for x in column], axis=-1) for column in zip(*columns, strict=True)]


def worst(actual, expected):
    """The largest error of a column, by its largest entry, or by a thousandth of that of all columns.

    Where a parameter changes nothing, such as the place of a mechanism in the world, terms cancel but for rounding.
    """
    assert actual.shape == expected.shape
    error, scale = (np.abs(x).max(axis=tuple(range(actual.ndim - 1))) for x in (actual - expected, expected))
    return (error / np.maximum(scale, max(1e-3 * scale.max(), 1e-300))).max()


def check(model, names, seed=0, convention="distal", parameters=None, loaded=True):
    """All derivatives by the constants, or by `parameters` with their combinations, against complex steps."""
    q, v, a = random_state(model, seed)
    tau = 10 * np.random.default_rng([seed, 3]).normal(size=model.n)
    loads = random_loads(model, seed) if loaded else None
    design = Design(model, parameters or names)
    steps = [{spec: 1.0} if isinstance(spec, str) else spec for spec in design.parameters.values()]
    given = parts(loads) if loaded else (None, None, None)
    dtau, dM, da, dT, dkinetic, dpotential = desired(model, steps, (q, v, a, tau), given, convention)

    assert worst(kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads), dtau) <= CLOSE
    assert worst(kg.mass_matrix_design_derivatives(design, q), dM) <= CLOSE
    assert worst(kg.transform_design_derivatives(design, q), dT) <= CLOSE
    energies = kg.energy_design_derivatives(design, q, v)
    assert worst(energies.dkinetic_dp[None], dkinetic[None]) <= CLOSE
    assert worst(energies.dpotential_dp[None], dpotential[None]) <= CLOSE
    # M⁻¹ enlarges the noise of torques; a(τ) itself is no more exact
    found = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads)
    assert worst(found, da) <= max(CLOSE, 10 * conditioned(kg.mass_matrix(model, q)))
    return found


def all_constants(model):
    """Every constant there is; of the joints' rows none."""
    links = ["mass", *(f"com.{x}" for x in XYZ), *(f"inertia.{xy}" for xy in MOMENTS)]
    joints = [*(f"{what}.{x}" for what in ("placement", "tip") for x in XYZ), *PER_JOINT]
    return [f"{link}.{x}" for link in model.link_names for x in links] + [
        f"{joint}.{x}" for joint in model.joint_names for x in joints
    ]


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


def kinds_of_constants(model, rng, row=False):
    """One constant of every kind, of links and joints at random; a massless link's, if there is one."""
    links, joints = model.link_names, model.joint_names
    quantities = ["mass", *(f"com.{x}" for x in XYZ), *(f"inertia.{xy}" for xy in MOMENTS)]
    names = [f"{rng.choice(links)}.{quantity}" for quantity in quantities]
    massless = [link for link, mass in zip(links, model.mass, strict=True) if mass == 0]
    if massless:
        names += [f"{rng.choice(massless)}.mass", f"{rng.choice(massless)}.inertia.xy"]
    where = [f"{what}.{x}" for what in ("placement", "tip") for x in XYZ]
    names += [f"{rng.choice(joints)}.{what}" for what in PER_JOINT]
    placed = rng.permutation(joints)  # by a row, or otherwise
    names += [f"{rng.choice(placed[: len(joints) // 2] if row else placed)}.{what}" for what in where]
    names += [f"{rng.choice(placed[len(joints) // 2 :])}.{what}" for what in (ROW if row else ())]
    names += [f"{joint}.pitch" for joint, made in zip(joints, model.joints, strict=True) if made.kind == "screw"][:2]
    return list(dict.fromkeys([*names, *(f"gravity.{x}" for x in XYZ)]))
