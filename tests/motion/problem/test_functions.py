"""Functions of what is known at a node: products with sparse matrices."""

import numpy as np
import pytest

from kinegrad.motion.problem.functions import Linear

MATRIX = np.array([[0.0, 2.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 3.0, 0.0]])


def unsorted():
    rows, columns = np.nonzero(MATRIX)
    order = [3, 0, 2, 1]
    return Linear(("a", "b", "c"), rows[order], columns[order], MATRIX[rows, columns][order])


@pytest.mark.parametrize("function", [Linear.of_matrix(("a", "b", "c"), MATRIX, 0), unsorted()])
def test_linear_is_the_product(function):
    y = np.random.default_rng(5).standard_normal((7, 4))
    np.testing.assert_allclose(function.value(y), y @ MATRIX.T, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    ("matrix", "spoilt"),
    [(MATRIX, [True, False, False]), (np.diag([1.0, 2.0, 3.0, 4.0]), [False, False, False, True])],
)
def test_not_a_number_stays_in_its_rows(matrix, spoilt):
    """As an infinite torque does at a bad guess: the row that is named must be the one it came from."""
    y = np.ones((2, 4))
    y[1, 3] = np.nan
    found = np.isnan(Linear.of_matrix(tuple(map(str, range(len(matrix)))), matrix, 0).value(y))
    assert not found[0].any()
    assert found[1].tolist() == spoilt


def test_a_matrix_of_zeros():
    assert not Linear.of_matrix(("a", "b"), np.zeros((2, 3)), 0).value(np.ones((4, 3))).any()
