"""A model's structure as the kernels of derivatives want it: tables of whole numbers, made once per model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.joint_frames import joint_frames
from kinegrad._engine.kernel_constants import mechanism
from kinegrad._kernels.aba_derivatives import slots as acceleration_slots
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.stream import BLANK, MIXED, RUN
from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.rnea_derivatives import SPACE
from kinegrad._kernels.rnea_derivatives import slots as torque_slots
from kinegrad._kernels.tree_solve import PANEL
from kinegrad.model import Model, Topology

Integers = NDArray[np.int64]


def once(model: Model, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` makes for a model, made once and kept with it under a key."""
    known: dict[Hashable, Any] | None = model.__dict__.get("_tables")
    if known is None:
        known = {}
        object.__setattr__(model, "_tables", known)
    if key not in known:
        known[key] = make()
    return known[key]


def pairs(model: Model) -> int:
    """How many (joint, ancestor or itself) pairs there are, counted once per model."""
    found: int = once(model, "pairs", lambda: (model.topology.nonzeros + model.n) // 2)
    return found


def places(model: Model, layout: str) -> tuple[Integers, Integers]:
    """Where kernels put matrix entries: columns of (i, j) and (j, i), (pairs, 2), and the first pair of each i, (n,).

    Pairs are ordered i = n−1 … 0, j from i up to the root.  The layout is ``"dense"``, rows of n, or ``"packed"``, the
    topological non-zeros alone.  Made once per model.
    """
    found: tuple[Integers, Integers] = once(model, ("places", layout), lambda: _places(model, layout))
    return found


def _places(model: Model, layout: str) -> tuple[Integers, Integers]:
    packed = model.topology.pattern if layout == "packed" else None
    return tree_places(model.topology, packed)


def tree_places(topology: Topology, packed: Any = None) -> tuple[Integers, Integers]:
    """The same of any tree; with a pattern `packed`, by its entries alone."""
    n = topology.n
    each = [(i, j) for i in reversed(range(n)) for j in (i, *reversed(topology.ancestors(i)))]
    i, j = np.array(each, dtype=np.int64).T
    number = np.arange(n * n).reshape(n, n)
    if packed is not None:
        number[packed.rows, packed.cols] = np.arange(len(packed.rows))
    first = np.searchsorted(-i, -np.arange(n))
    return np.stack([number[i, j], number[j, i]], axis=1), first.astype(np.int64)


def tree(model: Model) -> tuple[Integers, Integers, Integers]:
    """The tables first, above and steps of ``_kernels/tree_solve.py``; once per model."""
    found: tuple[Integers, Integers, Integers] = once(model, "tree", lambda: tree_of(model.topology))
    return found


def tree_of(topology: Topology) -> tuple[Integers, Integers, Integers]:
    """The same of any tree."""
    place, first = tree_places(topology)
    parents, steps, k = topology.parents, [], topology.n - 1
    while k >= 0:  # from the leaves, where rows are longest, so that of an odd number the shortest is left alone
        second = -1
        if k > 0 and parents[k] == k - 1:
            k, second = k - 1, first[k]
        steps.append((k, first[k], 1 + len(topology.ancestors(k)), second))
        k -= 1
    return first, place[:, 0] % topology.n, np.array(steps[::-1], dtype=np.int64)


def plan(model: Model, loaded: bool) -> Integers:
    """Home and quiet of each joint, (n, 2), as ``_kernels/rnea_derivatives.py`` says; once per model, with and without
    loads."""
    found: Integers = once(model, ("plan", loaded), lambda: _plan(model, loaded))
    return found


def _plan(model: Model, loaded: bool) -> Integers:
    m = Mechanism(*mechanism(model))
    children: list[list[int]] = [[] for _ in range(model.n)]
    found = np.zeros((model.n, 2), dtype=np.int64)
    for i, p in enumerate(m.parent):
        found[i] = i, m.rate[i, 0] == 0.0 and (p < 0 or found[p, 1])
        if p >= 0:
            children[p].append(i)
    for i in reversed(range(model.n)):
        if not loaded and not m.massive[i] and len(children[i]) == 1:
            found[i, 0] = found[children[i][0], 0]
    return found


def gradient_plan(model: Model) -> tuple[Integers, int]:
    """The argument `plan` of ``rnea_gradient.py``; how many records; once per model."""
    found: tuple[Integers, int] = once(model, ("gradient",), lambda: _gradient_plan(model.parents))
    return found


def _gradient_plan(parents: Integers) -> tuple[Integers, int]:
    """Joints from the last to the first: to its parent each leaves its record, unless that has one already."""
    found = np.full((len(parents), 4), -1, dtype=np.int64)
    free: list[int] = []
    count = 0
    for i in reversed(range(len(parents))):
        record, parent, leaf = int(found[i, 0]), parents[i], found[i, 0] < 0
        if leaf:
            if not free:
                free, count = [count], count + 1
            record = free.pop()
        first = parent < 0 or found[parent, 0] < 0
        if parent >= 0 and first:
            found[parent, 0] = record
        else:
            free.append(record)
        found[i] = record, record if first else found[parent, 0], leaf, first
    return found, count


def product_tables(model: Model) -> tuple[tuple[Any, ...], int]:
    """The arguments `plan`, `hinge`, `rate`, `F` and `inertia` of ``rnea_hessian_product.py``; how many records; once
    per model."""
    found: tuple[tuple[Any, ...], int] = once(model, "product", lambda: _product_tables(model))
    return found


def _product_tables(model: Model) -> tuple[tuple[Any, ...], int]:
    plan, records = gradient_plan(model)
    frames = joint_frames(Mechanism(*mechanism(model)))
    plan = np.column_stack([plan, frames.kinds])
    return (plan, frames.hinge, frames.rate, frames.F, frames.inertia), records


def torque_tables(model: Model, layout: str, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    """The arguments `plan`, `pairs` and `past` of the kernel of ∂τ, ``"dense"`` or ``"packed"``, and the slots that it
    needs; once per model."""
    found: tuple[tuple[Any, ...], int] = once(
        model, ("torque", layout, loaded, stream), lambda: _torque_tables(model, layout, loaded, stream)
    )
    return found


def _torque_tables(model: Model, layout: str, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    place, first = places(model, "packed")
    where = _where(model, layout)
    numbers = place + SPACE * _rows(model)[place], first, where
    return (plan(model, loaded), numbers, (stream, block_kinds(where, _zero(model)))), torque_slots(
        model.n, pairs(model)
    )


def hessian_tables(model: Model, layout: str, loaded: bool, stream: bool) -> tuple[Any, ...]:
    """The arguments `plan`, `pairs` and `past` of the kernels of second derivatives; once per model."""
    key = ("hessian", layout, loaded, stream)
    found: tuple[Any, ...] = once(model, key, lambda: _hessian_tables(model, layout, loaded, stream))
    return found


def _hessian_tables(model: Model, layout: str, loaded: bool, stream: bool) -> tuple[Any, ...]:
    (homes, (place, first, where), (_, kind)), _ = torque_tables(model, layout, loaded, stream)
    deeper = np.arange(_zero(model) + 1)  # slots of (j, i) by those of (i, j)
    deeper[place[:, 1]] = place[:, 0]
    lower = deeper[where]
    return homes, (place, first, where, lower), (stream, kind, block_kinds(lower, _zero(model)))


def acceleration_tables(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    """The arguments `plan`, `pairs`, `streaming` of the kernel of ∂a, and the slots that it needs; once per model."""
    found: tuple[tuple[Any, ...], int] = once(
        model,
        ("acceleration", loaded, stream),
        lambda: (
            (
                plan(model, loaded),
                (places(model, "dense")[0], tree(model), reach(model.topology), _blank(model)),
                stream,
            ),
            acceleration_slots(model.n, pairs(model)),
        ),
    )
    return found


def _acceleration_pairs(model: Model) -> tuple[Any, ...]:
    return places(model, "dense")[0], tree(model), reach(model.topology), _blank(model)


def _rows(model: Model) -> Integers:
    """The row of each entry that topology does not make zero, (non-zeros,)."""
    return np.asarray(model.topology.pattern.rows, dtype=np.int64)


def _where(model: Model, layout: str) -> Integers:
    """Where ``_kernels/rnea_derivatives.py`` keeps the entry of each column, (columns,): slots after the first."""
    pattern = model.topology.pattern
    where = np.arange(model.topology.nonzeros) + SPACE * _rows(model)
    if layout == "dense":
        dense = np.full((model.n, model.n), _zero(model))
        dense[pattern.rows, pattern.cols] = where
        where = dense.ravel()
    return where


def _zero(model: Model) -> int:
    """The slot of the zero after all entries."""
    return model.topology.nonzeros + SPACE * model.n


def block_kinds(where: Integers, zero: int = -1) -> Integers:
    """What is in blocks of W columns, (W, blocks), as ``_kernels/lanes/stream.py`` says; `zero`, the slot of a zero."""
    blocks = len(where) // WIDTH
    padded = np.concatenate([where, np.zeros(WIDTH, dtype=np.int64)])
    kind = np.full((WIDTH, blocks), MIXED, dtype=np.int64)
    for skip in range(WIDTH):
        slots = padded[skip:][: blocks * WIDTH].reshape(blocks, WIDTH)
        kind[skip, (slots == slots[:, :1] + np.arange(WIDTH)).all(axis=1)] = RUN
        kind[skip, (slots == zero).all(axis=1)] = BLANK
    return kind


def reach(topology: Topology) -> Integers:
    """Whether joint k and a column of each panel are on one path, (n, panels), as ``_kernels/tree_solve.py`` says."""
    pattern, n = topology.pattern, topology.n
    found = np.zeros((n, -(-n // PANEL)), dtype=np.int64)
    found[pattern.rows, pattern.cols // PANEL] = 1
    return found


def _blank(model: Model) -> Integers:
    """The entries, row by row, that topology makes zero."""
    pattern = model.topology.pattern
    zero = np.ones((model.n, model.n), dtype=bool)
    zero[pattern.rows, pattern.cols] = False
    return np.flatnonzero(zero)
