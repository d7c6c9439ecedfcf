"""Force elements between links: what they do to coordinates, and how that is added to the results of kernels.

Kernels of dynamics know nothing of elements.  With Q(q, v) their generalised forces, those of ``_kernels/elements.py``,

    τ = τ₀ − Q,     a = a₀ at torques τ + Q,     ∂τ/∂x = ∂τ₀/∂x − ∂Q/∂x,     ∂a/∂x = ∂a₀/∂x + M⁻¹ ∂Q/∂x

where the index 0 is for the same model without elements.  Everything is by coordinates and speeds of the user: a
kernel's ``with_elements`` is asked before its arguments are expanded to joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.call import evaluate_with
from kinegrad._engine.expansion import deliver
from kinegrad._engine.gate import kernel_array, overflow_is_passed, real
from kinegrad._engine.signature import QV, Axis, Kernel, Result
from kinegrad._kernels import elements as kernels
from kinegrad.errors import InputError, SingularError, at_state, shown
from kinegrad.model import Model, SpringDamper
from kinegrad.model.elements import element_numbers, ends, way

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Run = Callable[..., tuple[Array, ...]]

_VALUES = (Result("Q", (Axis.TORQUE,), zero=True), Result("length", (Axis.POINT,)), Result("energy", (Axis.POINT,)))
_SLOPES = (
    Result("dQ_dq", (Axis.TORQUE, Axis.PER_POSITION), zero=True),
    Result("dQ_dv", (Axis.TORQUE, Axis.PER_SPEED), zero=True),
)
ELEMENTS = Kernel(kernels.elements, QV, _VALUES, kernels.PER_JOINT)
ELEMENTS_DERIVATIVES = Kernel(kernels.elements_derivatives, QV, (*_VALUES, *_SLOPES), kernels.PER_JOINT)


class ElementTable(NamedTuple):
    """A model's elements as kernels want them: see ``_kernels/elements.py``.

    Attributes
    ----------
    links, way : ndarray of int
    numbers : ndarray, shape (1, 37 elements)
    directed : ndarray of bool, shape (elements,)
        Whether the force has a direction that is not defined where the ends of the element coincide.
    speeds : ndarray of int
        Those that move one link of an element with respect to the other.
    """

    links: Integers
    way: Integers
    numbers: Array
    directed: NDArray[np.bool_]
    speeds: Integers


def element_table(model: Model) -> ElementTable:
    """The table of a model, made once."""
    found: ElementTable | None = model.__dict__.get("_element_table")
    if found is None:
        links, ways, directed, joints = [], [], [], set[int]()
        for element in model.elements.values():
            (A, _), (B, _) = ends(model, element)
            up, down = way(model.parents.tolist(), A, B)
            spring = isinstance(element, SpringDamper)
            links += [kernels.SPRING if spring else kernels.BUSHING, A, B, len(up), len(down)]
            ways += [*up, *down, *[0] * (model.n - len(up) - len(down))]
            joints.update(up, down)
            directed.append(isinstance(element, SpringDamper) and bool(element.rest_length or element.damping))
        rows, speeds = element_numbers(model).reshape(1, -1), model.layout.speed_of[sorted(joints)]
        moving = np.unique(speeds[speeds >= 0])
        found = ElementTable(np.array(links), np.array(ways), kernel_array(rows), np.array(directed), moving)
        object.__setattr__(model, "_element_table", found)
    return found


class ElementForces(NamedTuple):
    """What the elements of a model do in states of a batch.

    Attributes
    ----------
    Q : ndarray, shape (..., nv)
        Generalised forces.
    energy : ndarray, shape (..., elements)
    """

    Q: Array
    energy: Array


class ElementDerivatives(NamedTuple):
    """The same, and derivatives of the forces, shape (..., nv, nv)."""

    Q: Array
    energy: Array
    dQ_dq: Array
    dQ_dv: Array


def element_forces(model: Model, state: Sequence[Any], threads: int | None = None) -> ElementForces:
    """Forces and energies of a model's elements at q and v, the first two of a state."""
    return ElementForces(*_evaluate(ELEMENTS, model, state, threads))


