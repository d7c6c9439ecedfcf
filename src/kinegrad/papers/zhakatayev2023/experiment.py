"""The experiment of :mod:`kinegrad.papers.zhakatayev2023`: exact and numerical sensitivities, their errors, their cost.

Joints are numbered from 1 in results, as in the paper, and from 0 in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import samples
from kinegrad.compare import numerical_jacobian
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.model import Model
from kinegrad.papers.report.disturbance import disturbed
from kinegrad.papers.report.page import Progress
from kinegrad.papers.zhakatayev2023.jacobianest import jacobianest
from kinegrad.papers.zhakatayev2023.peers import pinocchio_derivatives

__all__ = [
    "Entry",
    "EntryErrors",
    "Experiment",
    "MatrixErrors",
    "Spike",
    "Timing",
    "curve_errors",
    "experiment",
    "matrix_errors",
    "motion",
    "rms_errors",
    "spike_statement",
    "spikes",
    "topological_zeros",
    "torques_by",
]

Array = NDArray[np.float64]
INSTANTS, DURATION = 301, 3.0
PAPER_ANALYTIC, PAPER_NUMERICAL = 16.6e-3, 2.62e5  # s, section 6
BREAKDOWN = 1e-3  # of the largest value: an error above it shows in a plot
INPUTS = ("q", "v", "a")
REPEATS = 20  # of what takes milliseconds; the best counts


class Entry(NamedTuple):
    """Torque `torque` by coordinate, speed or acceleration (`by`: q, v, a) `joint`, numbered from 1."""

    torque: int
    by: str
    joint: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Which of the three matrices, row, column, from 0."""
        return INPUTS.index(self.by), self.torque - 1, self.joint - 1


FIGURE_4 = (Entry(20, "q", 5), Entry(30, "v", 25), Entry(42, "a", 22))
FIGURE_5 = (Entry(18, "q", 14), Entry(18, "v", 14), Entry(18, "a", 14))
BROKEN = FIGURE_5[0]  # where the paper sees spikes
SPIKES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # s, where q = sin 2πt vanishes


@dataclass(frozen=True)
class EntryErrors:
    """How far a method is off in one entry of figures 4 and 5, over all instants.

    Attributes
    ----------
    torque, joint : int
        From 1.
    by : {"q", "v", "a"}
    method : str
    largest_value : float
        Of the exact one.
    rms, largest : float
        Errors.
    at : float
        When the error is the largest, s.
    """

    torque: int
    by: str
    joint: int
    method: str
    largest_value: float
    rms: float
    largest: float
    at: float


@dataclass(frozen=True)
class MatrixErrors:
    """RMS errors over time of all entries of one matrix by one method.

    Attributes
    ----------
    by : {"q", "v", "a"}
    method : str
    instants : int
        How many were compared.
    largest, median : float
        Of the RMS errors of the entries that topology does not make zero.
    torque, joint : int
        Where the largest is, from 1.
    largest_value : float
        The largest exact entry.
    at_zeros : float
        The largest estimate where topology makes the entry zero.
    """

    by: str
    method: str
    instants: int
    largest: float
    median: float
    torque: int
    joint: int
    largest_value: float
    at_zeros: float


@dataclass(frozen=True)
class Spike:
    """∂Q18/∂q14 at an instant where q = sin 2πt vanishes, and what each method makes of it.

    `jacobianest_at_zero` is the same with q14 set to zero exactly.
    """

    t: float
    coordinate: float
    torque: float
    exact: float
    numdifftools: float
    jacobianest: float
    jacobianest_at_zero: float


@dataclass(frozen=True)
class Timing:
    """What all 301 instants cost.

    Attributes
    ----------
    what : str
    threads : int or None
    seconds : float
        For all instants; scaled to them if fewer were measured.
    measured : int
        How many instants were measured; 0 for a number quoted from the paper.
    evaluations : int or None
        Of inverse dynamics at each instant, for a numerical method.
    disturbed : bool
        Whether repeats differ more than on an idle machine.
    """

    what: str
    threads: int | None
    seconds: float
    measured: int
    evaluations: int | None = None
    disturbed: bool = False


