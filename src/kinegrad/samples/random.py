"""Random trees, for tests and timings: nothing in them is aligned, equal or zero by accident."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import whole
from kinegrad.errors import InputError, shown
from kinegrad.model import Inertia, Joint, Model, Topology, prismatic, revolute, rotate, screw, translate
from kinegrad.model.names import as_tuple
from kinegrad.model.numbers import flag

__all__ = ["random_tree"]

KINDS = ("revolute", "prismatic", "screw")
LETTERS = ("x", "y", "z", "-x", "-y", "-z")
MOST = 100_000  # joints: building more takes hours
VIRTUAL_IN_A_ROW = 2  # as in a ball joint; a longer row without mass could make the mass matrix singular


def random_tree(
    n: int,
    seed: int = 0,
    *,
    kinds: Sequence[str] = KINDS,
    depth_first: bool = False,
    roots: int = 1,
    passive: bool = True,
) -> Model:
    """A random tree of `n` joints, the same for the same arguments.

    Axes are letters or oblique; placements and tips turn and shift; bodies are boxes or clouds of points.
    About a quarter of the links with children are massless, at most two in a row: the mass matrix is regular.

    Parameters
    ----------
    n : int
        Number of joints.
    seed : int
        For :func:`numpy.random.default_rng`.
    kinds : sequence of {"revolute", "prismatic", "screw"}
        What to choose the joints from.
    depth_first : bool
        Number the joints of each branch consecutively, so that Φ with Ψ can describe the tree.
    roots : int
        Number of joints attached to the world, at most `n`.
    passive : bool
        Give half of the joints a spring, half a damper, half an armature.

    Returns
    -------
    Model
        Called ``random_tree(n, seed)``; joints ``joint0``, …; links ``link0``, …

    Examples
    --------
    >>> tree = random_tree(8, seed=3)
    >>> tree == random_tree(8, seed=3), tree == random_tree(8, seed=4)
    (True, False)
    """
    n, roots, seed = number_of_joints("n", n), number_of_joints("roots", roots), whole("seed", seed, least=0)
    if roots > n:
        raise InputError(f"`roots` is {shown(roots)} and `n` is {shown(n)}; expected 1 ≤ roots ≤ n")
    kinds = as_tuple("kinds", kinds, f"some of {', '.join(KINDS)}")
    if not kinds or not all(isinstance(kind, str) and kind in KINDS for kind in kinds):
        raise InputError(f"`kinds` is {shown(kinds)}; expected some of {', '.join(KINDS)}")
    depth_first, passive = flag("`depth_first`", depth_first), flag("`passive`", passive)
    rng = np.random.default_rng(seed)
    tree = Topology(_parents(rng, n, roots))
    if depth_first:
        tree = tree.renumbered(tree.depth_first())
    bodies = [_body(rng) if massive else Inertia.zero() for massive in _massive(rng, tree)]
    springs = {what: _half(rng, n) for what in ("stiffness", "damping", "armature")} if passive else {}
    return Model(
        name=f"random_tree({n}, {seed})",
        joints=tuple(_joint(rng, str(rng.choice(kinds))) for _ in range(n)),
        parents=tree.parents,
        joint_names=tuple(f"joint{i}" for i in range(n)),
        link_names=tuple(f"link{i}" for i in range(n)),
        placement=np.array([_transform(rng) for _ in range(n)]),
        tip=np.array([_transform(rng) for _ in range(n)]),
        mass=np.array([body.mass for body in bodies]),
        com=np.array([body.com for body in bodies]),
        inertia=np.array([body.inertia for body in bodies]),
        rest=rng.uniform(-1, 1, n) * passive,
        **springs,  # type: ignore[arg-type]
    )


def number_of_joints(name: str, value: int) -> int:
    """A number of joints that a computer has room for."""
    if (count := whole(name, value)) > MOST:
        raise InputError(f"`{name}` is {shown(value)}; expected at most {MOST} joints")
    return count


def _parents(rng: np.random.Generator, n: int, roots: int) -> list[int]:
    """Half of the joints follow the one before, in a run; the others hang anywhere."""
    starts = {0, *rng.choice(np.arange(1, n), roots - 1, replace=False).tolist()} if n > 1 else {0}
    return [-1 if i in starts else i - 1 if rng.random() < 0.5 else int(rng.integers(i)) for i in range(n)]


def _massive(rng: np.random.Generator, tree: Topology) -> list[bool]:
    """Which links have mass: all leaves, and most others."""
    row: list[int] = []  # massless links in a row that end here
    for i, parent in enumerate(tree.parents.tolist()):
        above = row[parent] if parent >= 0 else 0
        virtual = rng.random() < 0.25 and bool(tree.children(i)) and above < VIRTUAL_IN_A_ROW
        row.append(above + 1 if virtual else 0)
    return [length == 0 for length in row]


def _joint(rng: np.random.Generator, kind: str) -> Joint:
    axis = str(rng.choice(LETTERS)) if rng.random() < 0.5 else rng.normal(size=3)
    if kind == "screw":
        return screw(axis, pitch=rng.uniform(-0.2, 0.2))
    return revolute(axis) if kind == "revolute" else prismatic(axis)


def _transform(rng: np.random.Generator) -> NDArray[np.float64]:
    return translate(*rng.uniform(-0.5, 0.5, 3)) @ rotate(rng.normal(size=3), rng.uniform(-np.pi, np.pi))


def _body(rng: np.random.Generator) -> Inertia:
    """A box or a cloud of points, a few kilograms and decimetres large."""
    if rng.random() < 0.5:
        return Inertia.box(rng.uniform(0.5, 5), rng.uniform(0.1, 0.5, 3)).moved(_transform(rng))
    return reduce(add, (Inertia.point(rng.uniform(0.1, 1), rng.uniform(-0.3, 0.3, 3)) for _ in range(6)))


def _half(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Positive numbers, and zeros about as often."""
    return rng.uniform(0.1, 2, n) * (rng.random(n) < 0.5)
