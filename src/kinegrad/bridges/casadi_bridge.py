"""Inverse dynamics as a CasADi function."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import batch_shape, check, package
from kinegrad.configuration import neutral, pull_tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import PackedMatrix, inverse_dynamics_derivatives
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_casadi"]


def to_casadi(model: Model, *, loads: Loads | None = None, states: int = 1) -> Any:
    """Inverse dynamics for CasADi: a function τ(q, v, a) with an exact, sparse Jacobian.

    For ``nlpsol``, ``Opti`` and everything else that differentiates once.  There are no second derivatives: with IPOPT,
    set ``{"ipopt.hessian_approximation": "limited-memory"}``, or give it a Gauss–Newton Hessian (docs/bridges.md).

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

    class Jacobian(Buffered):
        def eval_buffer(self, arguments: Any, results: Any) -> int:
            q, v, a = state(arguments)
            exact = inverse_dynamics_derivatives(model, q, v, a, loads=loads, packed=True)
            for matrix, size, result in zip((exact.dtau_dq, exact.dtau_dv, exact.dtau_da), sizes, results, strict=True):
                if result is not None:
                    assert isinstance(matrix, PackedMatrix)
                    np.frombuffer(result)[:] = values(q, matrix, size).ravel()
            return 0

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
            jacobian = Jacobian(
                name, dict(zip(inputs, given, strict=True)), dict(zip(outputs, blocks, strict=True)), options
            )
            kept.append(jacobian)
            return jacobian

    state_in = dict(zip(("q", "v", "a"), dense, strict=True))
    return InverseDynamics("inverse_dynamics", state_in, {"tau": dense[1]}, {})


def _by_columns(model: Model, size: int) -> tuple[Any, Any]:
    """Rows and columns of derivatives with respect to q or v that may differ from zero, in CasADi's order."""
    rows, cols = model.pattern
    found = np.zeros((model.nv, model.nv))
    found[rows, cols] = 1.0
    if size != model.nv:  # four numbers of a quaternion for three speeds, each of which all four can change
        turned = pull_tangent(model, np.ones(model.nq), found)
        for _, k, _ in model.layout.balls:
            turned[:, k : k + 4] = np.abs(turned[:, k : k + 4]).max(axis=-1, keepdims=True)
        found = turned
    cols, rows = np.nonzero(found.T)
    return rows, cols
