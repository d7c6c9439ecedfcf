"""A model's constants as kernels want them, and their slopes along design parameters."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels import width
from kinegrad._kernels.finite import LARGEST, SMALLEST
from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.tangent import Slopes
from kinegrad._kernels.tree_solve import PANEL
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.model.numbers import STEP

Array = NDArray[np.float64]

VARIABLE = (
    "placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature", "pitch",
)  # fmt: skip
FAR = 16.0  # times the inertia about the axis: more would cost more than four bits of it


def mechanism(model: Model) -> tuple[Any, ...]:
    """The model's constants in the order of :class:`Mechanism`, computed once per model."""
    found = model.__dict__.get("_mechanism")
    if found is None:
        if width.WRONG:
            raise InputError(width.WRONG)
        if model.carries_slopes:
            raise InputError(
                f"model {shown(model.name)} is made of numbers that carry slopes, which only what makes models takes; "
                "expected a model of plain numbers"
            )
        with np.errstate(all="ignore"):  # constants that overflow are not tame, and so their results looked at
            found = tuple(_mechanism(model, np.array([joint.pitch for joint in model.joints])))
        object.__setattr__(model, "_mechanism", found)
        object.__setattr__(model, "_tame", found if _ordinary(found) else None)
    return found


def tame(model: Model) -> tuple[Any, ...] | None:
    """The same, if with them ordinary states have finite results, as ``_kernels/finite.py`` says; else None."""
    found: tuple[Any, ...] | None = model.__dict__.get("_tame")
    if found is None:
        mechanism(model)
        found = model.__dict__["_tame"]
    return found


def _ordinary(constants: tuple[Any, ...]) -> bool:
    for x in constants:
        if isinstance(x, np.ndarray) and x.dtype == np.float64:
            size = np.abs(x[x != 0.0])
            if not ((size >= SMALLEST) & (size <= LARGEST)).all():
                return False
    return True


def _mechanism(model: Any, pitch: NDArray[Any]) -> Mechanism:
    """From a Model, or from anything with its fields, complex ones too: the arithmetic is analytic."""
    aligned = [_align(np.array(joint.axis)) for joint in model.joints]
    sign, align = np.array([s for s, _ in aligned]), np.array([A for _, A in aligned])
    kinds = np.array([joint.kind for joint in model.joints])
    turn = np.where(kinds == "prismatic", 0.0, sign)
    slide = np.where(kinds == "prismatic", sign, sign * pitch)
    P, F = _slide(model.placement @ align, align.transpose(0, 2, 1) @ model.tip, model)
    X = np.where((model.parents >= 0)[:, None, None], F[model.parents] @ P, P)
    R, p = F[:, :3, :3], F[:, :3, 3]
    com = np.einsum("nij,nj->ni", R, model.com) + p
    inertia = R @ model.inertia @ R.transpose(0, 2, 1)
    second = 0.5 * np.trace(model.inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) - model.inertia
    first = model.mass[:, None] * model.com
    second = second + first[:, :, None] * model.com[:, None, :]
    massive = np.real(model.mass) > 0
    return Mechanism(
        parent=np.array(model.parents),
        rate=np.column_stack([turn, slide]),
        X=_rows(X),
        F=_rows(F),
        P=_rows(P),
        inertia=np.column_stack([model.mass, com, _symmetric(inertia)]),
        J=np.column_stack([_symmetric(second), first, model.mass]),
        massive=massive.astype(np.int64),
        passive=np.column_stack([model.stiffness, model.rest, model.damping, model.armature]),
        gravity=np.array(model.gravity)[None],
        apart=_apart(model.parents, X, slide),
    )


def mechanisms(models: Sequence[Model]) -> tuple[Any, ...]:
    """Constants of models alike in structure, (models, n·k) each.  Links massive, or apart, in any count as such."""
    each = [Mechanism(*mechanism(model)) for model in models]
    flags = {what: np.max([getattr(m, what) for m in each], axis=0) for what in ("massive", "apart")}
    rows = {what: np.array([getattr(m, what).ravel() for m in each]) for what in Slopes._fields}
    return tuple(each[0]._replace(**flags, **rows))


