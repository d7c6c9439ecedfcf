"""How far a design reaches: reach in a direction, and the margin of its workspace beyond given targets.

With x(q, p) a point of the mechanism, n a unit vector, and limits on q:

    reach    R(p) = max_q  n·x(q, p)
    margin   s(p) = max s  such that  x(q, p) = x_k + s n_k  for some q                                            (1)

where x_k is a target and n_k points from the base to it: s is how far beyond the target, along the same ray, the point
still gets; it is negative where the target itself is out of reach.  The ray is held by the components of x across it in
which the mechanism can move at all, columns of P.  At a maximum the Lagrangian is stationary in q, so that only what is
explicit in p remains (the envelope theorem): with λ = n + P μ, and λᵀ∂x/∂q = 0 in the joints that are not at a limit,

    dR/dp = nᵀ ∂x/∂p,    ds/dp = λᵀ ∂x/∂p.

Of several targets the smallest margin counts, smoothly: −log(Σ exp(−β s_k))/β, which is below all of them.

The maxima are found by SLSQP from several postures, with exact first derivatives; the best counts.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from kinegrad import _engine as engine
from kinegrad.configuration import neutral, random_configuration
from kinegrad.design import Design
from kinegrad.design.quantities import point_motion_design_derivatives
from kinegrad.errors import InputError, SolveError, shown
from kinegrad.kinematics import point_motion
from kinegrad.kinematics_derivatives import point_motion_derivatives
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["Reach", "WorkspaceMargin"]

Array = NDArray[np.float64]
STARTS = 6
CLOSE = 1e-6  # of the size: how well a constraint is met, and how near a limit counts as at it


@dataclass(frozen=True, eq=False)
class Reach(Result):
    """How far a point gets in a direction of the world, m, as a function of the design.

    Parameters
    ----------
    link : str
        A link or frame.
    direction : array_like, shape (3,)
        In the world; its length does not matter.
    point : array_like, shape (3,)
        In that link or frame, m.

    Examples
    --------
    Two links of 0.4 m: stretched out, both lengths count fully.

    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["shoulder.a", "elbow.a"])
    >>> value, gradient = Reach("forearm", [1, 1, 0])(design)
    >>> round(value, 6), gradient.round(6)
    (0.8, array([1., 1.]))
    """

    link: str
    direction: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)
    _: KW_ONLY
    starts: int = STARTS

    def __post_init__(self) -> None:
        _check_link(self.link)
        object.__setattr__(self, "direction", _unit("direction", self.direction))
        object.__setattr__(self, "point", _vector("point", self.point))
        engine.whole("starts", self.starts)

    def __call__(self, design: Design) -> tuple[float, Array]:
        """J and dJ/dp, shape (p,), of one design."""
        model, n = _plain_model(design), np.asarray(self.direction)
        at = _Point(model, self.link, np.asarray(self.point))
        best = None
        for q in _postures(model, self.starts):
            found = minimize(
                lambda q: -float(n @ at.place(q)), q, jac=lambda q: -(n @ at.slope(q)), bounds=model.position_limits,
                method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
            )  # fmt: skip
            if np.isfinite(found.fun) and (best is None or found.fun < best.fun - 1e-12):
                best = found
        if best is None:
            raise SolveError(f"no posture was found that takes {shown(self.link)} far in the direction asked for")
        slope = point_motion_design_derivatives(design, best.x, link=self.link, point=self.point).dposition_dp
        return float(-best.fun), n @ slope


@dataclass(frozen=True, eq=False)
class WorkspaceMargin(Result):
    """How far beyond targets a point still gets, m, of the target with the least margin; a function of the design.

    Parameters
    ----------
    link : str
        A link or frame.
    targets : array_like, shape (k, 3)
        In the world, m.
    base : array_like, shape (3,)
        Where rays begin, in the world.
    point : array_like, shape (3,)
        In that link or frame, m.
    sharpness : float
        β, 1/m: J is below the smallest margin by at most log(k)/β.

    Examples
    --------
    Two links of 0.4 m reach 0.3 m beyond a target at 0.5 m:

    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["shoulder.a", "elbow.a"])
    >>> value, gradient = WorkspaceMargin("forearm", [[0.3, 0.4, 0]])(design)
    >>> round(value, 6), gradient.round(4)
    (0.3, array([1., 1.]))
    """

    link: str
    targets: ArrayLike
    base: ArrayLike = (0.0, 0.0, 0.0)
    point: ArrayLike = (0.0, 0.0, 0.0)
    _: KW_ONLY
    sharpness: float = 200.0
    starts: int = STARTS

    def __post_init__(self) -> None:
        _check_link(self.link)
        targets = engine.real("targets", self.targets)
        if targets.ndim != 2 or targets.shape[1:] != (3,) or not len(targets) or not np.isfinite(targets).all():
            raise InputError(f"`targets` has shape {targets.shape}; expected (k, 3), finite places in the world, m")
        for name in ("base", "point"):
            object.__setattr__(self, name, _vector(name, getattr(self, name)))
        away = np.linalg.norm(targets - np.asarray(self.base), axis=1)
        if not (away > 1e-9).all():
            raise InputError(f"`targets`[{int(np.argmin(away))}] is at `base`; expected places away from it")
        object.__setattr__(self, "targets", targets.copy())
        object.__setattr__(self, "sharpness", engine.positive("sharpness", self.sharpness))
        engine.whole("starts", self.starts)

    def __call__(self, design: Design) -> tuple[float, Array]:
        """J and dJ/dp, shape (p,), of one design."""
        model = _plain_model(design)
        at = _Point(model, self.link, np.asarray(self.point))
        each = [self._margin(design, at, target) for target in np.asarray(self.targets)]
        margins, slopes = np.array([s for s, _ in each]), np.array([slope for _, slope in each])
        beta, least = self.sharpness, margins.min()
        parts = np.exp(-beta * (margins - least))
        value = least - np.log(parts.sum()) / beta
        return float(value), (parts / parts.sum()) @ slopes

    def _margin(self, design: Design, at: _Point, target: Array) -> tuple[float, Array]:
        """s and ds/dp of one target."""
        model, base = design.model, np.asarray(self.base)
        size = float(np.linalg.norm(target - base))
        n = (target - base) / size
        starts = _postures(model, self.starts)
        across = np.linalg.svd(n[None])[2][1:].T  # two directions across the ray, of which those count
        moves = np.concatenate([across.T @ at.slope(q) for q in starts], axis=1)  # in which the point moves
        turned, sizes, _ = np.linalg.svd(moves, full_matrices=False)
        P = across @ turned[:, sizes > CLOSE * max(float(sizes.max(initial=0.0)), CLOSE)]
        best, margin = None, -np.inf
        for q in starts:
            found = minimize(
                lambda q: -float(n @ (at.place(q) - target)), q, jac=lambda q: -(n @ at.slope(q)), method="SLSQP",
                bounds=model.position_limits, options={"ftol": 1e-14, "maxiter": 500},
                constraints={
                    "type": "eq",
                    "fun": lambda q: P.T @ (at.place(q) - target),
                    "jac": lambda q: P.T @ at.slope(q),
                } if P.size else (),
            )  # fmt: skip
            off = at.place(found.x) - target
            met = np.linalg.norm(off - n * (n @ off)) < CLOSE * max(size, 1e-3)
            if met and -found.fun > margin + 1e-10:
                best, margin = found, float(-found.fun)
        if best is None:
            place = ", ".join(f"{x:g}" for x in target)
            found_none = f"no posture puts {shown(self.link)} on the ray to the target ({place})"
            raise SolveError(f"{found_none}; expected a ray that it can meet")
        lower, upper = model.position_limits.T
        J = at.slope(best.x)[:, (best.x > lower + CLOSE) & (best.x < upper - CLOSE)]
        multiplier = n + P @ np.linalg.lstsq((P.T @ J).T, -(n @ J), rcond=None)[0] if P.size else n
        slope = point_motion_design_derivatives(design, best.x, link=self.link, point=self.point).dposition_dp
        return margin, multiplier @ slope


class _Point:
    """Where a point is, and its Jacobian."""

    def __init__(self, model: Model, link: str, point: Array) -> None:
        self.model, self.where = model, {"link": link, "point": point}

    def place(self, q: Array) -> Array:
        return np.asarray(point_motion(self.model, q, **self.where).position)  # type: ignore[arg-type]

    def slope(self, q: Array) -> Array:
        return np.asarray(point_motion_derivatives(self.model, q, **self.where).dposition_dq)  # type: ignore[arg-type]


def _postures(model: Model, count: int) -> list[Array]:
    """Where to begin: neutral, a little bent, and at random within the limits; the same every time."""
    lower, upper = np.clip(model.position_limits, -np.pi, np.pi).T
    random = np.random.default_rng(0)
    first = np.clip(neutral(model) + 0.1, lower, upper)
    rest = [np.clip(random_configuration(model, random), lower, upper) for _ in range(count - 1)]
    return [first, *rest]


def _plain_model(design: Any) -> Model:
    if not isinstance(design, Design):
        raise InputError(f"`design` is a {type(design).__name__}; expected a Design")
    if design.model.coordinates:
        name = shown(design.model.name)
        raise InputError(f"model {name} has coordinates that are not its joints; expected a model whose joints are")
    return design.model


def _check_link(link: Any) -> None:
    if not isinstance(link, str):
        raise InputError(f"`link` is {shown(link)}; expected the name of a link or frame")


def _vector(name: str, value: Any) -> Array:
    x = engine.real(name, value)
    if x.shape != (3,) or not np.isfinite(x).all():
        raise InputError(f"`{name}` is {shown(value)}; expected three finite numbers")
    return x.copy()


def _unit(name: str, value: Any) -> Array:
    x = _vector(name, value)
    length = float(np.linalg.norm(x))
    if not length > 0:
        raise InputError(f"`{name}` is {shown(value)}; expected a vector that is not zero")
    return x / length
