"""Second derivatives: ∂²(wᵀτ)/∂(q, v, a)² beside the first

Times of one call as multiples of the time of `inverse_dynamics_derivatives` (dense, `out=`), taken in turn in the same
run: the Hessian, and τ with first derivatives and Hessian together; products with vectors as multiples of the gradient
(vjp).  The target of these, 1.5, was set when the gradient was the reverse sweep of ``_kernels/rnea_reverse.py``, and
was to take 0.7 of its time: two rows compare with that sweep, the gradient (0.7) and the product (0.7 times 1.5).  A
product takes 1.43 times the multiplications of the gradient (``python -m benchmarks.operations``;
docs/theory/hessian.md says why).  Matrices take turns with matrices and products with products, which would else find
caches full of matrices.  301 states of q = sin 2πt; fewer of long chains, whose matrices would not fit: as many as take
64 MB per matrix.
Then the Hessian of the 43-degree-of-freedom human against central differences of kinegrad's own first derivatives
(measured at four states and scaled), against Pinocchio's *first* derivatives, three matrices where there are four, and,
for the PUMA 560, against C code that CasADi generates from the same mechanism built of symbols, its sparse Hessian
evaluated state by state; for the human, whose 145 000 operations gcc -O2 does not compile within minutes, against
CasADi's own evaluation of them (measured at four states and scaled).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import casadi as ca
import numpy as np
from tests.peers.casadi_model import symbolic_hessian

from benchmarks.derivatives import LEFT, Work, scaled
from benchmarks.setting import STATES, sinusoid
from benchmarks.timing import REPEATS, Case, Comparison, Measurement, Row, compare
from kinegrad import (
    Model,
    inverse_dynamics_derivatives,
    inverse_dynamics_hessian,
    inverse_dynamics_hvp,
    inverse_dynamics_second_order,
    inverse_dynamics_vjp,
)
from kinegrad import _engine as engine
from kinegrad._kernels import rnea_reverse
from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import frames
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.mechanism import unpack
from kinegrad.dynamics_derivatives import VJP
from kinegrad.samples import human43, puma560, spatial_chain

SIZES = (4, 16, 64, 128, 512)
MATRIX = 64e6  # bytes
BLOCKS = ("d2_dqdq", "d2_dqdv", "d2_dqda", "d2_dvdv")
FEW, STEP = 4, 1e-5
Call = Callable[[], Any]


@kernel
def reverse_sweep(m, q, v, a, y, force, point, torque, by_q, by_v, by_a, scratch, start, stop):
    """The gradient of yᵀτ as it was when the targets were set."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, rnea_reverse.N)
        rnea_reverse.block(m, q, v, a, y, force, point, torque, by_q, by_v, by_a, None, r, scratch)
    return ok


REVERSE = replace(VJP, function=reverse_sweep, slots=rnea_reverse.N, tables=None)


def run(repeats: int) -> list[Row]:
    rows: list[Row] = []
    for model in (human43(), *map(spatial_chain, SIZES)):
        name = model.name if model.name == "human43" else f"chain, n = {model.n}"
        for threads in (1, 2):
            rows += _ratios(name, model, threads, False, repeats)
    rows += _ratios("human43", human43(), 1, True, repeats)
    return [*rows, *_peers(repeats)]


def _state(model: Model) -> tuple[np.ndarray, ...]:
    """q, v, a and weights."""
    states = max(1, min(STATES, int(MATRIX / (8 * model.n**2))))
    q, v, a = sinusoid(model.n, states)
    return q, v, a, np.random.default_rng(0).normal(size=q.shape)


