"""Derivatives of poses, points and energies with respect to design parameters: kernels of dual numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.design import coordinates, elements
from kinegrad.design.parameters import (
    Design,
    frame_slopes,
    kernel_slopes,
)
from kinegrad.design.running import followed, model_of, parameters_last, quantity
from kinegrad.energy import ENERGIES
from kinegrad.kinematics import POINTS, TRANSFORMS, forward_kinematics, points, state_of
from kinegrad.results import Result

__all__ = [
    "EnergyDesignDerivatives",
    "PointMotionDesignDerivatives",
    "energy_design_derivatives",
    "point_motion_design_derivatives",
    "transform_design_derivatives",
]

Array = NDArray[np.float64]
_TRANSFORMS = replace(TRANSFORMS, function=kernels.transforms)
_POINTS = replace(POINTS, function=kernels.points)
_ENERGIES = replace(ENERGIES, function=kernels.energies)


@dataclass(frozen=True, eq=False)
class PointMotionDesignDerivatives(Result):
    """Derivatives of the motion of points fixed in links with respect to the parameters.

    Shapes (..., 3, p) for one point, (..., k, 3, p) for k; those of velocity and acceleration are None unless v and a
    were given.
    """

    dposition_dp: Array
    dvelocity_dp: Array | None = None
    dacceleration_dp: Array | None = None


@dataclass(frozen=True, eq=False)
class EnergyDesignDerivatives(Result):
    """Derivatives of kinetic and potential energy with respect to the parameters, shape (..., p) each, J per unit."""

    dkinetic_dp: Array
    dpotential_dp: Array


def transform_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂T/∂p of all link frames, shape (..., n, 4, 4, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> transform_design_derivatives(design, [0, np.pi / 2])[1, :2, 3, 0].round(12)
    array([0., 1.])
    """
    if model_of(design).elements:
        design = elements.without_elements(design)
    if design.model.coordinates:
        q = engine.Expansion(design.model, {"q": q}).q
        design = coordinates.primitive_design(design)
    return quantity(design, _TRANSFORMS, (q,), threads)


def point_motion_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> PointMotionDesignDerivatives:
    """∂(position, velocity, acceleration)/∂p of points fixed in links, at fixed q, v and a.

    Parameters
    ----------
    design : Design
    q, v, a, link, point, threads
        As in :func:`point_motion`.

    Returns
    -------
    PointMotionDesignDerivatives
        ``dposition_dp`` and, if v and a were given, ``dvelocity_dp`` and ``dacceleration_dp``: shape (..., 3, p) for
        one point, (..., k, 3, p) for k points.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> point_motion_design_derivatives(design, [0, 0], [1, 0], link="forearm").dvelocity_dp[:, 0]
    array([0., 1., 0.])
    """
    model_of(design)
    design = elements.without_elements(design)
    model, state, whole = design.model, state_of(q, v, a), design
    if model.coordinates:
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        state, design = tuple(at.arguments(engine.QVA)), coordinates.primitive_design(design)
        model = design.model
    named = points(model, link, point)
    batch, pairs, _ = followed(design, _POINTS, state, (None, None, None), None)
    slopes = kernel_slopes(design)[0]
    _, found = engine.run_directions(_POINTS, batch, slopes, pairs, named["options"], threads, named["points"])
    found = found[: 1 + (v is not None) + (a is not None)]
    batch.results = list(found)
    for name, x in named["unseen"].items():
        batch.check_results_of(name, x)
    batch.check_results()
    core = _POINTS.results[0].core(model, named["points"])
    moved = [parameters_last(batch, x, core) for x in found]
    if frame_slopes(design):
        _add_frames(whole, moved, q, v, a, link, point, threads)
    return PointMotionDesignDerivatives(*moved)


def _add_frames(
    design: Design, moved: list[Array], q: Any, v: Any, a: Any, link: Any, point: Any, threads: int | None
) -> None:
    """Add what points in frames move because their frames move in their links: x = p + R s, by s alone."""
    names = [link] if isinstance(link, str) else link
    places = np.broadcast_to(engine.real("point", point), (len(names), 3))
    links = forward_kinematics(design.model, q, v, a, threads=threads)
    for k, name in enumerate(names):
        slope = frame_slopes(design).get(name)
        if slope is None:
            continue
        i, _ = design.model.locate(name)
        ds = links.transform[..., i, :3, :3] @ (slope[:, :3, :3] @ places[k] + slope[:, :3, 3]).T  # (..., 3, p)
        parts = [ds]
        if links.angular_velocity is not None:
            w = links.angular_velocity[..., i, :, None]
            parts.append(np.cross(w, ds, axis=-2))
        if links.angular_acceleration is not None:
            dw = links.angular_acceleration[..., i, :, None]
            parts.append(np.cross(dw, ds, axis=-2) + np.cross(w, parts[1], axis=-2))
        for total, part in zip(moved, parts, strict=True):
            (total if isinstance(link, str) else total[..., k, :, :])[...] += part


def energy_design_derivatives(
    design: Design, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> EnergyDesignDerivatives:
    """∂(kinetic, potential energy)/∂p at fixed state.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["forearm.mass"])
    >>> energy_design_derivatives(design, [0, 0], [1, 0]).dkinetic_dp.round(3)
    array([0.18])
    """
    if model_of(design).elements:
        plain = energy_design_derivatives(elements.without_elements(design), q, v, threads=threads)
        dpotential = plain.dpotential_dp + elements.changes(design, q, v, threads=threads).denergy_dp
        engine.check_sums(dpotential)
        return EnergyDesignDerivatives(plain.dkinetic_dp, dpotential)
    if design.model.coordinates:
        at = engine.Expansion(design.model, {"q": q, "v": v})
        q, v, design = at.q, at.v, coordinates.primitive_design(design)
    sums = quantity(design, _ENERGIES, (q, v), threads, keep=2)
    return EnergyDesignDerivatives(sums[..., 0, :].copy(), sums[..., 1, :].copy())
