"""Labelled simulations: the same numbers under names, with units, and back from a file."""

import numpy as np
import pytest
import xarray

from kinegrad import Design, samples
from kinegrad.io import read_trajectory, write_dataset
from kinegrad.simulate import simulate, simulate_fixed
from tests.simulate.models import pendulum

TIMES = np.linspace(0, 0.5, 6)


def test_simulation_of_a_design():
    design = pendulum()
    motion = simulate(design.model, [1.0, 0.5], [0.0, 0.2], TIMES, tau=[0.1, 0.2], design=design)
    data = motion.to_xarray()
    assert dict(data.sizes) == {"time": 6, "joint": 2, "parameter": 4}
    assert set(data.data_vars) == {"q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp"}
    for name, found in data.data_vars.items():
        assert found.dims == ("time", "joint", "parameter")[: found.ndim]
        np.testing.assert_array_equal(found.values, getattr(motion, name))
    np.testing.assert_array_equal(data["time"], TIMES)
    one = data["dq_dp"].sel(joint="hinge2", parameter="MQ").isel(time=-1)
    assert one.item() == motion.dq_dp[-1, 1, 3]
    assert one["value"] == 1.0  # MQ, kg
    assert data["parameter"].values.tolist() == ["L1", "L2", "MP", "MQ"]
    assert data.attrs["model"] == "double_pendulum"
    assert data.attrs["message"] == "reached the end"
    assert data.attrs["nfev"] == motion.nfev


def test_units_follow_the_joints():
    """A cart that slides, and a rod that turns: both units, and which joint has which."""
    cart = samples.cart_pendulum()
    data = simulate(cart, [0, 1], [0, 0], TIMES, design=Design(cart, ["rod.mass"])).to_xarray()
    assert data["time"].attrs["units"] == "s"
    assert data["a"].attrs["units"] == "rad s-2 or m s-2"
    assert data["dtau_dp"].attrs["units"] == "N m per unit of the parameter or N per unit of the parameter"
    assert data["kind"].values.tolist() == ["prismatic", "revolute"]


@pytest.mark.parametrize(("batch", "dims"), [((), ()), ((3,), ("batch",)), ((2, 3), ("batch0", "batch1"))])
@pytest.mark.parametrize("sensitive", [False, True])
def test_batches(batch, dims, sensitive):
    design = pendulum()
    q0 = np.random.default_rng(3).normal(size=(*batch, 2))
    run = {"step": 0.02, "steps": 10, "every": 5, "design": design if sensitive else None}
    motion = simulate_fixed(design.model, q0, [0, 0], **run)
    data = motion.to_xarray()
    assert data["q"].dims == ("time", *dims, "joint")
    np.testing.assert_array_equal(data["q"], motion.q)
    np.testing.assert_allclose(data["time"], [0, 0.1, 0.2], rtol=1e-15)
    assert ("dv_dp" in data) == sensitive
    assert ("parameter" in data.coords) == sensitive
    if sensitive:
        assert data["dv_dp"].dims == ("time", *dims, "joint", "parameter")
        np.testing.assert_array_equal(data["dv_dp"], motion.dv_dp)


def test_a_file_keeps_it_all_and_is_a_trajectory(tmp_path):
    """Written as NetCDF it comes back the same; and read_trajectory reads it, for its names are those of such files."""
    design = pendulum()
    motion = simulate(design.model, [1.0, 0.5], [0.0, 0.2], TIMES, design=design)
    data, path = motion.to_xarray(), tmp_path / "motion.nc"
    write_dataset(path, data)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as back:
        xarray.testing.assert_equal(back.load(), data)
        assert back.attrs["steps"] == motion.steps
    np.testing.assert_array_equal(read_trajectory(path, design.model).a, motion.a)


def test_a_motion_that_diverged_says_so():
    motion = simulate_fixed(samples.double_pendulum(), [1, 0], [0, 1], step=0.1, steps=40, tau=lambda t, q, v: 9 * v**3)
    data = motion.to_xarray()
    assert data.attrs["status"] == -1
    assert data.attrs["message"].startswith("diverged at t = ")
