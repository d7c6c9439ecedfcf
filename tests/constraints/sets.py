"""Random constraint sets: every kind of row, between links on one branch, on two, and the world."""

import numpy as np

import kinegrad as kg
from kinegrad.constraints import Contact, Coupling, Distance, Given, Loop


def random_constraints(model, seed, *, loops=("weld", "hinge", "xYZ", "yXZ", "pin", "X", "Y", "Z")):
    """Contacts along axes and oblique directions, loops of all kinds, rods, a coupling and a given joint."""
    rng = np.random.default_rng([seed, 31])
    solid = [i for i in range(model.n) if not any(f <= i < f + 5 for f, _, _ in model.layout.balls)]

    def two():
        A, B = rng.choice([*solid, -1], 2, replace=False)
        if A < 0:
            A, B = B, A
        return model.link_names[A], (None if B < 0 else model.link_names[B])

    def placement():
        return kg.rotate(rng.normal(size=3), rng.uniform(-2, 2)) @ kg.translate(*rng.normal(size=3) * 0.3)

    found = []
    for directions in ("xyz", "zx", rng.normal(size=(2, 3))):
        link, other = two()
        found.append(Contact(link, rng.normal(size=3), directions, other, rng.normal(size=3)))
    for directions in loops:
        link, other = two()
        found.append(Loop(link, placement(), other, placement(), directions))
    for _ in range(2):
        link, other = two()
        found.append(Distance(link, rng.normal(size=3), other, rng.normal(size=3), 1.3))
    joints = [model.joint_names[i] for i in range(model.n) if not any(f <= i < f + 6 for f, _, _ in model.layout.balls)]
    if len(joints) > 1:
        found.append(Coupling(joints[0], joints[-1], 0.7, 0.2))
    if joints:
        found.append(Given(joints[0], 0.4))
    return found