def _ratios(name: str, model: Model, threads: int, packed: bool, repeats: int) -> list[Row]:
    q, v, a, w = _state(model)
    options: dict[str, Any] = {"threads": threads, "packed": packed}
    matrices: dict[str, Call] = {
        "first": _filling(inverse_dynamics_derivatives, model, (q, v, a), options),
        "second": _filling(inverse_dynamics_hessian, model, (q, v, a, w), options),
        "all": _filling(inverse_dynamics_second_order, model, (q, v, a, w), options),
    }
    products: dict[str, Call] = {
        "vjp": lambda: inverse_dynamics_vjp(model, q, v, a, w, threads=threads),
        "hvp": lambda: inverse_dynamics_hvp(model, q, v, a, w, v, a, w, threads=threads),
        "reverse": lambda: engine.evaluate(REVERSE, model, (q, v, a, w), threads=threads),
    }
    best = _best(matrices, repeats) | ({} if packed else _best(products, repeats))
    times = {what: seconds / len(q) for what, seconds in best.items()}
    where = f"{name}, {'packed' if packed else 'dense'}, {'two threads' if threads == 2 else 'one thread'}"

    def row(what: str, ours: str, of: str, target: float | None) -> Measurement:
        note = f"{1e6 * times[ours]:.3g} µs per state against {1e6 * times[of]:.3g} µs; {len(q)} states"
        return Measurement(f"{what}, {where}", times[ours] / times[of], "×", target, note)

    rows: list[Row] = [
        row("Hessian, of first derivatives", "second", "first", 1.7),
        row("τ, first derivatives and Hessian, of first derivatives", "all", "first", 2.3),
    ]
    if not packed:
        rows += [
            row("vjp, of first derivatives", "vjp", "first", None),
            row("vjp, of vjp by the reverse sweep", "vjp", "reverse", 0.7),
            row("hvp, of vjp", "hvp", "vjp", 1.5),
            row("hvp, of vjp by the reverse sweep", "hvp", "reverse", 1.05),
        ]
    return rows


def _best(functions: dict[str, Call], repeats: int) -> dict[str, float]:
    """The best time of each, taking turns, by the clock on the wall: that of the thread is too short now and then where
    a hypervisor takes the processor away."""
    found = dict.fromkeys(functions, np.inf)
    for function in functions.values():
        function()  # compiles
    start = perf_counter()
    count = 0
    while count < repeats or perf_counter() < start + 3 * repeats / REPEATS:
        for what, function in functions.items():
            before = perf_counter()
            function()
            found[what] = min(found[what], perf_counter() - before)
        count += 1
    return found


def _filling(function: Any, model: Model, state: tuple[np.ndarray, ...], options: dict[str, Any]) -> Call:
    """Into arrays that are made once."""
    out = function(model, *state, **options)
    return lambda: function(model, *state, out=out, **options)


def _peers(repeats: int) -> list[Row]:
    model = human43()
    q, v, a, w = _state(model)
    out = inverse_dynamics_hessian(model, q, v, a, w)
    pinocchio = Work(model)
    few = [x[:FEW] for x in (q, v, a, w)]
    exact = inverse_dynamics_hessian(model, *few)
    off = max(_off(x, getattr(exact, name)) for name, x in zip(BLOCKS, _differences(model, *few), strict=True))

    def hessian(threads: int = 1) -> None:
        inverse_dynamics_hessian(model, q, v, a, w, out=out, threads=threads)

    def differences() -> None:
        _differences(model, *few)

    def left() -> None:
        pinocchio.left()

    against = f"central differences of kinegrad's first derivatives, {FEW} states, scaled to {STATES}, off by {off:.0e}"
    [row] = compare([Case("Hessian, human43, dense, `out=`", hessian, differences, against)], min(repeats, 10))
    assert isinstance(row, Comparison)
    rows: list[Row] = [replace(row, peer=scaled(row.peer, STATES / FEW))]
    first = f"first derivatives alone, {LEFT}"
    cases = [
        Case("Hessian, human43, dense, `out=`", hessian, left, f"Pinocchio's {first}", 3.0),
        Case(
            "Hessian, human43, dense, `out=`, two threads", lambda: hessian(2), left, f"Pinocchio's {first}, one thread"
        ),
    ]
    return [*rows, *compare(cases, repeats), *_symbolic(repeats), *_generated(repeats)]


