"""A model's constants as kernels want them, and their slopes along design parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels.compiler import width
from kinegrad._kernels.lanes.finite import LARGEST, SMALLEST
from kinegrad._kernels.mechanism import FLAGS, VARIED, Mechanism, Slopes
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
        if model.coordinates:  # functions expand them first; whatever forgets to must not take them for joints
            raise InputError(
                f"model {shown(model.name)} has coordinates that are not its joints, which this function does not "
                "know; expected model.primitive, whose coordinates are its joints"
            )
        if model.elements:  # likewise: functions add what elements do, and none must lose it
            raise InputError(
                f"model {shown(model.name)} has force elements between its links, which this function does not know; "
                "expected model.without_elements, which has none"
            )
        with np.errstate(all="ignore"):  # constants that overflow are not tame, and so their results looked at
            found = tuple(_mechanism(model, np.array([joint.pitch for joint in model.joints])))
        # `_mechanism` last: an interrupt, or another thread, may come in between, and sees either both or neither
        object.__setattr__(model, "_tame", found if _ordinary(found) else None)
        object.__setattr__(model, "_mechanism", found)
    return found


def tame(model: Model) -> tuple[Any, ...] | None:
    """The same, if with them ordinary states have finite results, as ``_kernels/lanes/finite.py`` says; else None."""
    found: tuple[Any, ...] | None = model.__dict__.get("_tame")
    if found is None:
        if model.coordinates or model.elements:
            return None
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


def _mechanism(model: Any, pitch: NDArray[Any], like: Any = None) -> Mechanism:
    """From a Model, or from anything with its fields, complex ones too: the arithmetic is analytic.

    `like`: another model beside it, whose joint frames are where this one's are to be on their axes.
    """
    aligned = [_align(np.array(joint.axis)) for joint in model.joints]
    sign, align = np.array([s for s, _ in aligned]), np.array([A for _, A in aligned])
    kinds = np.array([joint.kind for joint in model.joints])
    turn = np.where(kinds == "prismatic", 0.0, sign)
    slide = np.where(kinds == "prismatic", sign, sign * pitch)
    to_tip = align.transpose(0, 2, 1)
    P, F = _slide(model.placement @ align, to_tip @ model.tip, _slid(to_tip, model if like is None else like))
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
        inertia=np.column_stack([model.mass, com, symmetric(inertia)]),
        J=np.column_stack([symmetric(second), first, model.mass]),
        massive=massive.astype(np.int64),
        passive=np.column_stack([model.stiffness, model.rest, model.damping, model.armature]),
        gravity=np.array(model.gravity)[None],
        apart=_apart(model.parents, X, slide),
    )


def only_turns(model: Model) -> bool:
    """Whether no joint of a model slides, looked at once per model."""
    found: bool | None = model.__dict__.get("_only_turns")
    if found is None:
        found = not Mechanism(*mechanism(model)).rate[:, 1].any()
        object.__setattr__(model, "_only_turns", found)
    return found


def mechanisms(models: Sequence[Model]) -> tuple[Any, ...]:
    """Constants of models alike in structure, (models, n·k) each.  Links massive, or apart, in any count as such."""
    each = [Mechanism(*mechanism(model)) for model in models]
    flags = {what: np.max([getattr(m, what) for m in each], axis=0) for what in FLAGS}
    rows = {what: np.array([getattr(m, what).ravel() for m in each]) for what in VARIED}
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
        constants = _mechanism(_fields_of(model, moved), moved["pitch"])
        rows.append([np.imag(getattr(constants, what)).ravel() / STEP for what in VARIED])
    return tuple(np.ascontiguousarray(column) for column in map(np.array, zip(*rows, strict=True)))


def second_slopes(
    model: Model, variation: dict[str, Array], bent: dict[str, Array], directions: int
) -> tuple[Array, ...]:
    """Second slopes of the kernels' constants, (directions, directions, n·k) each in the order of :class:`Slopes`.

    `bent` holds second slopes of model fields, (directions, directions, *shape), of those that have any.  With f the
    fields and c(f) the constants, ∂²c/∂j∂k is how the slope c′(f + t f_k)·(f_j + t f_jk) changes with t.  Constants are
    products of at most three fields (a rotated inertia), so the slope is a polynomial of t of degree three or less, for
    which (4 D(t) − D(2t))/3 with D central is exact at any t.
    """
    fields = variable_fields(model)
    sizes = [said.columns * (model.n if said.each_joint else 1) for said in VARIED.values()]
    found = [np.zeros((directions, directions, size)) for size in sizes]

    def moves(k: int, names: tuple[str, ...]) -> bool:
        return any(what in variation and variation[what][k].any() for what in names)

    def along(what: str, k: int) -> Any:
        return variation[what][k] if what in variation else 0.0

    def curved(what: str, j: int, k: int) -> Any:
        return bent[what][j, k] if what in bent else 0.0

    for j in range(directions):
        for k in range(j + 1):
            turned = any(moves(one, _FRAMES) and moves(two, _CARRIED) for one, two in ((j, k), (k, j)))
            if not turned and not any(x[j, k].any() for x in bent.values()):
                continue
            step = 1.0 / max([1.0, *(float(np.abs(x[k]).max(initial=0.0)) for x in variation.values())])

            def slope(t: float, j: int = j, k: int = k) -> list[Array]:
                moved = {
                    what: x + t * along(what, k) + 1j * STEP * (along(what, j) + t * curved(what, j, k))
                    for what, x in fields.items()
                }
                constants = _mechanism(_fields_of(model, moved), moved["pitch"], model)
                return [np.imag(getattr(constants, what)).ravel() / STEP for what in VARIED]

            sides = [slope(way * step) for way in (1, -1, 2, -2)]
            for whole, a, b, c, d in zip(found, *sides, strict=True):
                whole[j, k] = whole[k, j] = (8.0 * (a - b) - (c - d)) / (12.0 * step)
    return tuple(found)


_FRAMES, _CARRIED = ("placement", "tip"), ("placement", "tip", "com", "inertia")  # only there are products


def _fields_of(model: Model, fields: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(joints=model.joints, parents=model.parents, **fields)


def flags_if_varied(constants: tuple[Any, ...], slopes: tuple[Array, ...]) -> tuple[Any, ...]:
    """Constants with which kernels skip nothing that varies along a direction."""
    m, dm = Mechanism(*constants), Slopes(*slopes)
    n, flags = len(m.parent), {}
    for name, flag in FLAGS.items():
        found = getattr(m, name)
        for what, first, after in flag.columns:
            slope = getattr(dm, what).reshape(-1, n, VARIED[what].columns)
            varies = slope[:, :, first:after].any(axis=(0, 2)) & (flag.roots | (m.parent >= 0))
            found = np.where(varies, 1, found)
        flags[name] = found
    return tuple(m._replace(**flags))


def without_springs(model: Model) -> Model:
    """The same model with slack springs and without force elements, made once per model."""
    if not (model.stiffness.any() or model.elements):
        return model
    found: Model | None = model.__dict__.get("_without_springs")
    if found is None:
        found = model.replace(stiffness=np.zeros(model.n), elements={})
        object.__setattr__(model, "_without_springs", found)
    return found


def _slid(to_tip: NDArray[Any], model: Any) -> Array:
    """How far joint frames are moved along their own axes to where the link is, m.

    Any point of a joint's axis may be the origin of its frame.  Where the centre of mass is far from it along the axis,
    the inertia about the axis, which is all that counts, is the small difference of large numbers.
    """
    F = np.real(to_tip @ model.tip)
    R = F[:, :3, :3]
    x, y, z = (np.einsum("nij,nj->ni", R, np.real(model.com)) + F[:, :3, 3]).T
    own = np.einsum("ni,nij,nj->n", R[:, 2], np.real(model.inertia), R[:, 2])
    mass = np.real(model.mass)
    far = (mass > 0) & (mass * z**2 > FAR * (own + mass * (x**2 + y**2)))
    return np.where(far, z, 0.0)


def _slide(P: NDArray[Any], F: NDArray[Any], slid: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Joint frames, some of them moved along their own axes."""
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
    if axis[0] == axis[1] == 0.0:  # of an axis that is 1e-9 off, the third component is 1 as well
        return math.copysign(1.0, axis[2]), align
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    align[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    return 1.0, align


def _rows(T: Array) -> Array:
    """(n, 4, 4) transforms as (n, 12): rotation row by row, translation."""
    return np.ascontiguousarray(np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1))


def symmetric(S: Array) -> Array:
    return np.stack([S[:, 0, 0], S[:, 1, 1], S[:, 2, 2], S[:, 0, 1], S[:, 0, 2], S[:, 1, 2]], axis=1)