def variable_fields(model: Model) -> dict[str, Array]:
    """What of a model may vary along design parameters."""
    fields = {what: getattr(model, what) for what in VARIABLE if what != "pitch"}
    fields["pitch"] = np.array([joint.pitch for joint in model.joints])
    return fields


def slopes(model: Model, variation: dict[str, Array], directions: int) -> tuple[Array, ...]:
    """Slopes of the kernels' constants, (directions, n·k) each in the order of :class:`Slopes`.

    `variation` holds slopes of model fields, (directions, *shape of the field); of joint pitches as ``"pitch"``.
    By complex step through :func:`_mechanism`, which is exact.
    """
    rows = []
    for k in range(directions):
        fields = variable_fields(model)
        moved = {what: x + 1j * STEP * variation[what][k] if what in variation else x for what, x in fields.items()}
        varied = SimpleNamespace(joints=model.joints, parents=model.parents, **moved)
        constants = _mechanism(varied, moved["pitch"])
        rows.append([np.imag(getattr(constants, what)).ravel() / STEP for what in Slopes._fields])
    return tuple(np.ascontiguousarray(column) for column in map(np.array, zip(*rows, strict=True)))


def flags_if_varied(constants: tuple[Any, ...], slopes: tuple[Array, ...]) -> tuple[Any, ...]:
    """Constants with which kernels skip neither links that a direction gives mass nor joints that it moves apart."""
    m, dm = Mechanism(*constants), Slopes(*slopes)

    def varied(what: str, columns: slice) -> NDArray[np.bool_]:
        slope = getattr(dm, what)
        found: NDArray[np.bool_] = slope.reshape(len(slope), *getattr(m, what).shape)[:, :, columns].any(axis=(0, 2))
        return found

    massive = np.where(varied("inertia", slice(None)), 1, m.massive)
    moved = varied("X", slice(9, 12)) | varied("rate", slice(1, 2))
    return tuple(m._replace(massive=massive, apart=np.where(moved & (m.parent >= 0), 1, m.apart)))


def pairs(model: Model) -> int:
    """How many (joint, ancestor or itself) pairs there are, counted once per model."""
    found: int | None = model.__dict__.get("_pairs")
    if found is None:
        found = (model.topology.nonzeros + model.n) // 2
        object.__setattr__(model, "_pairs", found)
    return found