def element_derivatives(model: Model, state: Sequence[Any], threads: int | None = None) -> ElementDerivatives:
    """The same with derivatives."""
    return ElementDerivatives(*_evaluate(ELEMENTS_DERIVATIVES, model, state, threads))


def _evaluate(kernel: Kernel, model: Model, state: Sequence[Any], threads: int | None) -> tuple[Array, ...]:
    table = element_table(model)
    options, points = [table.links, table.way, table.numbers], (len(table.directed),)
    Q, length, *rest = evaluate_with(
        kernel, undamped(model), tuple(state)[:2], threads=threads, options=options, points=points
    )
    check_apart(model, length, table.directed)
    check_sums(Q, *rest)
    return Q, *rest


def undamped(model: Model) -> Model:
    """The model without elements or dampers of joints, which what contracts the forces of a ball would count."""
    found: Model | None = model.__dict__.get("_undamped")
    if found is None:
        found = model.without_elements
        if found.damping.any():
            found = found.replace(damping=np.zeros(model.n))
        object.__setattr__(model, "_undamped", found)
    return found


def check_apart(model: Model, length: Array, directed: NDArray[np.bool_]) -> None:
    """Refuse states in which the ends of elements coincide whose forces then have no direction."""
    together = directed & (length <= kernels.COINCIDE)
    if together.any():
        *state, k = np.argwhere(together)[0].tolist()
        raise SingularError(
            f"the ends of element {shown(list(model.elements)[k])} of model {shown(model.name)} "
            f"coincide{at_state(state)}, where the direction of its force is not defined; expected them apart, or "
            "neither rest length nor damping"
        )


def check_sums(*results: Array) -> None:
    """Refuse results that overflow."""
    if not overflow_is_passed() and not all(np.isfinite(x).all() for x in results):
        raise InputError("the results are not finite: they overflow float64; expected smaller numbers")


# --- what is added to the results of kernels --------------------------------------------------------------------


