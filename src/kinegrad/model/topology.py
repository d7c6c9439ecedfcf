"""How the joints of an open tree are connected, in the three descriptions of [zhakatayev2023].

Υ, ``parents``, is the parent of each joint (section 2.1); Φ, ``branch_parents``, the parent of each branch,
and Ψ, ``branch_joints``, its first and last joint (section 2.2). Υ alone, or Φ with Ψ, says everything.

A *junction* (a complex node in the paper) has several children, a *leaf* (an external node) none.
A *branch* starts at a root or a child of a junction, and ends at the first leaf or junction after it.
Numbers start at 0, and −1 is the world, except in the paper's own matrices, which count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.names import as_tuple, check_name
from kinegrad.model.numbers import flag
from kinegrad.model.topology_checks import WORLD, IntArray, check_parents, integers, join, second_column
from kinegrad.results import frozen

__all__ = ["PaperMatrices", "Pattern", "Storage", "Topology", "joint_ranges"]


class PaperMatrices(NamedTuple):
    """Υ (n, 2), Φ (b, 2) and Ψ (b, 2) as [zhakatayev2023] prints them: numbered from 1, 0 for no parent."""

    upsilon: IntArray
    phi: IntArray
    psi: IntArray


class Pattern(NamedTuple):
    """Places that topology allows to be non-zero, row by row: entry k is at ``(rows[k], cols[k])``."""

    rows: IntArray
    cols: IntArray


class Storage(NamedTuple):
    """How many numbers each description of one topology stores."""

    parent_matrix: int
    branch_matrices: int
    adjacency_matrix: int
    incidence_matrix: int


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Topology:
    """The connectivity of an open tree of joints: immutable, hashable, equal when the parents are equal.

    Parameters
    ----------
    parents : array_like of int, shape (n,)
        Parent of each joint (Υ), lower than the joint itself; −1 is the world.
    single_root : bool
        Refuse more than one joint attached to the world.
    names : sequence of str, length n, optional
        Joint names, for messages and drawings only; they do not take part in comparison.

    Examples
    --------
    The tree of figure 1 of [zhakatayev2023]:

    >>> tree = Topology([-1, 0, 1, 2, 3, 4, 4, 2, 7, 2, 9])
    >>> tree
    Topology(11 joints, 6 branches)
    >>> tree.branches
    ((0, 1, 2), (3, 4), (5,), (6,), (7, 8), (9, 10))
    >>> tree.branch_parents
    array([-1,  0,  1,  1,  0,  0])
    >>> tree == Topology.from_branches(tree.branch_parents, tree.branch_joints)
    True
    >>> tree.leaves, tree.junctions, tree.nonzeros
    ((5, 6, 8, 10), (2, 4), 79)
    """

    parents: IntArray
    names: tuple[str, ...] | None

    def __init__(self, parents: ArrayLike, *, single_root: bool = False, names: Sequence[str] | None = None) -> None:
        array = integers("parents", parents, ndim=1)
        labels = (
            None
            if names is None
            else as_tuple("names", list(names) if isinstance(names, str) else names, "joint names")
        )
        if labels is not None:
            labels = tuple(check_name(f"`names`[{k}]", label) for k, label in enumerate(labels))
        if labels is not None and len(labels) != len(array):
            raise ModelError(f"`names` has {len(labels)} entries; expected {len(array)}, one per joint")
        object.__setattr__(self, "parents", _read_only(array))
        object.__setattr__(self, "names", labels)
        check_parents(array, "parents", "joint", names=self.names)
        if flag("`single_root`", single_root):
            _ = self.root

    @classmethod
    def from_branches(cls, phi: ArrayLike, psi: ArrayLike, *, single_root: bool = False) -> Topology:
        """Topology from branch parents Φ, shape (b,), and first and last joints Ψ, shape (b, 2), from 0.

        Rows of Ψ may come in any order, and a branch may have a single child branch, although the paper
        excludes that: the joints are still well defined. ``branch_parents`` and ``branch_joints`` then return
        the simplest description, in the order of the joints.

        >>> Topology.from_branches([-1, 0, 0], [[0, 1], [2, 2], [3, 4]]).parents
        array([-1,  0,  1,  1,  3])
        """
        parents = join(integers("phi", phi, ndim=1), integers("psi", psi, ndim=2), base=0)
        return cls(parents, single_root=single_root)

    @classmethod
    def from_paper(
        cls, *, upsilon: ArrayLike | None = None, phi: ArrayLike | None = None, psi: ArrayLike | None = None
    ) -> Topology:
        """Topology from Υ, or from Φ with Ψ, as [zhakatayev2023] prints them: two columns, counted from 1.

        >>> Topology.from_paper(upsilon=[[1, 0], [2, 1], [3, 1]]).parents
        array([-1,  0,  0])
        >>> Topology.from_paper(phi=[[1, 0], [2, 1], [3, 1]], psi=[[1, 4], [5, 5], [6, 9]])
        Topology(9 joints, 3 branches)
        """
        if upsilon is not None and phi is None and psi is None:
            return cls(check_parents(second_column("upsilon", upsilon), "upsilon", "joint", base=1))
        if upsilon is None and phi is not None and psi is not None:
            return cls(join(second_column("phi", phi), integers("psi", psi, ndim=2) - 1, base=1))
        raise ModelError("`from_paper` takes either `upsilon` alone, or both `phi` and `psi`")

    def paper_matrices(self) -> PaperMatrices:
        """Υ, Φ and Ψ as [zhakatayev2023] prints them, in (18)–(20) for its human.

        >>> Topology([-1, 0, 0]).paper_matrices().upsilon.tolist()
        [[1, 0], [2, 1], [3, 1]]
        """
        both = self.parents, self.branch_parents
        upsilon, phi = (np.stack([np.arange(len(parents)), parents], axis=1) + 1 for parents in both)
        return PaperMatrices(upsilon, phi, self.branch_joints + 1)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.parents)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Joints attached to the world."""
        return tuple(np.flatnonzero(self.parents == WORLD).tolist())

    @property
    def root(self) -> int:
        """The only joint attached to the world; a `ModelError` if there are several."""
        if len(self.roots) > 1:
            found = f"{len(self.roots)} joints to the world ({joint_ranges(self.roots)})"
            raise ModelError(f"`parents` attaches {found}; expected one root")
        return self.roots[0]

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Joints without children."""
        return tuple(i for i, children in enumerate(self._children) if not children)

    @cached_property
    def junctions(self) -> tuple[int, ...]:
        """Joints with more than one child."""
        return tuple(i for i, children in enumerate(self._children) if len(children) > 1)

    def children(self, i: int) -> tuple[int, ...]:
        """Joints whose parent is joint `i`, in increasing order.

        >>> Topology([-1, 0, 0, 1]).children(0)
        (1, 2)
        """
        return self._children[self._joint(i)]

    def ancestors(self, i: int) -> tuple[int, ...]:
        """Joints between the world and joint `i`, root first, without `i` itself.

        >>> Topology([-1, 0, 0, 1]).ancestors(3)
        (0, 1)
        """
        path = []
        while (i := int(self.parents[self._joint(i)])) != WORLD:
            path.append(i)
        return tuple(reversed(path))

    def subtree(self, i: int) -> tuple[int, ...]:
        """Joint `i` and all its descendants, in increasing order.

        >>> Topology([-1, 0, 0, 1]).subtree(1)
        (1, 3)
        """
        found = [self._joint(i)]
        for j in found:  # grows while it is walked
            found.extend(self._children[j])
        return tuple(sorted(found))

    @cached_property
    def depth(self) -> IntArray:
        """Number of ancestors of each joint, shape (n,)."""
        depth: list[int] = []
        for parent in self.parents.tolist():
            depth.append(0 if parent == WORLD else depth[parent] + 1)
        return _read_only(np.array(depth))

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Whether joint j is i or an ancestor of i, at [i, j]; shape (n, n)."""
        support = np.eye(self.n, dtype=np.bool_)
        for i, parent in enumerate(self.parents.tolist()):
            if parent != WORLD:
                support[i] |= support[parent]
        return frozen(support)

    @cached_property
    def pattern(self) -> Pattern:
        """Where ∂τ/∂q, ∂τ/∂v and the mass matrix can be non-zero: i and j on one path from a root."""
        rows, cols = np.nonzero(self.support | self.support.T)
        return Pattern(_read_only(rows), _read_only(cols))

    @property
    def nonzeros(self) -> int:
        """Length of `pattern`, counted without building it."""
        return 2 * int(self.depth.sum()) + self.n

    @cached_property
    def branch_of(self) -> IntArray:
        """Branch that each joint belongs to, shape (n,). Branches are numbered by their first joint."""
        branch_of: list[int] = []
        branches = 0
        for parent in self.parents.tolist():
            starts = parent == WORLD or len(self._children[parent]) > 1
            branch_of.append(branches if starts else branch_of[parent])
            branches += starts
        return _read_only(np.array(branch_of))

    @cached_property
    def branches(self) -> tuple[tuple[int, ...], ...]:
        """Joints of each branch, from its start to its end; they need not be consecutive numbers."""
        branches: list[list[int]] = [[] for _ in range(self.branch_of.max() + 1)]
        for i, k in enumerate(self.branch_of.tolist()):
            branches[k].append(i)
        return tuple(map(tuple, branches))

    @cached_property
    def branch_parents(self) -> IntArray:
        """Parent of each branch (Φ), shape (b,); −1 is the world."""
        parents = self.parents[[joints[0] for joints in self.branches]]
        return _read_only(np.where(parents == WORLD, WORLD, self.branch_of[parents]))

    @cached_property
    def branch_joints(self) -> IntArray:
        """First and last joint of each branch (Ψ), shape (b, 2); a `ModelError` unless consecutive."""
        for k, joints in enumerate(self.branches):
            if joints[-1] - joints[0] >= len(joints):
                raise ModelError(
                    f"`branch_joints` cannot hold branch {k}: its joints {joint_ranges(joints)} are not "
                    "consecutive; renumber them with `topology.renumbered(topology.depth_first())`"
                )
        return _read_only(np.array([(joints[0], joints[-1]) for joints in self.branches]))

    def depth_first(self) -> IntArray:
        """Order of the joints, shape (n,), in which those of each branch are consecutive: for `renumbered`.

        >>> Topology([-1, 0, 0, 1]).depth_first()
        array([0, 1, 3, 2])
        """
        order, waiting = [], list(reversed(self.roots))
        while waiting:
            order.append(i := waiting.pop())
            waiting.extend(reversed(self._children[i]))
        return np.array(order, dtype=np.int64)

    def renumbered(self, order: ArrayLike) -> Topology:
        """The same tree with joint ``order[k]`` called k.

        >>> Topology([-1, 0, 0, 1]).renumbered([0, 1, 3, 2]).parents
        array([-1,  0,  1,  0])
        """
        old = integers("order", order, ndim=1)
        if not np.array_equal(np.sort(old), np.arange(self.n)):
            raise ModelError(f"`order` is not a permutation: expected each joint from 0 to {self.n - 1} once")
        new = np.append(np.argsort(old), WORLD)  # new[-1] is the world's
        for i in np.flatnonzero(new[self.parents] > new[:-1])[:1]:
            raise ModelError(f"`order` puts joint {i} before its parent, {self.parents[i]}; expected after")
        names = None if self.names is None else [self.names[i] for i in old]
        return Topology(new[self.parents[old]], names=names)

    def storage(self) -> Storage:
        """Numbers stored by Υ (2n), Φ with Ψ (4b), the adjacency (n²) and the incidence matrix (n × arcs).

        The comparison of [zhakatayev2023] section 2.2: Φ with Ψ is the smaller where b < n/2.

        >>> Topology(range(-1, 99)).storage()  # a chain of a hundred joints
        Storage(parent_matrix=200, branch_matrices=4, adjacency_matrix=10000, incidence_matrix=9900)
        """
        n, arcs = self.n, self.n - len(self.roots)
        return Storage(2 * n, 4 * len(self.branches), n * n, n * arcs)

    def draw_text(self, *, show_numbers_from: int = 0) -> str:
        """The tree in text, one line a branch.

        >>> print(Topology([-1, 0, 1, 2, 3, 4, 4, 2, 7, 2, 9]).draw_text())
        world
        └─ 0–2
           ├─ 3–4
           │  ├─ 5
           │  └─ 6
           ├─ 7–8
           └─ 9–10
        """
        branch_tree, lines = Topology(self.branch_parents), ["world"]
        waiting = [(k, "", k == branch_tree.roots[-1]) for k in reversed(branch_tree.roots)]
        while waiting:
            k, indent, last = waiting.pop()
            line = joint_ranges(self.branches[k], show_numbers_from)
            if self.names is not None:
                names = [self.names[i] for i in self.branches[k]]
                line += "  " + (", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}")
            lines.append(indent + ("└─ " if last else "├─ ") + line)
            indent += "   " if last else "│  "
            children = branch_tree.children(k)
            waiting.extend((child, indent, child == children[-1]) for child in reversed(children))
        return "\n".join(lines)

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        children: list[list[int]] = [[] for _ in range(self.n)]
        for i, parent in enumerate(self.parents.tolist()):
            if parent != WORLD:
                children[parent].append(i)
        return tuple(map(tuple, children))

    def _joint(self, i: int) -> int:
        if not isinstance(i, int | np.integer) or isinstance(i, bool | np.timedelta64) or not 0 <= i < self.n:
            raise InputError(f"`i` is {shown(i)}; expected a joint from 0 to {self.n - 1}")
        return int(i)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.parents, other.parents) if isinstance(other, Topology) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.parents.tobytes())

    def __reduce__(self) -> tuple[Any, ...]:  # pickled by what defines it, so that arrays come back read-only
        return partial(Topology, names=self.names), (self.parents,)

    def __repr__(self) -> str:
        return f"Topology({self.n} joints, {len(self.branches)} branches)"


def joint_ranges(joints: Iterable[int], show_numbers_from: int = 0) -> str:
    """Increasing joint numbers in short.

    >>> joint_ranges([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    runs: list[list[int]] = []
    for i in joints:
        if runs and runs[-1][1] == i - 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    shown = (sorted({a + show_numbers_from, b + show_numbers_from}) for a, b in runs)
    return ", ".join("–".join(map(str, run)) for run in shown)


def _read_only(array: NDArray[Any]) -> IntArray:
    return frozen(array.astype(np.int64))