def places(model: Model, layout: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where kernels put matrix entries: columns of (i, j) and (j, i), (pairs, 2), and the first pair of each i, (n,).

    Pairs are ordered i = n−1 … 0, j from i up to the root.  The layout is ``"dense"``, rows of n, or ``"packed"``, the
    topological non-zeros alone.  Made once per model.
    """
    key = f"_places_{layout}"
    found: tuple[NDArray[np.int64], NDArray[np.int64]] | None = model.__dict__.get(key)
    if found is None:
        n, topology = model.n, model.topology
        each = [(i, j) for i in reversed(range(n)) for j in (i, *reversed(topology.ancestors(i)))]
        i, j = np.array(each, dtype=np.int64).T
        number = np.arange(n * n).reshape(n, n)
        if layout == "packed":
            number[topology.pattern.rows, topology.pattern.cols] = np.arange(topology.nonzeros)
        first = np.searchsorted(-i, -np.arange(n))
        found = np.stack([number[i, j], number[j, i]], axis=1), first.astype(np.int64)
        object.__setattr__(model, key, found)
    return found


def reach(model: Model) -> NDArray[np.int64]:
    """Whether joint k and a column of each panel are on one path, (n, panels), as ``_kernels/tree_solve.py`` wants it.

    Made once per model.
    """
    found: NDArray[np.int64] | None = model.__dict__.get("_reach")
    if found is None:
        pattern = model.topology.pattern
        found = np.zeros((model.n, -(-model.n // PANEL)), dtype=np.int64)
        found[pattern.rows, pattern.cols // PANEL] = 1
        object.__setattr__(model, "_reach", found)
    return found


def plan(model: Model, loaded: bool) -> NDArray[np.int64]:
    """What ``_kernels/rnea_derivatives.py`` wants to know of each joint, (n, 2), made once per model.

    Home, the joint whose record has the sums of the subtree; quiet, whether no joint up to the root turns.
    """
    key = f"_plan_{loaded}"
    found: NDArray[np.int64] | None = model.__dict__.get(key)
    if found is None:
        m = Mechanism(*mechanism(model))
        found = np.zeros((model.n, 2), dtype=np.int64)
        found[:, 0] = np.arange(model.n)
        for i in reversed(range(model.n)):
            children = np.flatnonzero(m.parent == i)
            if not loaded and not m.massive[i] and len(children) == 1:
                found[i, 0] = found[children[0], 0]
        for i, p in enumerate(m.parent):
            found[i, 1] = m.rate[i, 0] == 0.0 and (p < 0 or found[p, 1])
        object.__setattr__(model, key, found)
    return found


def blanks(model: Model, layout: str) -> NDArray[np.int64]:
    """Which blocks of W columns topology makes zero, (W, blocks), as ``_kernels/stream.py`` wants it; once per model.

    The layout is one of :func:`places`, or ``"full"``, where nothing is known to be zero.
    """
    key = f"_blanks_{layout}"
    found: NDArray[np.int64] | None = model.__dict__.get(key)
    if found is None:
        columns = model.topology.nonzeros if layout == "packed" else model.n**2
        lanes, blocks = width.WIDTH, columns // width.WIDTH
        zero = np.full(columns + lanes, layout == "dense")
        if layout == "dense":
            zero[places(model, layout)[0]] = False
        each = [zero[skip:][: blocks * lanes].reshape(blocks, lanes).all(axis=1) for skip in range(lanes)]
        found = np.array(each, dtype=np.int64)
        object.__setattr__(model, key, found)
    return found


def without_springs(model: Model) -> Model:
    """The same model with slack springs, made once per model."""
    if not model.stiffness.any():
        return model
    found: Model | None = model.__dict__.get("_without_springs")
    if found is None:
        found = model.replace(stiffness=np.zeros(model.n))
        object.__setattr__(model, "_without_springs", found)
    return found


def _slide(P: NDArray[Any], F: NDArray[Any], model: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Joint frames, some of them moved along their own axes to where the link is.

    Any point of a joint's axis may be the origin of its frame.  Where the centre of mass is far from it along the axis,
    the inertia about the axis, which is all that counts, is the small difference of large numbers.
    """
    R = np.real(F[:, :3, :3])
    x, y, z = (np.einsum("nij,nj->ni", R, np.real(model.com)) + np.real(F[:, :3, 3])).T
    own = np.einsum("ni,nij,nj->n", R[:, 2], np.real(model.inertia), R[:, 2])
    mass = np.real(model.mass)
    far = (mass > 0) & (mass * z**2 > FAR * (own + mass * (x**2 + y**2)))
    slid = np.where(far, z, 0.0)
    P, F = P.copy(), F.copy()
    P[:, :3, 3] += slid[:, None] * P[:, :3, 2]
    F[:, 2, 3] -= slid
    return P, F


def _apart(parents: NDArray[np.int64], X: NDArray[Any], slide: NDArray[Any]) -> NDArray[np.int64]:
    """1 where the origin of a joint frame can be away from that of its parent."""
    apart: NDArray[np.bool_] = (parents >= 0) & (X[:, :3, 3].any(axis=1) | (slide != 0))
    return apart.astype(np.int64)


def _align(axis: Array) -> tuple[float, Array]:
    """A sign and a rotation that takes z to sign·axis; the identity where it can be."""
    align = np.eye(4)
    if abs(axis[2]) == 1.0:
        return float(axis[2]), align
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    align[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    return 1.0, align


def _rows(T: Array) -> Array:
    """(n, 4, 4) transforms as (n, 12): rotation row by row, translation."""
    return np.ascontiguousarray(np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1))


def _symmetric(S: Array) -> Array:
    return np.stack([S[:, 0, 0], S[:, 1, 1], S[:, 2, 2], S[:, 0, 1], S[:, 0, 2], S[:, 1, 2]], axis=1)
