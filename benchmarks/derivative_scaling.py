"""Scaling of derivatives: ∂τ/∂(q, v, a) against the number of joints

Time of one state, of 64 of q = sin 2πt in one call with `out=`, one thread, for chains and for binary trees of n
bars, against Pinocchio's `computeRNEADerivatives` in a Python loop that leaves the matrices in Pinocchio's memory.
The exponent k of time ∝ nᵏ is fitted to the best times by least squares in logarithms.  A chain's matrices are full,
so that nothing can be less than n²; a binary tree has about n log₂ n pairs of joints on one path, which packed
matrices hold, while dense ones are n² numbers, most of them zero.  Joints are numbered depth-first: Pinocchio's
derivatives are wrong otherwise (https://github.com/stack-of-tasks/pinocchio/issues/1897).  The last row compares the
time per entry that topology does not make zero of a chain that is far larger than the caches with that of the
43-degree-of-freedom human.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.derivatives import Work, scaled
from benchmarks.profile import in_turn
from benchmarks.scaling import SIZES, exponent
from benchmarks.timing import Comparison, Measurement, Row, compare
from kinegrad import Model
from kinegrad.samples import human43, spatial_chain

STATES = 64
LONG = 512


def binary_tree(n: int) -> Model:
    """The bars of the chain, each carrying two halves of the rest, numbered depth-first."""
    parents: list[int] = []

    def grow(size: int, parent: int) -> None:
        if size:
            link = len(parents)
            parents.append(parent)
            grow(size // 2, link)
            grow((size - 1) // 2, link)

    grow(n, -1)
    return spatial_chain(n).replace(name=f"binary_tree({n})", parents=parents)


VARIANTS: tuple[tuple[str, Callable[[int], Model], str, bool], ...] = (
    ("∂τ, chain", spatial_chain, "spatial", False),
    ("∂τ by `lagrange`, chain", spatial_chain, "lagrange", False),
    ("∂τ, binary tree, packed", binary_tree, "spatial", True),
    ("∂τ, binary tree, dense", binary_tree, "spatial", False),
    ("∂τ by `lagrange`, binary tree, packed", binary_tree, "lagrange", True),
)


def run(repeats: int) -> list[Row]:
    rows: list[Row] = []
    for name, build, method, packed in VARIANTS:
        times = [_time(f"{name}, n = {n}", build(n), method, packed, repeats) for n in SIZES]
        ours, peer = exponent([row.ours.best for row in times]), exponent([row.peer.best for row in times])
        note = f"n = {SIZES[0]}…{SIZES[-1]}; Pinocchio's is {peer:.2f}"
        rows += [*times, Measurement(f"{name}, exponent of n", ours, note=note)]
    return [*rows, _per_entry(repeats)]


def _per_entry(repeats: int) -> Measurement:
    works = {model.name: Work(model, STATES) for model in (spatial_chain(LONG), human43())}
    times = in_turn({name: work.reusing(packed=True) for name, work in works.items()}, repeats)
    chain, human = (1e9 * times[name].best / (STATES * work.model.topology.nonzeros) for name, work in works.items())
    note = f"{chain:.2f} ns against {human:.2f} ns"
    return Measurement(f"∂τ, packed, time per entry, chain of {LONG} against the human", chain / human, "×", 1.5, note)


def _time(name: str, model: Model, method: str, packed: bool, repeats: int) -> Comparison:
    work = Work(model, STATES)
    [row] = compare([work.case(name, work.reusing(method=method, packed=packed))], repeats)
    assert isinstance(row, Comparison)
    return replace(row, ours=scaled(row.ours, 1 / STATES), peer=scaled(row.peer, 1 / STATES))
