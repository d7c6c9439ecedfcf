"""What the tests of simulate share: designs, a feedback, an objective."""

import numpy as np

from kinegrad import Design, Model, samples
from kinegrad.simulate import EndPosition, Feedback, KineticEnergy, Objective, TorqueSquared, Tracking

LENGTHS_AND_MASSES = {
    "double_pendulum": {
        "L1": {"P.com.z": -1.0, "hinge2.placement.z": -1.0},
        "L2": {"Q.com.z": -1.0},
        "MP": "P.mass",
        "MQ": "Q.mass",
    },
    "spatial_chain": {
        "L1": {"bar1.com.z": -0.5, "hinge2.placement.z": -1.0},
        "I": "bar2.inertia.xx",
        "rotor": "hinge1.armature",
        "g": "gravity.z",
        "spring": "hinge2.stiffness",
    },
}


def pendulum() -> Design:
    """[anderson2002] section 5: L1, L2, MP, MQ."""
    return Design(samples.double_pendulum(), LENGTHS_AND_MASSES["double_pendulum"])


def chain() -> Design:
    """Two bars, with parameters of every kind."""
    model = samples.spatial_chain(2).replace(stiffness=[0.0, 2.0], armature=[0.1, 0.0])
    return Design(model, LENGTHS_AND_MASSES["spatial_chain"])


def feedback(n: int = 2) -> Feedback:
    """A nonlinear spring and a damper that changes with time; of any batch of states."""
    eye = np.eye(n)
    return Feedback(
        lambda t, q, v: -3 * q - q**3 - np.cos(t) * v,
        lambda t, q, v: -(3 + 3 * q[..., None] ** 2) * eye,
        lambda t, q, v: -np.cos(t) * eye,
    )


def everything(model: Model) -> Objective:
    """All built-in terms, both in the integral and at the end."""
    tip = EndPosition(model.link_names[-1], [0.3, 0.2, -1.0], [0.0, 0.1, -1.0])
    terms = [KineticEnergy(), TorqueSquared(0.1), Tracking(lambda t: np.stack([np.sin(t), t**2], axis=-1), [1.0, 2.0])]
    return Objective(end=[*terms, tip], integral=[*terms, tip])
