"""Files of models whose coordinates are not their joints, and what other packages are given of them."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError
from kinegrad.io import read_trajectory, write_torques, write_trajectory
from tests.mixed import mixed_state, mixed_tree


@pytest.mark.parametrize("kind", ["csv", "npz", "nc"])
def test_numbers_survive_the_round_trip(tmp_path, kind):
    model = mixed_tree(2)
    assert model.nq != model.nv
    q, v, a = mixed_state(model, 2, (4,))
    path = tmp_path / f"motion.{kind}"
    write_trajectory(path, model, [0, 1, 2, 3], q, v, a)
    found = read_trajectory(path, model)
    for x, y in ((found.q, q), (found.v, v), (found.a, a), (found.t, [0, 1, 2, 3])):
        assert np.array_equal(x, y)
    write_torques(tmp_path / f"tau.{kind}", model, None, kg.inverse_dynamics(model, q, v, a))
    with pytest.raises(InputError, match=r"is missing|is unknown|has shape"):
        read_trajectory(path, mixed_tree(3))


def test_columns_have_the_names_of_coordinates_and_speeds(tmp_path):
    model = mixed_tree(2)
    q, v, a = mixed_state(model, 2, (1,))
    write_trajectory(tmp_path / "motion.csv", model, None, q, v, a)
    header = (tmp_path / "motion.csv").read_text().splitlines()[0].split(",")
    expected = [f"q.{x}" for x in model.coordinate_names] + [f"{y}.{x}" for y in "va" for x in model.speed_names]
    assert header == expected


def test_quaternions_in_files_are_of_unit_length(tmp_path):
    model = mixed_tree(2)
    q, v, a = mixed_state(model, 2, (2,))
    path = tmp_path / "motion.npz"
    k = model.layout.balls[0][1]
    np.savez(path, q=np.where(np.arange(model.nq) == k, 2.0, q), v=v, a=a)
    with pytest.raises(InputError, match=r"motion.npz: `q` of state 0 has a quaternion of length"):
        read_trajectory(path, model)
    with pytest.raises(InputError, match="`q` of state 0 has a quaternion of length"):
        write_trajectory(path, model, None, np.where(np.arange(model.nq) == k, 2.0, q), v, a)
