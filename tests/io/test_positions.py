"""Files of positions as other programs write them: separators, names of times, units, gaps; what is wrong is named."""

import numpy as np
import pytest
import xarray

import kinegrad as kg
from kinegrad.io import read_positions, read_trajectory

ARM, CART = kg.samples.two_link(), kg.samples.cart_pendulum()


def written(folder, text, name="x.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("time", ["t", "time", "Time", "TIME [s]", "time (s)", "timestamp", "Seconds", "t [ms]"])
@pytest.mark.parametrize("prefix", ["q.", ""])
def test_separators_and_names_of_times_are_found(tmp_path, separator, time, prefix):
    last = "500" if "ms" in time else "0.5"
    lines = [[time, f"{prefix}elbow", f"{prefix}shoulder"], ["0", "1", "2"], [last, "3", "4"]]
    found = read_positions(written(tmp_path, "\n".join(map(separator.join, lines))), ARM)
    np.testing.assert_array_equal(found.t, [0, 0.5])
    np.testing.assert_array_equal(found.q, [[2, 1], [4, 3]])


def test_decimal_commas_where_commas_do_not_separate(tmp_path):
    found = read_positions(written(tmp_path, "t;shoulder;elbow\n0;1,5;-2,25\n0,1;0,5;1e-1\n"), ARM)
    np.testing.assert_array_equal(found.q, [[1.5, -2.25], [0.5, 0.1]])


def test_degrees_by_argument_or_by_header_and_lengths_stay(tmp_path):
    slides, turns = (name for _, name in sorted(zip([x.kind for x in CART.joints], CART.joint_names, strict=True)))
    path = written(tmp_path, f"t,{slides},{turns}\n0,2,180\n")
    found = dict(zip(CART.joint_names, read_positions(path, CART, units="deg").q[0], strict=True))
    assert found == {slides: 2, turns: np.pi}
    assert sorted(read_positions(path, CART, units="rad").q[0]) == [2, 180]
    header = written(tmp_path, "t,shoulder [deg],elbow\n0,90,1\n")
    np.testing.assert_allclose(read_positions(header, ARM).q[0], [np.pi / 2, 1])
    np.testing.assert_allclose(read_positions(header, ARM, units="deg").q[0], [np.pi / 2, np.pi / 180])


def test_degrees_of_whole_trajectories_in_every_kind_of_file(tmp_path):
    rows = {x: np.full((3, 2), 90.0) for x in "qva"}
    np.savez(tmp_path / "x.npz", **rows)
    data = {x: (("time", "joint"), each) for x, each in rows.items()}
    xarray.Dataset(data, {"joint": ["shoulder", "elbow"]}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    header = ",".join(f"{x}.{name}" for x in "qva" for name in ARM.joint_names)
    written(tmp_path, header + "\n" + ",".join(["90"] * 6) + "\n")
    for name in ("x.npz", "x.nc", "x.csv"):
        found = read_trajectory(tmp_path / name, ARM, units="deg")
        for x in (found.q, found.v, found.a):
            np.testing.assert_allclose(x, np.pi / 2)


@pytest.mark.parametrize("gap", ["", " ", "nan", "NaN", "NA", "n/a", "null"])
def test_gaps_are_nan(tmp_path, gap):
    found = read_positions(written(tmp_path, f"t,shoulder,elbow\n0,1,2\n1,{gap},4\n"), ARM)
    np.testing.assert_array_equal(found.q, [[1, 2], [np.nan, 4]])


def test_positions_alone_in_npz_and_netcdf(tmp_path):
    q = np.arange(10.0).reshape(5, 2)
    np.savez(tmp_path / "x.npz", q=q, t=np.arange(5))
    coordinates = {"joint": ["shoulder", "elbow"], "time": ("time", np.arange(5), {"units": "s"})}
    xarray.Dataset({"q": (("time", "joint"), q)}, coordinates).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    for name in ("x.npz", "x.nc"):
        found = read_positions(tmp_path / name, ARM)
        np.testing.assert_array_equal(found.q, q)
        np.testing.assert_array_equal(found.t, np.arange(5))
        with pytest.raises(kg.InputError, match=r"has q alone; expected .* of v and a, too: .*read_motion"):
            read_trajectory(tmp_path / name, ARM)


def test_columns_that_are_not_there(tmp_path):
    human = kg.samples.human43()
    path = written(tmp_path, "time,right_elbow.x,right_knee\n0,10,20\n")
    with pytest.raises(kg.InputError, match=r"column 'q.*' is missing") as error:
        read_positions(path, human)
    assert len(str(error.value)) < 400  # not the whole header
    found = read_positions(path, human, units="deg", missing="neutral")
    assert len(found.held) == 41
    assert found.q[0, human.joint_index("right_knee")] == pytest.approx(np.radians(20))
    with pytest.raises(kg.InputError, match="has no column of a coordinate"):
        read_positions(written(tmp_path, "t\n0\n"), human, missing="neutral")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,shoulder,elbow\n0,1,two\n", "line 2, column 'q.elbow': is 'two'"),
        ("t,shoulder,elbow\n,1,2\n", "time of instant 0 is missing"),
        ("t,shoulder,elbw\n0,1,2\n", "column 'elbw' is unknown"),
        ("t,time,shoulder,elbow\n0,0,1,2\n", "column 't' is there twice"),
        ("t,shoulder [kg],elbow\n0,1,2\n", r"column 'q.shoulder' is in 'kg'; expected a unit such as 'rad' or 'deg'"),
        ("t;shoulder;elbow\n0;1,5;2.5\n", "decimal commas and decimal points"),
        ("t,shoulder,elbow\n", "has no instants"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(kg.InputError, match=f"x.csv.*{message}"):
        read_positions(written(tmp_path, text), ARM)


@pytest.mark.parametrize(
    ("option", "value"), [("units", "degrees"), ("units", 1), ("missing", "zero"), ("missing", None)]
)
def test_options_are_checked(tmp_path, option, value):
    path = written(tmp_path, "t,shoulder,elbow\n0,1,2\n")
    with pytest.raises(kg.InputError, match=f"`{option}` is"):
        read_positions(path, ARM, **{option: value})


def test_motion_files_of_opensim_are_positions(tmp_path):
    model = kg.samples.two_link()
    path = tmp_path / "reach.mot"
    table = kg.io.StorageTable([0.0, 0.1], ("elbow", "shoulder", "muscle"), [[90, 0, 1], [45, 10, 1]], in_degrees=True)
    kg.io.write_storage(path, table)
    found = read_positions(path, model)
    np.testing.assert_allclose(found.q, np.radians([[0, 90], [10, 45]]), rtol=1e-15)
    np.testing.assert_array_equal(found.t, [0.0, 0.1])
    kg.io.write_storage(path, kg.io.StorageTable([0.0, 0.1], ("elbow",), [[90], [45]], in_degrees=True))
    with pytest.raises(kg.InputError, match="shoulder"):
        read_positions(path, model)
    assert read_positions(path, model, missing="neutral").held == ("shoulder",)


def test_angles_that_look_like_degrees_are_warned_about(tmp_path):
    model, path = kg.samples.two_link(), tmp_path / "reach.csv"
    path.write_text("t,shoulder,elbow\n0,0,-90\n0.1,1,\n", encoding="utf-8")
    with pytest.warns(kg.UnitsWarning, match=r"'elbow' reaches 90 rad, which looks like degrees; expected units 'deg'"):
        read_positions(path, model)
    assert read_positions(path, model, units="rad").q[0, 1] == -90  # said so: no warning, which would be an error here
    assert abs(read_positions(path, model, units="deg").q[0, 1]) < 2


def test_whole_trajectories_in_degrees_are_warned_about(tmp_path):
    """With speeds and accelerations, too: they were radians without a word."""
    model, path = kg.samples.two_link(), tmp_path / "reach.csv"
    names = [f"{x}.{joint}" for x in "qva" for joint in ("shoulder", "elbow")]
    path.write_text(",".join(["t", *names]) + "\n0,0,-90,0,0,0,0\n0.1,1,2,0,0,0,0\n", encoding="utf-8")
    with pytest.warns(kg.UnitsWarning, match=r"'elbow' reaches 90 rad, which looks like degrees"):
        kg.io.read_trajectory(path, model)
    assert kg.io.read_trajectory(path, model, units="rad").q[0, 1] == -90


def test_many_turns_are_no_degrees_where_the_file_says_so(tmp_path, recwarn):
    """A header with a unit, gaps in its column, and NetCDF as it is written here."""
    headed = written(tmp_path, "t,shoulder [rad],elbow [deg]\n0,30,720\n0.1,,900\n0.2,32,\n")
    assert np.nanmax(read_positions(headed, ARM).q) == 32
    q = np.full((3, 2), 30.0)
    kg.io.write_trajectory(tmp_path / "x.nc", ARM, [0, 0.1, 0.2], q, q, q)
    np.testing.assert_array_equal(read_positions(tmp_path / "x.nc", ARM).q, q)
    assert not [each for each in recwarn if each.category is kg.UnitsWarning]