def _differences(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """The blocks, from first derivatives at 4 n states around each."""
    step = STEP * np.eye(model.n)

    def slope(by: str) -> list[np.ndarray]:
        state = {"q": q[:, None], "v": v[:, None], "a": a[:, None]}
        up, down = (
            inverse_dynamics_derivatives(model, **state | {by: state[by] + sign * step}, threads=1) for sign in (1, -1)
        )
        fields = ("dtau_dq", "dtau_dv", "dtau_da")
        parts = ((getattr(up, x) - getattr(down, x)) / (2 * STEP) for x in fields)
        return [np.einsum("si,sjik->sjk", w, x) for x in parts]

    by_q, by_v = slope("q"), slope("v")
    return by_q[0], by_q[1], by_q[2], by_v[1]


def _off(x: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(x - expected).max() / np.abs(expected).max())


def _symbolic(repeats: int) -> list[Row]:
    """The human, as CasADi evaluates expressions."""
    model = human43()
    q, v, a, w = _state(model)
    out = inverse_dynamics_second_order(model, q, v, a, w)
    function = symbolic_hessian(model)
    columns = np.concatenate([q, v, a], axis=1)
    expected = np.array(function(columns[0], w[0])[1])[: model.n, : model.n]
    assert _off(out.d2_dqdq[0], expected) < 1e-10
    loop = _evaluating(function, columns[:FEW], w[:FEW])

    def ours() -> None:
        inverse_dynamics_second_order(model, q, v, a, w, out=out, threads=1)

    against = f"CasADi's symbolic Hessian and τ, evaluated by CasADi, {FEW} states, scaled to {STATES}"
    name = "τ, first derivatives and Hessian, human43, dense, `out=`"
    [row] = compare([Case(name, ours, loop, against)], min(repeats, 10))
    assert isinstance(row, Comparison)
    return [replace(row, peer=scaled(row.peer, STATES / FEW))]


def _evaluating(function: Any, columns: np.ndarray, weights: np.ndarray) -> Call:
    """A loop over states that fills the same two arrays again and again."""
    buffer, call = function.buffer()
    tau, second = np.empty(function.nnz_out(0)), np.empty(function.nnz_out(1))

    def loop() -> None:
        buffer.set_res(0, memoryview(tau))  # here, for it keeps neither of them alive
        buffer.set_res(1, memoryview(second))
        for x, y in zip(columns, weights, strict=True):
            buffer.set_arg(0, memoryview(x))
            buffer.set_arg(1, memoryview(y))
            call()

    return loop


def _generated(repeats: int) -> list[Row]:
    """The PUMA 560 in C, where there is a compiler."""
    if shutil.which("gcc") is None:
        return []
    model = puma560()
    q, v, a, w = _state(model)
    columns, weights = np.concatenate([q, v, a], axis=1), w
    out = inverse_dynamics_second_order(model, q, v, a, w)
    with tempfile.TemporaryDirectory() as folder:
        function = _compiled(symbolic_hessian(model), Path(folder))
        expected = np.array(function(columns[0], weights[0])[1])[: model.n, : model.n]
        assert _off(inverse_dynamics_hessian(model, q, v, a, w).d2_dqdq[0], expected) < 1e-10
        loop = _evaluating(function, columns, weights)

        def ours() -> None:
            inverse_dynamics_second_order(model, q, v, a, w, out=out, threads=1)

        against = "C of CasADi's symbolic Hessian and τ, gcc -O2, loop"
        return compare([Case("τ, first derivatives and Hessian, puma560, dense, `out=`", ours, loop, against)], repeats)


def _compiled(function: Any, folder: Path) -> Any:
    """The function as machine code."""
    code, library = folder / "second.c", folder / "second.so"
    generator = ca.CodeGenerator(code.name)
    generator.add(function)
    generator.generate(f"{folder}/")
    subprocess.run(["gcc", "-O2", "-march=native", "-shared", "-fPIC", code, "-o", library], check=True)
    return ca.external("second", str(library))