@dataclass(frozen=True, eq=False)
class Experiment:
    """The motion, its exact derivatives, and the numerical ones that were computed.

    `curves[method]` has an array (N,) for each entry of figures 4 and 5; `matrices[method]` the instants and an array
    (instants, 3, n, n).
    """

    model: Model
    t: Array
    states: tuple[Array, Array, Array]
    torques: Array
    exact: Array
    curves: dict[str, dict[Entry, Array]]
    matrices: dict[str, tuple[NDArray[np.int64], Array]]


# --- the experiment ---------------------------------------------------------------------------------------------


def experiment(instants: int, adaptive: int, say: Progress, timings: list[Timing]) -> Experiment:
    model = samples.human43()
    t = np.linspace(0, DURATION, instants)
    states = motion(model.n, t)
    say("analytic", 0, 1)
    timings += _analytic_timings(model, states)
    result = inverse_dynamics_derivatives(model, *states)
    exact = np.stack([np.asarray(x) for x in (result.dtau_dq, result.dtau_dv, result.dtau_da)], axis=1)
    say("analytic", 1, 1)
    curves = _curves(model, states, say)
    matrices = _matrices(model, t, states, adaptive, say, timings)
    timings.append(Timing("the paper: analytic, MATLAB", None, PAPER_ANALYTIC, 0))
    timings.append(Timing("the paper: jacobianest, MATLAB", None, PAPER_NUMERICAL, 0))
    return Experiment(model, t, states, result.tau, exact, curves, matrices)


def motion(n: int, t: ArrayLike) -> tuple[Array, Array, Array]:
    """q = sin 2πt of all n coordinates, its first and its second derivative, (..., n) each."""
    w, at = 2 * np.pi, np.asarray(t, dtype=float)[..., None] * np.ones(n)
    return np.sin(w * at), w * np.cos(w * at), -(w**2) * np.sin(w * at)


def torques_by(model: Model, state: Sequence[Array], by: int) -> Callable[[Array], Array]:
    """Torques as a function of q, v or a alone, of one point or many."""

    def torques(x: Array) -> Array:
        q, v, a = (x if k == by else state[k] for k in range(3))
        return inverse_dynamics(model, q, v, a)

    return torques


def _curves(model: Model, states: Sequence[Array], say: Progress) -> dict[str, dict[Entry, Array]]:
    """The entries of figures 4 and 5 at all instants: differentiated with respect to their own coordinate alone."""
    entries = FIGURE_4 + FIGURE_5
    count = len(states[0])
    curves: dict[str, dict[Entry, Array]] = {name: {} for name in ("numdifftools", "jacobianest")}
    for number, entry in enumerate(entries):
        by, i, j = entry.place
        adaptive, relative = np.empty(count), np.empty(count)
        for k in range(count):
            state = [x[k] for x in states]
            torques = torques_by(model, state, by)

            def torque(x: Array, torques: Any = torques, at: Array = state[by], i: int = i, j: int = j) -> Array:
                point = at.copy()
                point[j] = x[0]
                return np.asarray(torques(point)[i : i + 1])

            adaptive[k] = numerical_jacobian(torque, state[by][j : j + 1], "adaptive")[0, 0]
            relative[k] = jacobianest(torques, state[by], [j])[i, 0]
            if k % 10 == 0:
                say("figures 4 and 5", number * count + k, len(entries) * count)
        curves["numdifftools"][entry] = adaptive
        curves["jacobianest"][entry] = relative
    say("figures 4 and 5", len(entries) * count, len(entries) * count)
    return curves


