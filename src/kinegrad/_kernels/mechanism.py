"""What a kernel knows of a mechanism: eleven arrays.

Every joint turns about, and slides along, the z axis of its own *joint frame*.  With motion(q) = Rz(ρq)·Tz(ηq),

    revolute  ρ = ±1, η = 0      prismatic  ρ = 0, η = ±1      screw  ρ = ±1, η = ±pitch

the link frames follow  A_i = P_i · motion(q_i) · F_i  and the joint frames  X_i · motion(q_i),  X_i = F_parent · P_i.
Spatial kernels work in joint frames (half the matrix products); ``lagrange.py`` works in link frames, as its paper.

A 3×4 transform is stored as 12 numbers: the rotation row by row, then the translation.

The class :class:`Mechanism` is the one table of all this.  What else is to be known of a constant is in its annotation,
and everything that goes through the constants one by one is derived from it: their slopes (``lanes/dual.py``), copies
in scratch (``lanes/slots.py``), columns of gradients (``rnea_reverse.py``), models alike in structure and flags of what
varies (``_engine/kernel_constants.py``).
"""

from collections import namedtuple
from typing import Annotated, Any, NamedTuple, get_type_hints

from kinegrad._kernels.compiler.jit import inline


class Numbers(NamedTuple):
    """Real numbers: so many for each joint, or once for the mechanism; whether design parameters may vary them."""

    columns: int
    each_joint: bool = True
    varies: bool = True


class Flag(NamedTuple):
    """1 or 0 for each joint: whether kernels may not skip what these columns (constant, first, after) belong to, nor if
    they are zero but vary along a direction; whether roots may have it."""

    columns: tuple[tuple[str, int, int], ...]
    roots: bool = True


class Mechanism(NamedTuple):
    """The constants of a mechanism of n joints, in the order in which kernels receive them."""

    parent: Any
    """(n,) parent of each joint, −1 = world; parent < child"""
    rate: Annotated[Any, Numbers(2)]
    """(n, 2) ρ [rad per unit of q] and η [m per unit of q]"""
    X: Annotated[Any, Numbers(12)]
    """(n, 12) joint frame, before its motion, in the parent's joint frame"""
    F: Annotated[Any, Numbers(12)]
    """(n, 12) link frame in the joint frame"""
    P: Annotated[Any, Numbers(12, varies=False)]
    """(n, 12) joint frame, before its motion, in the parent's link frame: for ``lagrange.py``, as J"""
    inertia: Annotated[Any, Numbers(10)]
    """(n, 10) joint frame: mass, com x y z, I about com: xx yy zz xy xz yz"""
    J: Annotated[Any, Numbers(10, varies=False)]
    """(n, 10) link frame, pseudo-inertia (7): xx yy zz xy xz yz, m·x m·y m·z, m"""
    massive: Annotated[Any, Flag((("inertia", 0, 10),))]
    """(n,) 0 where the link is a massless virtual one"""
    passive: Annotated[Any, Numbers(4)]
    """(n, 4) stiffness, rest position, damping, armature"""
    gravity: Annotated[Any, Numbers(3, each_joint=False)]
    """(1, 3) world"""
    apart: Annotated[Any, Flag((("X", 9, 12), ("rate", 1, 2)), roots=False)]
    """(n,) 0 where a joint's origin is always at its parent's, and for roots"""

    def with_varied(self, each):
        """The same with ``each(name, constant)`` in the place of each constant that may vary."""
        return self._replace(**{what: each(what, getattr(self, what)) for what in VARIED})


_HINTS = get_type_hints(Mechanism, include_extras=True)
_SAID = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in _HINTS.items()}
VARIED = {name: said for name, said in _SAID.items() if isinstance(said, Numbers) and said.varies}
FLAGS = {name: said for name, said in _SAID.items() if isinstance(said, Flag)}

_named: Any = namedtuple  # whose fields are known at run time only
Slopes = _named("Slopes", tuple(VARIED))  # (rows, n·k) each, in the order in which kernels receive them
COLUMNS = Slopes(*(said.columns for said in VARIED.values()))  # of each, for a joint or the mechanism

_EACH_JOINT = sum(said.columns for said in VARIED.values() if said.each_joint)
_ONCE = sum(said.columns for said in VARIED.values() if not said.each_joint)


def _first():
    """(joints, numbers) before each constant that may vary, if all are written one after the other."""
    joints, numbers = 0, 0
    for said in VARIED.values():
        yield joints, numbers
        joints, numbers = joints + said.columns * said.each_joint, numbers + said.columns * (not said.each_joint)


_FIRST = tuple(_first())


def varied_numbers(n: int) -> int:
    """How many numbers all constants that may vary are."""
    return _EACH_JOINT * n + _ONCE


@inline
def first_columns(n):
    """Where each of them begins, if they are written one after the other."""
    return Slopes(*[joints * n + numbers for joints, numbers in _FIRST])


@inline
def unpack(m):
    """Names for a plain tuple (which Numba's dispatcher reads faster than a named one)."""
    return Mechanism(*m)


@inline
def unpack_slopes(dm):
    return Slopes(*dm)
