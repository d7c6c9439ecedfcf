"""The mechanisms of [kudruss2019] 4.1 and 4.2, where its text leaves open what they are made of, and the functions of
dynamics that are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinegrad import samples
from kinegrad.constrained.dynamics import constrained_dynamics
from kinegrad.constraints import ConstraintSet, Contact
from kinegrad.dynamics import bias_forces, forward_dynamics, inverse_dynamics, mass_matrix
from kinegrad.model import Model
from kinegrad.papers.kudruss2019.cart import PHI, THETA, Cart, X, Z

__all__ = ["ALGORITHMS", "CARTS", "MODES", "Algorithm", "Mechanism", "carts", "multi_pendulum"]

MODES = {"forward": "FD", "central": "FDC", "tangent": "AD", "structured": "ED"}  # and what the paper calls them
WHEELS = ((-0.15, -0.05), (0.15, -0.05))  # lower edges of the box, m
CARTS = ("minimal coordinates", "with constraints")


@dataclass(frozen=True)
class Algorithm:
    """A function of dynamics: what the paper calls it, and its derivatives in closed form.

    Attributes
    ----------
    name : str
        Of the paper.
    function : callable
        Of kinegrad.
    parts : int
        How many of q, v and a (or τ) it takes.
    closed : str
        The method of :class:`Cart`.
    """

    name: str
    function: Callable[..., Any]
    parts: int
    closed: str


ALGORITHMS = (
    Algorithm("CRBA", mass_matrix, 1, "mass_matrix_along"),
    Algorithm("NEFF", bias_forces, 2, "bias_along"),
    Algorithm("RNEA", inverse_dynamics, 3, "inverse_dynamics_along"),
    Algorithm("ABA", forward_dynamics, 3, "forward_dynamics_along"),
    Algorithm("FDCONT", constrained_dynamics, 3, "constrained_dynamics_along"),
)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism, what holds it, if anything, and its dynamics in closed form, if known."""

    name: str
    model: Model
    constraints: ConstraintSet | None = None
    cart: Cart | None = None

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Those that it has."""
        return ALGORITHMS if self.constraints is not None else ALGORITHMS[:-1]

    def options(self, algorithm: Algorithm) -> dict[str, Any]:
        """What the function takes besides a model and a state."""
        return {"constraints": self.constraints} if algorithm.name == "FDCONT" else {}

    def value(self, algorithm: Algorithm, *state: Any) -> Any:
        """The function itself, on one thread."""
        given = (self.constraints,) if algorithm.name == "FDCONT" else ()
        return algorithm.function(self.model, *given, *state, threads=1)


def carts() -> tuple[Mechanism, Mechanism]:
    """The cart-pendulum in minimal coordinates, and as a free box whose wheels touch the ground.

    >>> [mechanism.model.n for mechanism in carts()]
    [2, 4]
    """
    minimal = samples.cart_pendulum()
    box, _ = samples.cart_pendulum(constrained=True)
    wheels = [
        Contact("cart", [x, 0, z], directions="z", other_point=[0, 0, z], name=name)
        for name, (x, z) in zip(("rear", "front"), WHEELS, strict=True)
    ]
    of_minimal, of_box = _closed(minimal, (X, THETA), ()), _closed(box, (Z, X, PHI, THETA), WHEELS)
    return (
        Mechanism(CARTS[0], minimal, None, of_minimal),
        Mechanism(CARTS[1], box, ConstraintSet(box, wheels), of_box),
    )


def _closed(model: Model, coordinates: tuple[int, ...], wheels: tuple[tuple[float, float], ...]) -> Cart:
    """The constants of a model of the two, read from it."""
    box, rod = model.link_index("cart"), model.link_index("rod")
    centre = float(-model.com[rod, 2])
    return Cart(
        box_mass=float(model.mass[box]),
        box_inertia=float(model.inertia[box, 1, 1]),
        rod_mass=float(model.mass[rod]),
        rod_centre=centre,
        rod_inertia=float(model.inertia[rod, 1, 1] + model.mass[rod] * centre**2),
        gravity=float(-model.gravity[2]),
        coordinates=coordinates,
        wheels=wheels,
    )


def multi_pendulum(n: int = 10) -> Mechanism:
    """Rods hinged end to end about y, and for constrained dynamics the tip of the last one pinned: two rows.

    >>> multi_pendulum().constraints.m
    2
    """
    model = samples.multi_pendulum(n)
    length = float(-2 * model.com[-1, 2])
    tip = Contact(model.link_names[-1], [0, 0, -length], directions="xz", other_point=[1, 0, -0.5 * n], name="pin")
    return Mechanism("multi-pendulum", model, ConstraintSet(model, [tip]))


def uniform(seed: list[int], *shape: int) -> Any:
    """Numbers in [−π, π], the same at every run."""
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, shape)
