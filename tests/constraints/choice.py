"""Sets of independent constraints, chosen from random ones: what is compared to rounding has to be well conditioned."""

import numpy as np

import kinegrad as kg
from tests.constraints.sets import random_constraints


def independent_set(model, q, seed, *, most=3, worst=100.0):
    """Up to `most` random constraints whose rows, made unit vectors, have a condition number below `worst` at all q,
    and which leave the model some freedom."""
    rng = np.random.default_rng([seed, 32])
    found = kg.ConstraintSet(model, [])
    for one in rng.permutation(np.array(random_constraints(model, seed), dtype=object)):
        more = kg.ConstraintSet(model, [*found, one])
        if len(found) < most and more.m < model.nv:
            G = more.jacobian(q)
            length = np.sqrt((G * G).sum(axis=-1, keepdims=True))
            if (length > 1e-6).all() and np.linalg.cond(G / length).max() < worst:
                found = more
    return found
