"""Chains, designs and states of them, for tests of [anderson2002]."""

import numpy as np

from kinegrad import (
    Design,
    Inertia,
    ModelBuilder,
    revolute,
)
from kinegrad.papers.anderson2002.chain import chain_of
from kinegrad.papers.anderson2002.methods import METHODS


def random_chain(n, seed=0):
    """A design of bodies hinged about any axes, turned against each other, mass centres and inertias as they come."""
    random = np.random.default_rng([seed, n])
    builder, parent = ModelBuilder("random_chain", gravity=5 * random.normal(size=3)), None
    for k in range(n):
        turns = np.linalg.qr(random.normal(size=(2, 3, 3)))[0]
        turns *= np.sign(np.linalg.det(turns))[:, None, None]
        placement = np.eye(4)
        placement[:3, :3], placement[:3, 3] = turns[0], random.normal(size=3)
        moments = turns[1] @ np.diag(random.uniform(0.5, 1, size=3)) @ turns[1].T
        axis = random.normal(size=3)
        inertia = Inertia(random.uniform(0.5, 2), random.normal(size=3), moments)
        hinge = revolute(axis / np.linalg.norm(axis))
        parent = builder.add(f"joint{k}", parent, hinge, link=f"link{k}", placement=placement, inertia=inertia)
    last = n - 1
    shape = {"link0.com.x": 0.7, "link0.com.z": -0.4, "link0.inertia.xy": 0.3, f"joint{last}.placement.y": 1.2}
    return Design(builder.build(), {"shape": shape, "mass": f"link{n // 2}.mass", "place": "joint0.placement.z"})


def random_state(design, seed=0):
    """q, v (n,) and their slopes (n, p)."""
    random = np.random.default_rng([seed, design.model.n, 7])
    return *random.normal(size=(2, design.model.n)), *random.normal(size=(2, design.model.n, design.p))


def evaluated(method, design, q, v, dq, dv):
    slopes = (np.ascontiguousarray(x.T) for x in (dq, dv))
    a, da = METHODS[method](chain_of(design), q, v, *slopes)
    return a, da.T


def relative(x, y):
    return np.abs(x - y).max() / np.abs(y).max()
