"""Topology: the three descriptions agree, mistakes are named, index tables match brute force."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinegrad.errors import InputError, ModelError
from kinegrad.model.topology import Topology, joint_ranges

seeded = settings(derandomize=True, deadline=None)

# [zhakatayev2023] (18), second row; the print repeats the column of joint 35.
HUMAN_UPSILON = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 14, 15, 16, 17, 18,
    19, 20, 5, 22, 23, 24, 25, 26, 27, 28, 29, 30, 22, 32, 33, 34,
    35, 36, 37, 38, 39, 22, 41, 42,
]  # fmt: skip
HUMAN_PHI = [[1, 2, 3, 4, 5, 6, 7], [0, 1, 1, 1, 4, 4, 4]]  # (19), transposed
HUMAN_PSI = [[1, 6, 14, 22, 23, 32, 41], [5, 13, 21, 22, 31, 40, 43]]  # (20), transposed
HUMAN = Topology(np.array(HUMAN_UPSILON) - 1, single_root=True)
# Figure 1 as the text of section 2.1 describes it: junctions 3 and 5, leaves 6, 7, 9, 11, counted from 1.
FIGURE_1 = Topology([-1, 0, 1, 2, 3, 4, 4, 2, 7, 2, 9])


@st.composite
def trees(draw: st.DrawFn, max_joints: int = 30) -> Topology:
    """Any forest; about half of the joints continue the one before, so that there are long branches."""
    n = draw(st.integers(1, max_joints))
    return Topology([draw(st.integers(-1, i - 1) | st.just(i - 1)) for i in range(n)])


def path(tree: Topology, i: int) -> list[int]:
    """Oracle: i and its ancestors, by walking."""
    joints = []
    while i >= 0:
        joints.append(i)
        i = tree.parents[i]
    return joints


# --- the paper's numbers ---


def test_human_matrices_are_those_printed():
    upsilon, phi, psi = HUMAN.paper_matrices()
    np.testing.assert_array_equal(upsilon.T, [range(1, 44), HUMAN_UPSILON])
    np.testing.assert_array_equal(phi.T, HUMAN_PHI)
    np.testing.assert_array_equal(psi.T, HUMAN_PSI)


def test_human_from_printed_branches():
    assert Topology.from_paper(phi=np.transpose(HUMAN_PHI), psi=np.transpose(HUMAN_PSI)) == HUMAN


def test_human_pattern_counts(capsys):
    pairs = int(HUMAN.support.sum())
    zeros = 43**2 - HUMAN.nonzeros
    with capsys.disabled():
        print(f"\nhuman43: {pairs} (ancestor or self, descendant) pairs, {zeros} zeros of 1849")
    # Σ(depth + 1) by branch: 15 + 76 + 76 + 6 + 99 + 99 + 24
    assert pairs == 395
    assert HUMAN.nonzeros == 2 * 395 - 43 == len(HUMAN.pattern.rows)
    assert not HUMAN.support[41, 17]
    assert not HUMAN.support[17, 41]  # section 5.2: ∂Q_42/∂q_18 = 0


def test_figure_1_kinds_of_joints():
    assert FIGURE_1.junctions == (2, 4)
    assert FIGURE_1.leaves == (5, 6, 8, 10)
    assert len(FIGURE_1.branches) == 6
    assert FIGURE_1.root == 0


def test_storage_counts():
    assert HUMAN.storage() == (2 * 43, 4 * 7, 43 * 43, 43 * 42)
    # section 2.2: for a full binary tree the joint description is the smaller one
    binary = Topology([(i - 1) // 2 if i else -1 for i in range(31)]).storage()
    assert binary.parent_matrix < binary.branch_matrices
    # arcs are counted between joints: each root has none
    assert Topology([-1, -1, 0]).storage().incidence_matrix == 3 * 1


# --- round trips ---


@seeded
@given(trees())
def test_branches_follow_the_definition(tree):
    assert sorted(i for joints in tree.branches for i in joints) == list(range(tree.n))
    for k, joints in enumerate(tree.branches):
        start, end = joints[0], joints[-1]
        assert tree.parents[start] < 0 or len(tree.children(tree.parents[start])) > 1
        assert len(tree.children(end)) != 1
        assert all(tree.children(a) == (b,) for a, b in pairwise(joints))
        assert {int(tree.branch_of[i]) for i in joints} == {k}
        parent = tree.parents[start]
        assert tree.branch_parents[k] == (-1 if parent < 0 else tree.branch_of[parent])
        assert tree.branch_parents[k] < k


@seeded
@given(trees())
def test_depth_first_makes_branches_consecutive_and_all_descriptions_round_trip(tree):
    order = tree.depth_first()
    ordered = tree.renumbered(order)
    assert [[order[i] for i in path(ordered, k)] for k in range(tree.n)] == [path(tree, i) for i in order]
    assert ordered.renumbered(np.argsort(order)) == tree
    assert Topology.from_branches(ordered.branch_parents, ordered.branch_joints) == ordered
    upsilon, phi, psi = ordered.paper_matrices()
    assert Topology.from_paper(upsilon=upsilon) == ordered
    again = Topology.from_paper(phi=phi, psi=psi)
    assert again == ordered
    for a, b in zip(again.paper_matrices(), (upsilon, phi, psi), strict=True):
        np.testing.assert_array_equal(a, b)


def test_branches_in_any_order_and_not_simplest_are_simplified():
    tree = Topology.from_branches([-1, 0, 0, 2], [[0, 1], [5, 6], [2, 2], [3, 4]])
    assert tree.parents.tolist() == [-1, 0, 1, 2, 3, 1, 5]
    assert tree.branch_parents.tolist() == [-1, 0, 0]
    assert tree.branch_joints.tolist() == [[0, 1], [2, 4], [5, 6]]


# --- index tables ---


@seeded
@given(trees())
def test_tables_match_brute_force(tree):
    on_path = [[j in path(tree, i) for j in range(tree.n)] for i in range(tree.n)]
    np.testing.assert_array_equal(tree.support, on_path)
    for i in range(tree.n):
        assert tree.ancestors(i) == tuple(reversed(path(tree, i)[1:]))
        assert tree.subtree(i) == tuple(j for j in range(tree.n) if on_path[j][i])
        assert tree.children(i) == tuple(j for j in range(tree.n) if tree.parents[j] == i)
        assert tree.depth[i] == len(path(tree, i)) - 1
    pairs = [(i, j) for i in range(tree.n) for j in range(tree.n) if on_path[i][j] or on_path[j][i]]
    assert list(zip(*tree.pattern, strict=True)) == pairs
    assert tree.nonzeros == len(pairs)
    assert tree.leaves == tuple(i for i in range(tree.n) if not tree.children(i))


def test_thousands_of_joints():
    rng = np.random.default_rng(7)
    parents = [-1, *(max(0, i - int(rng.integers(1, 4))) for i in range(4999))]
    tree = Topology(parents)
    tree = tree.renumbered(tree.depth_first())
    assert Topology.from_branches(tree.branch_parents, tree.branch_joints) == tree
    assert tree.nonzeros > tree.n
    assert len(tree.draw_text().splitlines()) == 1 + len(tree.branches)
    chain = Topology(range(-1, 4999))
    assert chain.subtree(0) == tuple(range(5000))
    assert len(chain.ancestors(4999)) == 4999


# --- value semantics ---


def test_compare_hash_pickle():
    other = Topology(FIGURE_1.parents.astype(float), names="abcdefghijk")
    assert other == FIGURE_1
    assert hash(other) == hash(FIGURE_1)
    assert HUMAN != FIGURE_1
    assert FIGURE_1.parents.tolist() != FIGURE_1
    _ = other.support
    copy = pickle.loads(pickle.dumps(other))
    assert copy == other
    assert copy.names == other.names
    assert not copy.parents.flags.writeable


def test_immutable():
    source = np.array([-1, 0, 0])
    tree = Topology(source)
    source[2] = 1
    assert tree.parents.tolist() == [-1, 0, 0]
    with pytest.raises(AttributeError):
        tree.parents = source
    tables = (tree.parents, tree.depth, tree.support, tree.branch_of, tree.branch_parents, tree.branch_joints)
    for table in (*tables, *tree.pattern):
        with pytest.raises(ValueError, match="read-only"):
            table[...] = 0


def test_renumbering_carries_names():
    tree = Topology([-1, 0, 0, 1], names=["a", "b", "c", "d"])
    assert tree.renumbered(tree.depth_first()).names == ("a", "b", "d", "c")


# --- drawing ---


def test_draw_text():
    names = [f"j{i}" for i in range(5)]
    forest = Topology([-1, 0, 0, -1, 3], names=names)
    assert forest.draw_text(show_numbers_from=1).splitlines() == [
        "world",
        "├─ 1  j0",
        "│  ├─ 2  j1",
        "│  └─ 3  j2",
        "└─ 4–5  j3, j4",
    ]
    assert len(HUMAN.draw_text().splitlines()) == 1 + 7


@seeded
@given(st.sets(st.integers(0, 40)))
def test_joint_ranges_lose_nothing(joints):
    back = []
    for run in filter(None, joint_ranges(sorted(joints)).split(", ")):
        ends = [int(end) for end in run.split("–")]
        back += range(ends[0], ends[-1] + 1)
    assert back == sorted(joints)


# --- errors say what and where ---


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ([], "`parents` is empty"),
        ([[-1, 0]], "`parents` has shape (1, 2); expected (n,)"),
        ([-1, 0, 0.5], "`parents[2]` is 0.5; expected a whole number"),
        ([-1, np.nan], "`parents[1]` is nan"),
        ([-1, np.inf], "`parents[1]` is inf"),
        (np.array([2**64 - 1], dtype=np.uint64), "`parents[0]` is 18446744073709551615"),
        ([True, False], "`parents` has dtype bool; expected whole numbers"),
        (["-1"], "`parents` has dtype <U2; expected whole numbers"),
        ([[-1], [0, 1]], "`parents` is ragged"),
        ([-1, 0, 7], "gives joint 2 parent 7; expected -1 (the world) to 2"),
        ([-1, -2], "gives joint 1 parent -2; expected -1 (the world) to 1"),
        ([-1, 1], "makes joint 1 its own parent"),
        ([-1, 2, 3, 1], "has a cycle, child → parent: joint 1 → joint 2 → joint 3 → joint 1"),
        ([-1, 2, 0], "numbers joint 1 before its parent, joint 2"),
    ],
)
def test_parents_that_are_refused(parents, words):
    with pytest.raises(ModelError) as error:
        Topology(parents)
    assert words in str(error.value)


@seeded
@given(st.permutations(range(8)), st.integers(2, 8))
def test_any_cycle_is_found_and_listed_in_full(joints, length):
    cycle, rest = joints[:length], joints[length:]
    parents = np.full(8, -1)
    parents[cycle] = cycle[1:] + cycle[:1]
    parents[rest] = cycle[0]  # they hang on the cycle and are no part of it
    with pytest.raises(ModelError, match="has a cycle") as error:
        Topology(parents)
    listed = [int(word) for word in str(error.value).replace(";", "").split() if word.isdigit()]
    assert sorted(listed[:-1]) == sorted(cycle)
    assert listed[0] == listed[-1]
    assert all(parents[a] == b for a, b in pairwise(listed))


def test_long_cycles_are_cut():
    with pytest.raises(ModelError, match="has a cycle") as error:
        Topology([*range(1, 5000), 0])
    assert len(str(error.value)) < 300


def test_errors_use_names():
    with pytest.raises(ModelError, match=r"joint 1 \('elbow'\) before its parent, joint 2 \('shoulder'\)"):
        Topology([-1, 2, 0], names=["base", "elbow", "shoulder"])
    with pytest.raises(ModelError, match="`names` has 1 entries; expected 2"):
        Topology([-1, 0], names=["a"])


def test_two_roots_where_one_is_needed():
    words = r"attaches 2 joints to the world \(0, 2\); expected one root"
    with pytest.raises(ModelError, match=words):
        Topology([-1, 0, -1], single_root=True)
    with pytest.raises(ModelError, match=words):
        _ = Topology([-1, 0, -1]).root
    with pytest.raises(ModelError, match="expected one root"):
        Topology.from_branches([-1, -1], [[0, 0], [1, 1]], single_root=True)


def test_branch_that_is_not_consecutive():
    tree = Topology([-1, 0, 0, 1, 2, 3])
    assert tree.branches == ((0,), (1, 3, 5), (2, 4))
    with pytest.raises(ModelError, match=r"branch 1: its joints 1, 3, 5 are not consec.*depth_first\(\)"):
        tree.paper_matrices()
    with pytest.raises(ModelError, match="branch 1: its joints 1, 3 are not"):  # by one number only
        _ = Topology([-1, 0, 0, 1]).branch_joints


@pytest.mark.parametrize(
    ("phi", "psi", "words"),
    [
        ([-1, 0], [[0, 1]], "`phi` has 2 branches and `psi` has 1"),
        ([-1], [[1, 2]], "does not start at joint 0: branch 0 is 1 to 2; expected it to start at 0"),
        ([-1], [[-1, 2]], "does not start at joint 0: branch 0 is -1 to 2"),
        ([-1, 0, 0], [[0, 1], [2, 4], [3, 5]], "overlaps branch 1: branch 2 is 3 to 5;"),
        ([-1, 0, 0], [[0, 1], [2, 2], [4, 5]], "leaves a gap after branch 1: branch 2 is 4 to 5;"),
        ([-1, 0], [[0, 1], [3, 2]], "runs branch 1 backwards, 3 to 2"),
        ([-1, 2, 0], [[0, 1], [2, 2], [3, 3]], "`phi` numbers branch 1 before its parent, branch 2"),
        ([-1, 1], [[0, 1], [2, 2]], "`phi` makes branch 1 its own parent"),
        ([-1, 5], [[0, 1], [2, 2]], "`phi` gives branch 1 parent 5"),
        ([-1, 0], [[0, 1], [2, 2.5]], "`psi[1, 1]` is 2.5"),
        ([-1, 0], [[0, 1, 2], [2, 2, 2]], "`psi` has shape (2, 3); expected (n, 2)"),
        ([-1, 0], [[1, 2], [0, 0]], "`psi` numbers joint 0 before its parent, joint 2"),
    ],
)
def test_branches_that_are_refused(phi, psi, words):
    with pytest.raises(ModelError) as error:
        Topology.from_branches(phi, psi)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ({"upsilon": [[1, 0], [3, 1]]}, "`upsilon[1, 0]` is 3; expected 2"),
        ({"upsilon": [[1, 0], [2, 2]]}, "`upsilon` makes joint 2 its own parent"),
        ({"upsilon": [[1, 0], [2, 9]]}, "gives joint 2 parent 9; expected 0 (the world) to 2"),
        ({"phi": [[1, 0], [2, 1]], "psi": [[1, 2], [4, 4]]}, "branch 2 is 4 to 4; expected it to start at 3"),
        ({"phi": [[1, 0]]}, "either `upsilon` alone, or both"),
        ({}, "either `upsilon` alone, or both"),
    ],
)
def test_paper_matrices_that_are_refused_count_from_1(matrices, words):
    with pytest.raises(ModelError) as error:
        Topology.from_paper(**matrices)
    assert words in str(error.value)


def test_orders_and_joints_that_are_refused():
    with pytest.raises(ModelError, match=r"`order` is not a permutation: .* each joint from 0 to 10 once"):
        FIGURE_1.renumbered([0] * 11)
    with pytest.raises(ModelError, match="`order` puts joint 1 before its parent, 0"):
        Topology([-1, 0]).renumbered([1, 0])
    for ask in (FIGURE_1.children, FIGURE_1.ancestors, FIGURE_1.subtree):
        for i in (-1, 11):
            with pytest.raises(InputError, match=f"`i` is {i}; expected a joint from 0 to 10"):
                ask(i)
