"""Units in files: known ones are converted, unknown ones refused with the variable and the unit."""

import math

import numpy as np
import pytest
import xarray

import kinegrad as kg
from kinegrad.io import read_trajectory, write_trajectory
from kinegrad.io.units import joint_factor, time_factor

ARM, CART = kg.samples.two_link(), kg.samples.cart_pendulum()
DEGREE = math.pi / 180


def write(path, model, units, *, time=None, values=None):
    """A NetCDF file as others write it, with `units` by variable."""
    values = np.arange(1.0, 1 + 3 * 4 * model.n).reshape(3, 4, model.n) if values is None else values
    data = {
        x: (("time", "joint"), each, {"units": units[x]} if x in units else {})
        for x, each in zip("qva", values, strict=True)
    }
    coordinates = {"joint": list(model.joint_names)}
    if time is not None:
        coordinates["time"] = ("time", np.arange(4), {"units": time})
    xarray.Dataset(data, coordinates).to_netcdf(path, engine="h5netcdf")
    return values


def test_degrees_become_radians(tmp_path):
    """What a file in degrees held was once taken for radians without a word."""
    q, v, a = write(tmp_path / "x.nc", ARM, {"q": "degrees", "v": "deg/s", "a": "degrees s-2"})
    found = read_trajectory(tmp_path / "x.nc", ARM)
    np.testing.assert_allclose([found.q, found.v, found.a], np.radians([q, v, a]), rtol=4e-16)


def test_files_without_units_are_in_si(tmp_path):
    qva = write(tmp_path / "x.nc", ARM, {})
    found = read_trajectory(tmp_path / "x.nc", ARM)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)


@pytest.mark.parametrize("units", ["deg or mm", "mm or deg", ["mm", "deg"]])
def test_joints_that_turn_and_joints_that_slide(tmp_path, units):
    """One unit for each kind, or one for each joint in the order of the file."""
    assert [joint.kind for joint in CART.joints] == ["prismatic", "revolute"]
    q, _, _ = write(tmp_path / "x.nc", CART, {"q": units})
    found = read_trajectory(tmp_path / "x.nc", CART)
    np.testing.assert_allclose(found.q, q * [1e-3, DEGREE], rtol=4e-16)


@pytest.mark.parametrize(
    ("model", "units", "message"),
    [
        (ARM, {"q": "furlong"}, "`q` of joint 'shoulder' is in 'furlong'; expected 'rad' or a unit that converts"),
        (ARM, {"q": "m"}, "`q` of joint 'shoulder' is in 'm'; expected 'rad'"),
        (ARM, {"v": "deg"}, "`v` of joint 'shoulder' is in 'deg'; expected 'rad s-1'"),
        (ARM, {"a": "deg/s"}, "`a` of joint 'shoulder' is in 'deg/s'; expected 'rad s-2'"),
        (ARM, {"q": "1"}, "`q` of joint 'shoulder' is in '1'"),
        (ARM, {"q": ""}, "`q` of joint 'shoulder' is in ''"),
        (ARM, {"q": 3.0}, "`q` has the units 3.0; expected one text"),
        (ARM, {"q": ["deg", "deg", "deg"]}, "expected one text, or one for each of 2 joints"),
        (CART, {"q": "rad"}, "is in 'rad'; expected 'm'"),
        (ARM, {"q": "x" * 5000}, r"is in 'x+\.\.\.x+'; expected 'rad'"),
    ],
)
def test_other_units_are_refused_by_name(tmp_path, model, units, message):
    write(tmp_path / "x.nc", model, units)
    with pytest.raises(kg.InputError, match=f"x.nc: .*{message}") as error:
        read_trajectory(tmp_path / "x.nc", model)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("units", "factor"), [("s", 1), ("ms", 1e-3), ("minutes", 60), ("seconds since 2024-02-29 12:00:00", 1)]
)
def test_times_become_seconds(tmp_path, units, factor):
    write(tmp_path / "x.nc", ARM, {}, time=units)
    np.testing.assert_allclose(read_trajectory(tmp_path / "x.nc", ARM).t, np.arange(4) * factor, rtol=2e-16)


def test_durations_as_xarray_writes_them(tmp_path):
    values = np.ones((3, 4, 2))
    data = {x: (("time", "joint"), each) for x, each in zip("qva", values, strict=True)}
    times = np.array([0, 250, 500, 1500], "timedelta64[ms]").astype("timedelta64[ns]")
    dataset = xarray.Dataset(data, {"joint": list(ARM.joint_names), "time": times})
    dataset.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    np.testing.assert_allclose(read_trajectory(tmp_path / "x.nc", ARM).t, [0, 0.25, 0.5, 1.5], rtol=4e-16)