def _matrices(
    model: Model, t: Array, states: Sequence[Array], adaptive: int, say: Progress, timings: list[Timing]
) -> dict[str, tuple[NDArray[np.int64], Array]]:
    """All entries: by simple differences and by jacobianest's rule at all instants, by numdifftools at some."""
    n, everywhere = model.n, np.arange(len(t))
    calls = 0

    def counted(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def evaluate(x: Array) -> Array:
            nonlocal calls
            calls += x.size // n
            return function(x)

        return evaluate

    def simple(method: str) -> Callable[[Callable[[Array], Array], Array], Array]:
        return lambda f, x: numerical_jacobian(f, x, method, batched=True)

    methods: dict[str, tuple[str, NDArray[np.int64], Callable[[Callable[[Array], Array], Array], Array]]] = {
        "forward": ("forward differences", everywhere, simple("forward")),
        "central": ("central differences", everywhere, simple("central")),
        "jacobianest": ("jacobianest’s rule, in batches", everywhere, jacobianest),
        "numdifftools": (
            "numdifftools, adaptive", _chosen(t, adaptive), lambda f, x: numerical_jacobian(f, x, "adaptive")
        ),
    }  # fmt: skip
    found = {}
    for name, (what, chosen, jacobian) in methods.items():
        result = np.empty((len(chosen), 3, n, n))
        calls, seconds = 0, 0.0
        for row, k in enumerate(chosen):
            say(what, row, len(chosen))
            for by in range(3):
                function = counted(torques_by(model, [x[k] for x in states], by))
                start = perf_counter()
                result[row, by] = jacobian(function, states[by][k])
                seconds += perf_counter() - start
        say(what, len(chosen), len(chosen))
        found[name] = chosen, result
        total = seconds * len(t) / len(chosen)
        timings.append(Timing(what, None, total, len(chosen), round(calls / len(chosen))))
    return found


def _chosen(t: Array, count: int) -> NDArray[np.int64]:
    """That many instants: t = 0.5 s and 1 s, where the paper sees spikes, and others evenly spaced."""
    if count >= len(t):
        return np.arange(len(t))
    order = [int(np.argmin(np.abs(t - x))) for x in (0.5, 1.0)]
    order += [k for k in np.linspace(0, len(t) - 1, count + 2).astype(int).tolist()[1:-1] if k not in order]
    order += [k for k in range(len(t)) if k not in order]
    return np.sort(order[:count])


# --- what follows from it ---------------------------------------------------------------------------------------


def topological_zeros(model: Model) -> NDArray[np.bool_]:
    """Where topology makes derivatives zero: joints of which neither is above the other."""
    zeros = np.ones((model.n, model.n), dtype=bool)
    zeros[model.topology.pattern.rows, model.topology.pattern.cols] = False
    return zeros


def curve_errors(x: Experiment) -> list[EntryErrors]:
    rows = []
    for entry in FIGURE_4 + FIGURE_5:
        by, i, j = entry.place
        exact = x.exact[:, by, i, j]
        for method, curves in x.curves.items():
            error = np.abs(curves[entry] - exact)
            worst = int(error.argmax())
            rms = float(_rms(error))
            size = float(np.abs(exact).max())
            rows.append(EntryErrors(*entry, method, size, rms, float(error[worst]), float(x.t[worst])))
    return rows


def rms_errors(x: Experiment, method: str) -> Array:
    """Root of the mean square error over time of every entry, shape (3, n, n)."""
    chosen, estimates = x.matrices[method]
    return _rms(estimates - x.exact[chosen])


def _rms(errors: Array) -> Array:
    root: Array = np.sqrt((errors**2).mean(axis=0))
    return root


def matrix_errors(x: Experiment) -> list[MatrixErrors]:
    rows = []
    for method, (chosen, estimates) in x.matrices.items():
        rows += _errors_of(x, method, chosen, estimates)
        if method == "jacobianest":  # again without the instants at which it breaks down
            away = ~np.isin(chosen, [int(np.argmin(np.abs(x.t - time))) for time in SPIKES])
            if away.any():
                rows += _errors_of(x, "jacobianest_elsewhere", chosen[away], estimates[away])
    return rows


def _errors_of(x: Experiment, method: str, chosen: NDArray[np.int64], estimates: Array) -> list[MatrixErrors]:
    zeros = topological_zeros(x.model)
    rows = []
    for k, by in enumerate(INPUTS):
        rms = _rms(estimates[:, k] - x.exact[chosen, k])
        i, j = np.unravel_index(int(np.where(zeros, -1, rms).argmax()), rms.shape)
        rows.append(
            MatrixErrors(
                by, method, len(chosen), float(rms[i, j]), float(np.median(rms[~zeros])), int(i) + 1, int(j) + 1,
                float(np.abs(x.exact[:, k]).max()), float(np.abs(estimates[:, k][:, zeros]).max()),
            )
        )  # fmt: skip
    return rows


def spikes(x: Experiment) -> list[Spike]:
    by, i, j = BROKEN.place
    rows = []
    for time in SPIKES:
        k = int(np.argmin(np.abs(x.t - time)))
        state = [y[k] for y in x.states]
        rounded = state[by].copy()
        rounded[j] = 0.0
        rows.append(
            Spike(
                time, float(state[by][j]), float(x.torques[k, i]), float(x.exact[k, by, i, j]),
                float(x.curves["numdifftools"][BROKEN][k]), float(x.curves["jacobianest"][BROKEN][k]),
                float(jacobianest(torques_by(x.model, state, by), rounded, [j])[i, 0]),
            )
        )  # fmt: skip
    return rows


def _analytic_timings(model: Model, states: tuple[Array, Array, Array]) -> list[Timing]:
    """Both formulations on one thread and two, one call per instant, and Pinocchio: in turn, the best of many."""
    count = len(states[0])

    def whole(method: str, threads: int) -> Callable[[], object]:
        return lambda: inverse_dynamics_derivatives(model, *states, method=method, threads=threads)

    def singly() -> None:
        for state in zip(*states, strict=True):
            inverse_dynamics_derivatives(model, *state, threads=1)

    work: list[tuple[str, int, Callable[[], object]]] = [
        ("analytic, spatial", 1, whole("spatial", 1)),
        ("analytic, spatial", 2, whole("spatial", 2)),
        ("analytic, the paper’s recursion", 1, whole("lagrange", 1)),
        ("analytic, the paper’s recursion", 2, whole("lagrange", 2)),
        ("analytic, spatial, one call per instant", 1, singly),
    ]
    if peer := pinocchio_derivatives(model, *states):
        work.append((f"Pinocchio {peer[0]}, one call per instant", 1, peer[1]))
    times: list[list[float]] = [[] for _ in work]
    for _ in range(REPEATS + 1):  # the first loads the kernels
        for k, (_, _, function) in enumerate(work):
            start = perf_counter()
            function()
            times[k].append(perf_counter() - start)
    return [
        Timing(what, threads, min(each), count, disturbed=disturbed(each[1:]))
        for (what, threads, _), each in zip(work, times, strict=True)
    ]


def spike_statement(spikes: Sequence[Spike], number: Callable[[float], str]) -> str:
    """What :attr:`Report.spike_statement` says, numbers as `number` writes them."""
    size = max(abs(spike.exact) for spike in spikes)
    sentences = []
    for method, name in (("numdifftools", "numdifftools"), ("jacobianest", "the step rule of jacobianest")):
        wrong = max(abs(getattr(spike, method) - spike.exact) for spike in spikes if spike.t in (0.5, 1.0))
        verb = "breaks down" if wrong > BREAKDOWN * size else "does not break down"
        error = f"its largest error there is {number(wrong)} N·m/rad, where the value is {number(size)}"
        sentences.append(f"At t = 0.5 s and 1 s {name} {verb}: {error}.")
    return " ".join(sentences)
