"""Energies, centre of mass and momentum of the whole mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import energy as kernels
from kinegrad.errors import ModelError
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["Momentum", "center_of_mass", "kinetic_energy", "momentum", "potential_energy"]

Array = NDArray[np.float64]
ENERGIES = engine.Kernel(
    kernels.energies,
    engine.QV,
    (engine.Result("sums", (kernels.COLUMNS,)),),
    kernels.N,
    with_elements=engine.indifferent,
)


@dataclass(frozen=True, eq=False)
class Momentum(Result):
    """Momentum of the whole mechanism, world frame.

    Attributes
    ----------
    linear : ndarray, shape (..., 3)
        kg·m/s.
    angular : ndarray, shape (..., 3)
        About the centre of mass, kg·m²/s.
    """

    linear: Array
    angular: Array


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike, *, threads: int | None = None) -> Array:
    """½ vᵀ M(q) v, armature included.

    Parameters
    ----------
    model : Model
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (...)
        J.

    Examples
    --------
    >>> from kinegrad import samples
    >>> float(kinetic_energy(samples.two_link(), [0, 0], [1, 0]).round(3))
    0.2
    """
    return _sums(model, threads, slice(0, 1), (q, v))[..., 0]


def potential_energy(model: Model, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Of gravity, zero with the mass at the world's origin, plus that of joint springs and force elements.

    Parameters as in :func:`kinetic_energy`.  Returns J, shape (...).

    Examples
    --------
    >>> from kinegrad import samples
    >>> float(potential_energy(samples.two_link(gravity=(0, -10, 0)), [np.pi / 2, 0]).round(3))
    4.0
    """
    energy = _sums(model, threads, slice(1, 2), (q,))[..., 0]
    if model.elements:
        energy = np.asarray(energy + engine.element_forces(model, (q,), threads).energy.sum(axis=-1))
        engine.check_sums(energy)
    return energy


def center_of_mass(model: Model, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Centre of mass of all links, world frame, m, shape (..., 3).

    Examples
    --------
    >>> from kinegrad import samples
    >>> center_of_mass(samples.two_link(), [0, 0]).round(3)
    array([0.4, 0. , 0. ])
    """
    return _sums(check_mass(model), threads, slice(2, 5), (q,))


def momentum(model: Model, q: ArrayLike, v: ArrayLike, *, threads: int | None = None) -> Momentum:
    """Linear momentum, and angular momentum about the centre of mass.

    Parameters as in :func:`kinetic_energy`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> momentum(samples.two_link(), [0, 0], [1, 0]).linear.round(3)
    array([0. , 0.4, 0. ])
    """
    sums = _sums(check_mass(model), threads, slice(5, 11), (q, v))
    return Momentum(sums[..., :3].copy(), sums[..., 3:].copy())


def _sums(model: Model, threads: int | None, columns: slice, state: tuple[Any, ...]) -> Array:
    """Some of the columns of ``_kernels/energy.py``, shape (..., columns), in memory of their own."""
    (sums,) = engine.evaluate(ENERGIES, model, state, None, None, threads, columns)
    return sums


def check_mass(model: Model) -> Model:
    """The model, if it has mass."""
    engine.check_model(model)
    if not model.total_mass > 0:
        raise ModelError(f"model {model.name!r} has no mass; expected at least one link with mass")
    return model