def less_forces(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """τ = τ₀ − Q."""
    Q = element_forces(model, state, threads).Q
    (tau,) = run(state, out)
    with np.errstate(all="ignore"):
        tau -= Q
    check_sums(tau)
    return (tau,)


def pushed_by_forces(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """a = a₀ at torques τ + Q."""
    q, v, tau = state
    given, lost = with_forces(tau, element_forces(model, state, threads).Q)
    results = run((q, v, given), out)  # accelerations, and forces of constraints where there are any
    lose(lost, *((x, 1) for x in results))
    return results


def with_forces(tau: Any, Q: Array) -> tuple[Array, NDArray[np.bool_]]:
    """τ + Q, and the states in which Q overflows, where that is passed on: they go without.

    τ as it is where its shape is wrong, which the gate says.
    """
    x = real("tau", tau)
    try:
        shape = np.broadcast_shapes(x.shape[:-1], Q.shape[:-1]) if x.shape[-1:] == Q.shape[-1:] else None
    except ValueError:
        shape = None
    if shape is None:
        return x, np.zeros((), dtype=bool)
    good = np.asarray(np.isfinite(Q).all(axis=-1))
    with np.errstate(all="ignore"):
        return x + np.where(good[..., None], Q, 0.0), np.broadcast_to(~good, shape)


def lose(lost: NDArray[np.bool_], *results: tuple[Array, int]) -> None:
    """NaN in the states that are lost, of results with so many axes behind those of the batch."""
    if lost.any():
        for x, axes in results:
            x[np.broadcast_to(lost, x.shape[: x.ndim - axes])] = np.nan


def less_derivatives(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """τ and ∂τ/∂(q, v, a)."""
    acting = element_derivatives(model, state, threads)
    found = run(state, out)
    subtract(found, acting.Q, acting.dQ_dq, acting.dQ_dv)
    return found


def less_packed_derivatives(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """The same, packed: entries of the model's own pattern."""
    acting = element_derivatives(model, state, threads)
    rows, cols = model.pattern
    tau, *matrices = run(state)
    there = kept_entries(model)
    packed = [np.zeros((*x.shape[:-1], len(rows))) for x in matrices]
    for x, given in zip(packed, matrices, strict=True):
        x[..., there] = given
    by_q, by_v = (x[..., rows, cols] for x in (acting.dQ_dq, acting.dQ_dv))
    subtract((tau, *packed), acting.Q, by_q, by_v)
    return deliver(("tau", "dtau_dq", "dtau_dv", "dtau_da"), (tau, *packed), out)


def kept_entries(model: Model) -> Integers:
    """Which entries of a model's pattern it has without elements, too."""
    number = np.zeros((model.nv, model.nv), dtype=np.int64)
    number[model.pattern] = np.arange(len(model.pattern[0]))
    return np.asarray(number[tuple(model.without_elements.pattern)])


def pushed_derivatives(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """a and ∂a/∂(q, v, τ)."""
    q, v, tau = state
    acting = element_derivatives(model, state, threads)
    given, lost = with_forces(tau, acting.Q)
    a, by_q, by_v, inverse = run((q, v, given), out)
    _push(model, inverse, acting, by_q, by_v)
    lose(lost, (a, 1), (by_q, 2), (by_v, 2))
    check_sums(a, by_q, by_v)
    return a, by_q, by_v, inverse


def pushed_constrained_derivatives(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """a and f, forces of constraints; ∂f/∂(q, v, τ) and ∂a/∂(q, v, τ)."""
    q, v, tau = state
    acting = element_derivatives(model, state, threads)
    given, lost = with_forces(tau, acting.Q)
    results = run((q, v, given), out)
    a, f, *matrices = results
    for by_q, by_v, by_tau in (matrices[:3], matrices[3:]):
        _push(model, by_tau, acting, by_q, by_v)
    lose(lost, (a, 1), (f, 1), *((x, 2) for x in matrices))
    check_sums(*matrices)
    return results


def _push(model: Model, by_tau: Array, acting: ElementDerivatives, by_q: Array, by_v: Array) -> None:
    """Add what changes of the elements' forces cause, by coordinates they depend on; others keep their bits."""
    some = element_table(model).speeds
    caused = np.ascontiguousarray(by_tau[..., some])  # in one order, so that a state gives the same bits in any batch
    with np.errstate(all="ignore"):  # what overflows is found by the caller
        for by, change in ((by_q, acting.dQ_dq), (by_v, acting.dQ_dv)):
            by[..., some] += caused @ np.ascontiguousarray(change[..., some[:, None], some])


def less_jvp(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """dτ along dq, dv, da."""
    acting = element_derivatives(model, state, threads)
    (dtau,) = run(state, out)
    dq, dv = (real(name, x) for name, x in (("dq", state[3]), ("dv", state[4])))
    with np.errstate(all="ignore"):
        change = (acting.dQ_dq * dq[..., None, :]).sum(axis=-1) + (acting.dQ_dv * dv[..., None, :]).sum(axis=-1)
    subtract((dtau,), change)
    return (dtau,)


def less_vjp(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """Gradients of wᵀτ with respect to q, v, a."""
    acting = element_derivatives(model, state, threads)
    found, w = run(state, out), real("w", state[3])[..., None]
    with np.errstate(all="ignore"):
        shares = [(x * w).sum(axis=-2) for x in (acting.dQ_dq, acting.dQ_dv)]
    subtract(found, *shares)
    return found


def subtract(found: Sequence[Array], *parts: Array) -> None:
    """Take the parts from the first results, in place."""
    for x, part in zip(found, parts, strict=False):
        with np.errstate(all="ignore"):  # what overflows is found below
            x -= part
        check_sums(x)
