"""What fixed steps begin with: arguments checked, combinations that cannot be refused, the law of motion."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constraints.assembly import check_set
from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.simulate.constrained_law import ConstrainedLaw, check_unconstrained
from kinegrad.simulate.explicit import SCHEMES, Scheme
from kinegrad.simulate.law import Law, initial
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.torques import Constant, PerStep

__all__ = ["begun", "check_size", "check_undamped", "memory", "prepare"]

Array = NDArray[np.float64]
METHODS = (*SCHEMES, "implicit_midpoint")


def prepare(
    model: Model, tau: Any, loads: Loads | None, design: Design | None, method: Any, step: Any, steps: Any,
    constraints: Any = None, stabilisation: Any = None, redundant: str = "error", prescribed: Any = None,
) -> tuple[Law, Scheme | None, float]:  # fmt: skip
    """The checked law of motion, scheme (None of the implicit method) and step."""
    engine.one_of("method", method, METHODS)
    h = engine.real("step", step)
    if h.shape != () or not (np.isfinite(h) and h > 0):
        raise InputError(f"`step` is {shown(step)}; expected a positive number of seconds")
    steps = engine.whole("steps", steps)
    if engine.mapped(model):
        _check_mapped(model, method)
    if engine.sprung(model) and method == "implicit_midpoint":
        check_undamped(model)
    span = (0.0, steps * float(h))
    given = (model, tau, lambda samples: _hold(model, steps, samples), span, loads, design)
    driven = None
    if prescribed is not None:
        _check_prescribed(model, method)
        driven = Prescribed(model, prescribed, *span, design)
    if constraints is None:
        check_unconstrained(stabilisation, redundant)
        return Law(*given, driven), SCHEMES.get(method), float(h)
    _check_constrained(model, constraints, method)
    law = ConstrainedLaw(*given, constraints, stabilisation, redundant, driven)
    return law, SCHEMES.get(method), float(h)


def _check_mapped(model: Model, method: str) -> None:
    """Refuse what the implicit method cannot do with coordinates that are not joints."""
    if method == "implicit_midpoint" and (model.layout.balls or model.damping.any()):
        what = (
            "a quaternion, which has no middle of two places"
            if model.layout.balls
            else ("coupled joints with dampers, whose forces in coordinates change with the configuration")
        )
        raise InputError(f"`method` is 'implicit_midpoint' and model {model.name!r} has {what}; expected 'rk4'")


def _check_prescribed(model: Model, method: str) -> None:
    """Refuse what does not go together with prescribed motion."""
    if method == "implicit_midpoint":
        raise InputError("`method` is 'implicit_midpoint' and `prescribed` is given; expected 'rk4'")
    if model.coordinates and model.layout.balls:
        raise InputError(
            f"`prescribed` is given and model {shown(model.name)} has quaternions; expected simulate, or another model"
        )


def begun(
    law: Law, q0: Any, v0: Any, slopes: tuple[Any, Any] = (None, None)
) -> tuple[Array, Array, tuple[Any, Any]]:  # fmt: skip
    """Checked initial states, and slopes as given, with what a prescribed motion says of them."""
    held = law.prescribed
    if held is not None:
        moving, known = held(0.0), held.slopes(0.0)
        q0, v0 = held.start("q0", q0, moving[0]), held.start("v0", v0, moving[1])
        slopes = held.start_slope("dq0_dp", slopes[0], known[0]), held.start_slope("dv0_dp", slopes[1], known[1])
    return *initial(law.model, q0, v0, single=False), slopes


def check_undamped(model: Model) -> None:
    """Refuse the implicit method for elements with dampers, whose forces on coordinates change with configuration."""
    damped = [name for name, element in model.elements.items() if np.any(element.damping)]
    if damped:
        raise InputError(
            f"`method` is 'implicit_midpoint' and element {shown(damped[0])} of model {shown(model.name)} has a "
            "damper, whose forces on coordinates change with the configuration; expected 'rk4'"
        )


def _check_constrained(model: Any, constraints: Any, method: str) -> None:
    """Refuse what does not go together with constraints."""
    check_set(model, constraints)
    if method == "implicit_midpoint":
        raise InputError("`method` is 'implicit_midpoint' and `constraints` are given; expected 'rk4'")
    if model.coordinates and model.layout.balls:
        raise InputError(
            f"`constraints` are given and model {model.name!r} has quaternions; expected simulate, or another model"
        )


def check_size(steps: int, every: int, numbers: int, p: int) -> None:
    """Refuse what cannot be kept: `numbers` coordinates with p slopes each, of a, q, v, τ, at every so many steps."""
    needed = 8 * (4 * (steps // every + 1) * numbers * (1 + p) + 4 * steps)
    room = memory()
    if needed > room:
        raise InputError(
            f"`steps` is {steps} and `every` {every}: {needed / 1e9:.3g} GB to keep, and this machine has "
            f"{room / 1e9:.3g}; expected fewer steps, or to keep fewer of them"
        )


def memory() -> float:
    """Of this machine, bytes; infinite where that is not known."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float(np.inf)


def _hold(model: Model, steps: int, samples: Any) -> Callable[[int, float], Array]:
    """A constant, or one torque for each step."""
    tau = engine.real("tau", samples)
    if not np.isfinite(tau).all():
        raise engine.not_finite("tau", tau)
    if tau.shape == (model.nv,):
        return Constant(tau)
    if tau.ndim < 2 or tau.shape[0] != steps or tau.shape[-1] != model.nv:
        expected = f"({model.nv},) for a constant, or ({steps}, ..., {model.nv}) for one in each step"
        raise InputError(f"`tau` has shape {tau.shape}; expected {expected}")
    return PerStep(tau)
