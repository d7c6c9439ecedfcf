"""Design parameters: ∂a/∂p and ∂τ/∂p of a chain, against the number of links and of parameters

Masses of p links spread over a chain of n bars, one thread, fresh results; time of one state, alone or of 64 of
q = sin 2πt in one call.  The derivative is that of the O(n) recursion itself, so that time is O(pn): the exponent k of
time ∝ nᵏ is fitted to the best times by least squares in logarithms, and so is that of p.  The peer is what it
replaces: central differences of `forward_dynamics` or `inverse_dynamics` itself, 2p of them, models made beforehand.
"Lengths" are placements of p joints, which move all that is outboard; masses move nothing.  A single
parameter is that of the link or joint in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.derivatives import scaled
from benchmarks.scaling import exponent
from benchmarks.setting import sinusoid
from benchmarks.timing import Case, Comparison, Measurement, Row, compare
from kinegrad import (
    Design,
    forward_dynamics,
    forward_dynamics_design_derivatives,
    inverse_dynamics,
    inverse_dynamics_design_derivatives,
)
from kinegrad.samples import spatial_chain

LINKS = (8, 16, 32, 64, 128, 256, 512)
PARAMETERS = (1, 2, 4, 8, 16, 32, 64)
P, N = 8, 64  # parameters of the chains that grow, links of the one whose parameters do
STATES = (1, 64)
STEP = 1e-4  # of a mass, kg, or a length, m
TARGET = 1.5  # times as fast as differences, of a batch


def run(repeats: int) -> list[Row]:
    rows: list[Row] = []
    lengths = f"lengths, one state of {STATES[-1]}, n = {N}, p = {P}"
    rows += [
        _time(f"∂a/∂p, {lengths}", N, P, STATES[-1], repeats, what="length"),
        _time(f"∂τ/∂p, {lengths}", N, P, STATES[-1], repeats, what="length", inverse=True),
        _time(f"∂τ/∂p, one state of {STATES[-1]}, n = {N}, p = {P}", N, P, STATES[-1], repeats, inverse=True),
        _time(f"∂a/∂p, a length, one state of {STATES[-1]}, n = {N}, p = 1", N, 1, STATES[-1], repeats, what="length"),
        _time(f"∂τ/∂p, one state of {STATES[-1]}, n = {N}, p = 1", N, 1, STATES[-1], repeats, inverse=True),
        _time(
            f"∂τ/∂p, a length, one state of {STATES[-1]}, n = {N}, p = 1",
            N, 1, STATES[-1], repeats, what="length", inverse=True,
        ),
    ]  # fmt: skip
    for states in STATES:
        what = "∂a/∂p, one state" if states == 1 else f"∂a/∂p, one state of {states}"
        chains = [_time(f"{what}, n = {n}, p = {P}", n, P, states, repeats) for n in LINKS]
        designs = [_time(f"{what}, n = {N}, p = {p}", N, p, states, repeats) for p in PARAMETERS]
        rows += [*chains, _exponent(f"{what}, exponent of n", chains, LINKS, 1.1)]
        rows += [*designs, _exponent(f"{what}, exponent of p", designs, PARAMETERS)]
    return rows + _of_which(repeats)


def _of_which(repeats: int) -> list[Row]:
    """What values and slopes of a batch along one parameter take: why one parameter gains little."""
    model, states = spatial_chain(N), STATES[-1]
    design = Design(model, [f"{model.link_names[N // 2]}.mass"])
    q, v, _ = sinusoid(N, states)
    state = 0.3 * q, 0.1 * v, q
    at = (*state[:2], forward_dynamics(model, *state))
    rows: list[Row] = []
    for name, values, slopes, given in (
        ("a", forward_dynamics, forward_dynamics_design_derivatives, state),
        ("τ", inverse_dynamics, inverse_dynamics_design_derivatives, at),
    ):
        ours, peer = partial(values, model, *given, threads=1), partial(slopes, design, *given, threads=1)
        what = f"{name} itself, one state of {states}, n = {N}"
        [row] = compare([Case(what, ours, lambda peer=peer: (peer(), None)[1], f"∂{name}/∂p, p = 1")], repeats)
        assert isinstance(row, Comparison)
        rows.append(replace(row, ours=scaled(row.ours, 1 / states), peer=scaled(row.peer, 1 / states)))
    return rows


def _exponent(name: str, times: list[Comparison], sizes: Sequence[int], target: float | None = None) -> Measurement:
    found = exponent([row.ours.best for row in times], sizes)
    return Measurement(name, found, target=target, note=f"{sizes[0]}…{sizes[-1]}")


def _time(
    name: str, n: int, p: int, states: int, repeats: int, *, what: str = "mass", inverse: bool = False
) -> Comparison:
    model = spatial_chain(n)
    where = np.linspace(0, n - 1, p).round().astype(int) if p > 1 else np.array([n // 2])
    if what == "mass":
        design = Design(model, [f"{model.link_names[k]}.mass" for k in where])
    else:
        design = Design(model, [f"{model.joint_names[k]}.placement.z" for k in where])
    values = inverse_dynamics if inverse else forward_dynamics
    derivatives = inverse_dynamics_design_derivatives if inverse else forward_dynamics_design_derivatives
    target = TARGET if states > 1 else None
    q, v, _ = sinusoid(n, 64)
    q, v, tau = 0.3 * q[:states], 0.1 * v[:states], q[:states]
    sides = [[design.at(design.values + e).model for e in STEP * side * np.eye(p)] for side in (1, -1)]

    def ours() -> np.ndarray:
        return derivatives(design, q, v, tau, threads=1)

    def differences() -> np.ndarray:
        up, down = ([values(m, q, v, tau, threads=1) for m in side] for side in sides)
        return (np.stack(up, axis=-1) - np.stack(down, axis=-1)) / (2 * STEP)

    exact, expected = ours(), differences()
    off = np.abs(exact - expected).max() / np.abs(exact).max()
    against = f"central differences, off by {off:.0e}"
    [row] = compare([Case(name, ours, lambda: (differences(), None)[1], against, target)], repeats)
    assert isinstance(row, Comparison)
    return replace(row, ours=scaled(row.ours, 1 / states), peer=scaled(row.peer, 1 / states))
