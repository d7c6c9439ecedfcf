"""Coordinates that bring markers nearest to measured ones, by SciPy's bounded least squares, one frame at a time.

Distances by the public functions of kinematics, steps in the tangent space at the guess: nothing is shared with
``_kernels/marker_cost.py`` but the kinematics itself.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

import kinegrad as kg


def cost(model: kg.Model, names: list[str], q: np.ndarray, measured: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """½ Σ w |x − m|² of frames, markers that are NaN left out."""
    x = kg.point_motion(model, q, link=names).position
    return 0.5 * np.nansum(weights[:, None] * (x - measured) ** 2, axis=(-2, -1))


def nearest(
    model: kg.Model, names: list[str], q0: np.ndarray, measured: np.ndarray, weights: np.ndarray,
    lower: np.ndarray, upper: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The minimum near q0 of one frame, within limits of the change of each speed from q0, (nv,) each.

    least_squares compares costs, which tell positions to the root of rounding only; from there on, Newton's steps of
    what no limit holds, with differences of the gradient.
    """
    seen = ~np.isnan(measured[:, 0])
    root = np.sqrt(weights[seen])[:, None]
    links = [name for name, here in zip(names, seen, strict=True) if here]
    loose = np.flatnonzero(lower < upper)

    def step(x: np.ndarray, which: np.ndarray) -> np.ndarray:
        whole = np.zeros(model.nv)
        whole[which] = x
        return whole

    def away(x: np.ndarray) -> np.ndarray:
        position = kg.point_motion(model, kg.integrate(model, q0, step(x, loose)), link=links).position
        return (root * (position - measured[seen])).ravel()

    def gradient(q: np.ndarray) -> np.ndarray:
        r = weights[seen, None] * (kg.point_motion(model, q, link=links).position - measured[seen])
        return np.einsum("kij,ki->j", kg.jacobian(model, q, link=links).linear, r)

    options = {"method": "dogbox", "x_scale": "jac", "ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
    found = least_squares(away, np.zeros(len(loose)), jac="3-point", bounds=(lower[loose], upper[loose]), **options)
    free, q, h = loose[found.active_mask == 0], kg.integrate(model, q0, step(found.x, loose)), 1e-5
    for _ in range(5):
        units = [h * np.eye(model.nv)[k] for k in free]
        pairs = ((kg.integrate(model, q, u), kg.integrate(model, q, -u)) for u in units)
        H = np.stack([(gradient(up) - gradient(down))[free] / (2 * h) for up, down in pairs])
        q = kg.integrate(model, q, step(-np.linalg.solve(H, gradient(q)[free]), free))
    return q
