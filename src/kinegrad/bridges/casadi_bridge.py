"""Inverse dynamics as a CasADi function."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import batch_shape, check, package, pull_left, pull_second
from kinegrad.configuration import neutral, pull_tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives, inverse_dynamics_vjp
from kinegrad.dynamics_hessian import inverse_dynamics_second_order
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.packed_matrix import PackedMatrix

__all__ = ["to_casadi"]


def to_casadi(model: Model, *, loads: Loads | None = None, states: int = 1) -> Any:
    """Inverse dynamics for CasADi: a function τ(q, v, a) with exact, sparse first and second derivatives.

    For ``nlpsol``, ``Opti`` and everything else that differentiates once or twice.  The Hessian of a Lagrangian, which
    IPOPT asks for at each iterate, is computed with its multipliers as weights, in about twice the time of the Jacobian
    (:func:`inverse_dynamics_second_order`).

    Parameters
    ----------
    model : Model
    loads : Loads, optional
        External forces and torques on links, constants of the function.
    states : int
        How many states the function takes at once: a whole trajectory in one call is much faster than a call, or
        ``map``, for each of its instants.

    Returns
    -------
    casadi.Function
        Inputs ``q``, ``v``, ``a`` and output ``tau``, each n × states: one column per state.  It stays alive as long as
        the program, because CasADi does not keep it; the same arguments give the same function.

    Raises
    ------
    ImportError
        CasADi is not installed.
    InputError
        `states` is not a positive whole number, or the loads do not broadcast with them.

    Examples
    --------
    Examples that run are in docs/bridges.md; in short::

        tau = to_casadi(model)
        solver = casadi.nlpsol("solver", "ipopt", {"x": q, "f": casadi.sumsqr(tau(q, 0, 0))}, options)
    """
    package("casadi")
    check(model, loads)
    if isinstance(states, bool) or not isinstance(states, int | np.integer) or states < 1:
        raise InputError(f"`states` is {states!r}; expected a whole number of at least 1")
    if batch_shape(model, loads, q=(int(states), model.nq)) != (int(states),):
        raise InputError(f"`loads` have more states than the {states} of `states`; expected as many, or one for all")
    return _callback(model, loads, int(states))


@cache
def _callback(model: Model, loads: Loads | None, states: int) -> Any:
    casadi = package("casadi")
    sizes = (model.nq, model.nv, model.nv)
    dense = [casadi.Sparsity.dense(size, states) for size in sizes]
    patterns = [_by_columns(model, size) for size in sizes]
    by_column = np.lexsort(model.pattern)  # CasADi's order; kinegrad's is by row
    blocks = []
    for (rows, cols), size in zip(patterns, sizes, strict=True):
        block = casadi.Sparsity.triplet(model.nv, size, rows.tolist(), cols.tolist())
        blocks.append(casadi.diagcat(*[block] * states))
    second = _second_patterns(model)
    shapes = [(rows, cols) for rows in sizes for cols in (*sizes, model.nv, model.nv)]
    second_blocks = []
    for (rows, cols), shape in zip(second, shapes, strict=True):
        block = casadi.Sparsity.triplet(*shape, rows.tolist(), cols.tolist())
        second_blocks.append(casadi.diagcat(*[block] * states))
    kept: list[Any] = []  # CasADi does not keep Python callbacks alive: this does, as the cache does the function

    def state(buffers: Any) -> list[Any]:
        given = zip(buffers[:3], (neutral(model), np.zeros(model.nv), np.zeros(model.nv)), strict=True)
        return [np.tile(zero, (states, 1)) if x is None else np.frombuffer(x).reshape(states, -1) for x, zero in given]

    def values(q: Any, matrix: PackedMatrix, size: int) -> Any:
        """The entries of derivatives with respect to q or v in CasADi's order, (states, entries)."""
        if size == model.nv:
            return matrix.values[:, by_column]
        return pull_tangent(model, q[:, None], matrix.to_dense())[:, patterns[0][0], patterns[0][1]]

    class Buffered(casadi.Callback):  # type: ignore[misc, name-defined]
        """A function that reads and writes CasADi's memory, where a state is a row for NumPy."""

        def __init__(self, name: str, inputs: dict[str, Any], outputs: dict[str, Any], options: Any) -> None:
            casadi.Callback.__init__(self)
            self.inputs, self.outputs = inputs, outputs
            self.construct(name, options)

        def get_n_in(self) -> int:
            return len(self.inputs)

        def get_n_out(self) -> int:
            return len(self.outputs)

        def get_name_in(self, i: int) -> str:
            return list(self.inputs)[i]

        def get_name_out(self, i: int) -> str:
            return list(self.outputs)[i]

        def get_sparsity_in(self, i: int) -> Any:
            return list(self.inputs.values())[i]

        def get_sparsity_out(self, i: int) -> Any:
            return list(self.outputs.values())[i]

        def has_eval_buffer(self) -> bool:
            return True

    def keep(function: Any) -> Any:
        kept.append(function)
        return function

    class Jacobian(Buffered):
        def eval_buffer(self, arguments: Any, results: Any) -> int:
            q, v, a = state(arguments)
            exact = inverse_dynamics_derivatives(model, q, v, a, loads=loads, packed=True)
            for matrix, size, result in zip((exact.dtau_dq, exact.dtau_dv, exact.dtau_da), sizes, results, strict=True):
                if result is not None:
                    assert isinstance(matrix, PackedMatrix)
                    np.frombuffer(result)[:] = values(q, matrix, size).ravel()
            return 0

    def weights(arguments: Any) -> Any:
        """Of the torques; before them come the state, and the torques at it."""
        return np.zeros((states, model.nv)) if arguments[4] is None else np.frombuffer(arguments[4]).reshape(states, -1)

    class Second(Buffered):
        """Derivatives of gradients, row by row: with respect to q, v, a, the torques, and their weights."""

        def eval_buffer(self, arguments: Any, results: Any) -> int:
            q, v, a = state(arguments)
            found = _second(model, loads, q, v, a, weights(arguments))
            for (rows, cols), matrix, result in zip(second, found, results, strict=False):
                if result is not None and len(rows):
                    np.frombuffer(result)[:] = matrix[:, rows, cols].ravel()
            return 0

    class Gradient(Buffered):
        """Those of a weighted sum of torques."""

        def eval_buffer(self, arguments: Any, results: Any) -> int:
            q, v, a = state(arguments)
            exact = inverse_dynamics_vjp(model, q, v, a, weights(arguments), loads=loads)
            for x, result in zip((pull_tangent(model, q, exact.dq), exact.dv, exact.da), results, strict=True):
                if result is not None:
                    np.frombuffer(result)[:] = x.ravel()
            return 0

        def has_jac_sparsity(self, output: int, of: int) -> bool:
            return True

        def get_jac_sparsity(self, output: int, of: int, symmetric: bool) -> Any:
            return second_blocks[5 * output + of]

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
            given = [*dense, dense[1], dense[1], *dense]
            return keep(Second(name, _named(inputs, given), _named(outputs, second_blocks), options))

    class InverseDynamics(Buffered):
        def eval_buffer(self, arguments: Any, results: Any) -> int:
            if results[0] is not None:
                out = np.frombuffer(results[0]).reshape(states, model.nv)
                inverse_dynamics(model, *state(arguments), loads=loads, out=out)
            return 0

        def has_jac_sparsity(self, output: int, of: int) -> bool:
            return True

        def get_jac_sparsity(self, output: int, of: int, symmetric: bool) -> Any:
            return blocks[of]

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
            given = [*dense, dense[1]]  # the state, and the torques at it
            return keep(Jacobian(name, _named(inputs, given), _named(outputs, blocks), options))

        def has_reverse(self, directions: int) -> bool:
            return directions == 1  # CasADi takes several one by one

        def get_reverse(self, directions: int, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
            given = [*dense, dense[1], dense[1]]
            return keep(Gradient(name, _named(inputs, given), _named(outputs, dense), options))

    state_in = dict(zip(("q", "v", "a"), dense, strict=True))
    return InverseDynamics("inverse_dynamics", state_in, {"tau": dense[1]}, {})


def _by_columns(model: Model, size: int) -> tuple[Any, Any]:
    """Rows and columns of derivatives with respect to q or v that may differ from zero, in CasADi's order."""
    return _entries(_widened(model, size))


def _widened(model: Model, size: int) -> Any:
    """Where derivatives of torques with respect to q or v may differ from zero, (nv, size)."""
    found = np.zeros((model.nv, model.nv), dtype=bool)
    found[model.pattern] = True
    return found if size == model.nv else found @ _turns(model)


def _turns(model: Model) -> Any:
    """Which numbers of q change which speeds, (nv, nq): each of a quaternion's four all of its three."""
    found = np.zeros((model.nv, model.nq), dtype=bool)
    layout = model.layout
    found[layout.plain_v, layout.plain_q] = found[layout.coupled_v, layout.coupled_q] = True
    for _, k, j in layout.balls:
        found[j : j + 3, k : k + 4] = True
    return found


def _entries(found: Any) -> tuple[Any, Any]:
    """Rows and columns in CasADi's order."""
    cols, rows = np.nonzero(found.T)
    return rows, cols


def _named(names: Any, patterns: Any) -> dict[str, Any]:
    return dict(zip(names, patterns, strict=True))


def _second_patterns(model: Model) -> list[tuple[Any, Any]]:
    """Where gradients with respect to q, v, a, in this order, may change with q, v, a, τ and w."""
    by_v, by_q = _widened(model, model.nv), _widened(model, model.nq)
    twice = by_q if model.nq == model.nv else _turns(model).T @ by_q
    none, nothing = np.zeros_like(by_v), np.zeros_like(by_q.T)
    rows = (
        (twice, by_q.T, by_q.T, nothing, by_q.T),
        (by_q, by_v, none, none, by_v),
        (by_q, none, none, none, by_v),
    )
    return [_entries(x) for row in rows for x in row]


def _second(model: Model, loads: Loads | None, q: Any, v: Any, a: Any, w: Any) -> list[Any]:
    """The matrices of these patterns, (states, rows, columns) each; None where there is nothing."""
    x = inverse_dynamics_second_order(model, q, v, a, w, loads=loads)
    t_q, t_v, t_a, qq, qv, qa, vv = (np.asarray(y) for y in [*vars(x).values()][1:])
    qv, qa, by_q = (pull_left(model, q, y) for y in (qv, qa, t_q.swapaxes(-1, -2)))
    qq = pull_second(model, q, qq, (w[:, :, None] * t_q).sum(axis=-2))
    by_v, by_a = t_v.swapaxes(-1, -2), t_a.swapaxes(-1, -2)
    back_v, back_a = qv.swapaxes(-1, -2), qa.swapaxes(-1, -2)
    return [qq, qv, qa, None, by_q, back_v, vv, None, None, by_v, back_a, None, None, None, by_a]
