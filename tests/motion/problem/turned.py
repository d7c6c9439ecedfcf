"""The same model in a world with other axes."""

import numpy as np


def turned(model, R):
    """All that hangs on the world, and gravity, turned by R."""
    placement = model.placement.copy()
    T = np.eye(4)
    T[:3, :3] = R
    for i in np.flatnonzero(np.asarray(model.parents) < 0):
        placement[i] = T @ placement[i]
    return model.replace(placement=placement, gravity=R @ model.gravity)