def test_packed_numbers_as_xarray_writes_them(tmp_path):
    """16-bit integers with a scale: CF conventions."""
    values = np.array([[[0.5, -0.25]], [[1.0, 2.0]], [[0.0, 0.0]]])
    data = {x: (("time", "joint"), each) for x, each in zip("qva", values, strict=True)}
    packed = {x: {"dtype": "int16", "scale_factor": 0.25, "_FillValue": -9999} for x in "qva"}
    dataset = xarray.Dataset(data, {"joint": list(ARM.joint_names)})
    dataset.to_netcdf(tmp_path / "x.nc", engine="h5netcdf", encoding=packed)
    found = read_trajectory(tmp_path / "x.nc", ARM)
    np.testing.assert_array_equal([found.q, found.v, found.a], values)


def test_a_netcdf_3_file_is_named_as_such(tmp_path):
    xarray.Dataset({"q": ("time", [1.0])}).to_netcdf(tmp_path / "x.nc", engine="scipy")
    with pytest.raises(kg.InputError, match="is a NetCDF 3 file; expected NetCDF 4"):
        read_trajectory(tmp_path / "x.nc", ARM)


@pytest.mark.parametrize(
    ("x", "kind", "units", "factor"),
    [
        ("q", "revolute", "rad", 1),
        ("q", "revolute", "Radians", 1),
        ("q", "screw", "°", DEGREE),
        ("q", "revolute", "turns", 2 * math.pi),
        ("q", "prismatic", "cm", 1e-2),
        ("v", "revolute", "deg/s", DEGREE),
        ("v", "revolute", "deg s-1", DEGREE),
        ("v", "revolute", "deg s^-1", DEGREE),
        ("v", "revolute", "deg·s⁻¹", DEGREE),
        ("v", "revolute", "degrees per second", DEGREE),
        ("v", "revolute", "rpm", 2 * math.pi / 60),
        ("v", "prismatic", "mm/ms", 1),
        ("v", "prismatic", "km/h", 1 / 3.6),
        ("a", "revolute", "deg/s^2", DEGREE),
        ("a", "revolute", "deg/s2", DEGREE),
        ("a", "revolute", "deg/s/s", DEGREE),
        ("a", "revolute", "deg/s**2", DEGREE),
        ("a", "revolute", "rad s**(-2)", 1),
        ("a", "revolute", "degrees per second squared", DEGREE),
        ("a", "prismatic", "mm.s-2", 1e-3),
        ("q", "prismatic", "Mm", None),  # megametres: no upper case for short names
        ("q", "prismatic", "rad", None),
        ("q", "revolute", "rad rad", None),
        ("q", "revolute", "rad2", None),
        ("q", "revolute", "grad", None),
        ("v", "revolute", "deg/", None),
        ("v", "revolute", "/s", None),
        ("q", "revolute", "deg!", None),
    ],
)
def test_how_units_may_be_written(x, kind, units, factor):
    found = joint_factor(x, kind, units)
    assert found is None if factor is None else found == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(
    ("units", "factor"),
    [("s", 1.0), ("ms", 1e-3), ("Seconds", 1.0), ("min", 60.0), ("h", 3600.0), ("days since 1970-01-01", 86400.0)],
)
def test_units_of_time(units, factor):
    """Days, because that is what xarray counts dates in."""
    assert time_factor(units) == factor


@pytest.mark.parametrize("units", ["", "days since", "rad", "s2", "since", "m s", "months since 2000-01-01", "Ms"])
def test_what_is_no_time(units):
    assert time_factor(units) is None


def test_units_in_a_csv_header(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "t [ms],q.shoulder [deg],q.elbow (rad),v.shoulder [deg/s],v.elbow,a.shoulder,a.elbow\n1,2,3,4,5,6,7\n"
    )
    found = read_trajectory(path, ARM)
    assert found.t.tolist() == [1e-3]
    np.testing.assert_allclose(found.q, [[2 * DEGREE, 3]], rtol=4e-16)
    np.testing.assert_allclose(found.v, [[4 * DEGREE, 5]], rtol=4e-16)
    path.write_text(path.read_text().replace("[deg]", "[mm]"))
    with pytest.raises(kg.InputError, match=r"column 'q\.shoulder' is in 'mm'; expected a unit such as 'rad'"):
        read_trajectory(path, ARM)
    path.write_text(path.read_text().replace("[mm]", "[deg]").replace("[ms]", "[Hz]"))
    with pytest.raises(kg.InputError, match="column 't' is in 'Hz'; expected a unit of time"):
        read_trajectory(path, ARM)


def test_what_we_write_comes_back_bit_by_bit(tmp_path):
    """Units of a mixed model are written as 'rad or m' and read as such."""
    qva = np.random.default_rng(3).normal(size=(3, 4, 2))
    write_trajectory(tmp_path / "x.nc", CART, None, *qva)
    found = read_trajectory(tmp_path / "x.nc", CART)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)
