"""Transforms as models take them: rotations keep their bits, rounded ones are replaced by the nearest rotation."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.model.placement import check_transform


def rotations(count):
    """Of all axes and angles, and products of some."""
    rng = np.random.default_rng(2)
    one = np.array([kg.rotate(rng.normal(size=3), rng.uniform(-7, 7)) for _ in range(count)])
    return np.concatenate([one, one @ one[::-1], np.linalg.matrix_power(one, 3)])


def test_rotations_keep_their_bits():
    for T in rotations(300):
        np.testing.assert_array_equal(check_transform("`T`", T), T)


@pytest.mark.parametrize("digits", [10, 12, 14])
def test_rounded_rotations_become_the_nearest_ones(digits):
    """By another route: the polar factor U Vᵀ of R = U Σ Vᵀ.  What has become a rotation stays as it is."""
    for T in rotations(100):
        given = np.round(T, digits)
        kept = given.copy()
        found = check_transform("`T`", given)
        U, _, V = np.linalg.svd(given[:3, :3])
        np.testing.assert_allclose(found[:3, :3], U @ V, rtol=0, atol=1e-14)  # U Vᵀ has several roundings as well
        np.testing.assert_array_equal(check_transform("`T`", found), found)
        np.testing.assert_array_equal(given, kept)
