"""Trajectory files: numbers come back to the last bit, mistakes are named, no file is ever half written."""

import sys

import numpy as np
import pytest
import xarray

import kinegrad as kg
from kinegrad.io import file_format, read_trajectory, trajectory, write_torques, write_trajectory

ARM, CART, HUMAN = kg.samples.two_link(), kg.samples.cart_pendulum(), kg.samples.human43()
SUFFIXES = [".csv", ".npz", ".nc"]
HEADER = "t,q.shoulder,q.elbow,v.shoulder,v.elbow,a.shoulder,a.elbow\n"


def motion(model, count=5, seed=0):
    random = np.random.default_rng(seed)
    return np.sort(random.normal(size=count)), random.normal(size=(3, count, model.n)) * 10.0 ** random.integers(-9, 9)


# --- round trips --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::kinegrad.UnitsWarning")  # of random numbers
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("model", [ARM, CART, HUMAN], ids=lambda model: model.name)
@pytest.mark.parametrize("timed", [True, False])
def test_a_trajectory_comes_back_to_the_last_bit(tmp_path, model, suffix, timed):
    t, qva = motion(model)
    path = tmp_path / f"motion{suffix}"
    write_trajectory(path, model, t if timed else None, *qva)
    found = read_trajectory(path, model)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)
    assert found.joint_names == model.joint_names
    if timed:
        np.testing.assert_array_equal(found.t, t)
    else:
        assert found.t is None
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [1, 501, 3000])
def test_any_number_of_instants_without_times(tmp_path, suffix, count):
    """NetCDF has a placeholder for a dimension without coordinates, which says its length and stores nothing."""
    qva = np.random.default_rng(1).normal(size=(3, count, ARM.n))
    write_trajectory(tmp_path / f"x{suffix}", ARM, None, *qva)
    found = read_trajectory(tmp_path / f"x{suffix}", ARM)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_named_columns_are_put_in_the_models_order(tmp_path, suffix):
    _, qva = motion(ARM)
    q, v, a = qva[..., ::-1]
    path, names = tmp_path / f"reversed{suffix}", ["elbow", "shoulder"]
    if suffix == ".csv":
        header = ",".join(f"{x}.{name}" for x in "avq" for name in names)
        np.savetxt(path, np.hstack([a, v, q]), delimiter=",", header=header, comments="", fmt="%.17g")
    elif suffix == ".npz":
        np.savez(path, q=q, v=v, a=a, joint_names=names)
    else:
        data = {x: (("joint", "time"), each.T) for x, each in zip("qva", (q, v, a), strict=True)}
        xarray.Dataset(data, {"joint": names}).to_netcdf(path, engine="h5netcdf")
    found = read_trajectory(path, ARM)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)


def test_npz_without_names_is_in_the_models_order(tmp_path):
    _, (q, v, a) = motion(ARM)
    np.savez(tmp_path / "plain.npz", q=q, v=v, a=a)
    found = read_trajectory(tmp_path / "plain.npz", ARM)
    np.testing.assert_array_equal(found.v, v)
    assert found.joint_names is None


def test_torques_in_each_kind_of_file(tmp_path):
    t, (tau, _, _) = motion(CART)
    for suffix in SUFFIXES:
        write_torques(tmp_path / f"tau{suffix}", CART, t, tau)
    lines = (tmp_path / "tau.csv").read_text().splitlines()
    assert lines[0].split(",") == ["t", *(f"tau.{name}" for name in CART.joint_names)]
    np.testing.assert_array_equal([[float(x) for x in line.split(",")] for line in lines[1:]], np.c_[t, tau])
    with np.load(tmp_path / "tau.npz") as file:
        np.testing.assert_array_equal(file["tau"], tau)
        assert tuple(file["joint_names"]) == CART.joint_names
    with xarray.open_dataset(tmp_path / "tau.nc", engine="h5netcdf", decode_times=False) as file:
        np.testing.assert_array_equal(file.tau.sel(joint=CART.joint_names[1]), tau[:, 1])
        assert file.tau.attrs["units"] == "N m or N"
        assert file.kind.values.tolist() == [joint.kind for joint in CART.joints]
        assert file.time.attrs["units"] == "s"


def test_spreadsheet_habits_are_fine(tmp_path):
    text = "\ufeff" + HEADER.replace(",", ", ") + "0, 1,2,3,4,5, 6\r\n\r\n"  # BOM, spaces, CRLF, a blank line
    (tmp_path / "sheet.csv").write_text(text, encoding="utf-8")
    assert read_trajectory(tmp_path / "sheet.csv", ARM).a.tolist() == [[5, 6]]


# --- mistakes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a header"),
        (HEADER, "has no instants"),
        (HEADER.replace("q.elbow", "q.elbw"), "column 'q.elbw' is unknown; did you mean 'q.elbow'"),
        (
            HEADER.replace("q.elbow,", ""),
            "column 'q.elbow' is missing; expected 'q.shoulder', .* found .*'v.elbow'",
        ),
        (HEADER.replace("v.elbow", "q.elbow"), "column 'q.elbow' is there twice"),
        (HEADER.replace(",", ";") + "0;1;2,5;3;4;5;6\n0;1;2.5;3;4;5;6\n", "decimal commas and decimal points"),
        ("t,q.shoulder,q.elbow\n0,1,2\n", "has q alone; expected columns of v and a, .*read_motion"),
        (
            HEADER + "0,1,2,3,4,5,6\n0,1,2,3,4,x5,6\n",
            "line 3, column 'a.shoulder': is 'x5'; expected a finite decimal number",
        ),
        (HEADER + "0,1,2,3,4,5,\n", "line 2, column 'a.elbow': is ''"),
        (HEADER + "\n0,1,nan,3,4,5,6\n", "line 3, column 'q.elbow': is 'nan'"),
        (HEADER + "0,1,2\n", "line 2: has 3 values; expected 7"),
    ],
)
def test_csv_mistakes_are_named(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(kg.InputError, match=f"bad.csv.*{message}"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize(
    "text",
    ["1_0", "nan", "-inf", "infinity", "0x10", "1d3", "1e", "e5", "1 2", "--1", "+-1", "1.2.3", "٣", "１", "1\u00a0",
     "", " ", "None", "true", "'1", "1\0", "−1", "1e5L", "1f", "(1)", "#1"],
)  # fmt: skip
def test_what_is_no_decimal_number(tmp_path, text):
    """Also what Python's float() would take: 1_0 for 10, Arabic digits, a blank that does not break."""
    (tmp_path / "x.csv").write_text(HEADER + f"0,1,2,3,{text},5,6\n", encoding="utf-8")
    with pytest.raises(kg.InputError, match=r"line 2, column 'v.elbow': is .*; expected a finite decimal number"):
        read_trajectory(tmp_path / "x.csv", ARM)


@pytest.mark.parametrize("text", ["1", "+1", "1.", "1.0", "01", "10e-1", ".1E1", '"1"', " 1", "1\t", "100000e-5"])
def test_what_is_a_decimal_number(tmp_path, text):
    (tmp_path / "x.csv").write_text(HEADER + f"0,1,2,3,{text},5,6\n")
    assert read_trajectory(tmp_path / "x.csv", ARM).v.tolist() == [[3, 1]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('0,1,2,3,"1,5",5,6', "column 'v.elbow': is '1,5'; expected a finite decimal number, with a decimal point"),
        ("0,1,2,3,1e999,5,6", "line 2, column 'v.elbow': is beyond the largest number"),
        ('0,1,2,3,"1"2,5,6', "is not a CSV text"),  # not 12
        ('0,1,2,3,"4,5,6', "is not a CSV text"),
        ("0,1,2,3," + "9" * 5000 + "x,5,6", r"is '9+\.\.\.9+x'; expected"),
        ("0,1,2,3,4,5,6\r0,1,2,3,4,5", "line 3: has 6 values"),
    ],
)
def test_lines_that_could_be_misread(tmp_path, line, message):
    (tmp_path / "x.csv").write_text(HEADER + line + "\n", newline="")
    with pytest.raises(kg.InputError, match=message) as error:
        read_trajectory(tmp_path / "x.csv", ARM)
    assert len(str(error.value)) < 500


def test_messages_stay_short(tmp_path):
    """Whatever a file holds, what is said about it fits on a screen."""
    long = "x" * 100_000
    (tmp_path / "x.csv").write_text(f"{HEADER.strip()},{long}\n")
    np.savez(tmp_path / "x.npz", **{x: np.zeros((5, 2)) for x in "qva"}, **{long[:9000]: [0]})
    np.savez(tmp_path / "y.npz", **{x: np.zeros((5, 2)) for x in "qva"}, joint_names=["shoulder", long[:3000]])
    data = {x: (("time", "joint"), np.zeros((5, 2))) for x in "qva"}
    xarray.Dataset(data, {"joint": ["shoulder", long]}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    for name in ("x.csv", "x.npz", "y.npz", "x.nc"):
        with pytest.raises(kg.InputError) as error:
            read_trajectory(tmp_path / name, ARM)
        assert len(str(error.value)) < 600, name


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "name",
    ["a,b", 'a"b', "a;b", "q.q", "é", "肘", "a [deg]", "a (b)", "t", "🦾", "'a'", pytest.param("a" * 5000, id="long")],
)
def test_names_of_joints_come_back(tmp_path, suffix, name):
    builder = kg.ModelBuilder("odd")
    first = builder.add("first", None, kg.revolute("z"), link="one", inertia=kg.Inertia.sphere(1, 0.1))
    builder.add(name, first, kg.revolute("x"), link="two", inertia=kg.Inertia.sphere(1, 0.1))
    model = builder.build()
    qva = np.random.default_rng(4).normal(size=(3, 2, 2))
    write_trajectory(tmp_path / f"x{suffix}", model, [0, 1], *qva)
    found = read_trajectory(tmp_path / f"x{suffix}", model)
    np.testing.assert_array_equal([found.q, found.v, found.a], qva)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "array 'q' is missing"),
        ({"joint_name": ["elbow", "shoulder"]}, "array 'joint_name' is unknown; did you mean 'joint_names'"),
        ({"joint_names": ["shoulder", "elbo"]}, "joint 'elbo' is unknown; did you mean 'elbow'"),
        ({"joint_names": ["elbow", "elbow"]}, "joint 'elbow' is there twice"),
        ({"joint_names": ["elbow"]}, "joint 'shoulder' is missing"),
        ({"joint_names": [1, 2]}, "joint names are int64"),
        ({"v": np.zeros((5, 3))}, r"`v` has shape \(5, 3\); expected \(N, 2\)"),
        ({"v": np.zeros((4, 2))}, "`v` has 4.* instants; expected as many"),
        ({"a": np.full((5, 2), np.inf)}, r"`a` at index \(0, 0\) is inf"),
        ({"a": np.zeros((5, 2), complex)}, "`a` holds complex numbers"),
        ({"q": np.array([[None]])}, "`q` holds dtype object"),
        ({"t": [0.0]}, r"`t` has shape \(1,\); expected \(5,\)"),
    ],
)
def test_npz_mistakes_are_named(tmp_path, changes, message):
    arrays = {x: np.zeros((5, 2)) for x in "qva"} | changes
    path = tmp_path / "bad.npz"
    np.savez(path, **{name: each for name, each in arrays.items() if each is not None})
    with pytest.raises(kg.InputError, match=f"bad.npz: .*{message}"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize(
    ("variables", "coordinates", "message"),
    [
        ("qv", {"joint": ["shoulder", "elbow"]}, "variable 'a' is missing"),
        ("qva", {}, "variable 'joint' is missing"),
        ("qva", {"joint": ["shoulder", "wrist"]}, "joint 'wrist' is unknown"),
        (
            "qva",
            {"joint": ["shoulder", "elbow"], "time": ("time", np.arange(5), {"units": "months"})},
            "`time` is in 'months'; expected 's'",
        ),
    ],
)
def test_netcdf_mistakes_are_named(tmp_path, variables, coordinates, message):
    path = tmp_path / "bad.nc"
    data = {x: (("time", "joint"), np.zeros((5, 2))) for x in variables}
    xarray.Dataset(data, coordinates).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(kg.InputError, match=f"bad.nc: .*{message}"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe garbage", b"PK\x03\x04 cut short", b"\x89HDF\r\n\x1a\n"])
def test_garbage_is_an_input_error(tmp_path, suffix, content):
    path = tmp_path / f"garbage{suffix}"
    path.write_bytes(content)
    with pytest.raises(kg.InputError, match="garbage"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_in_the_middle_is_an_input_error(tmp_path, suffix):
    path = tmp_path / f"cut{suffix}"
    t, qva = motion(ARM, 50)
    write_trajectory(path, ARM, t, *qva)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(kg.InputError, match="cut"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize(("offset", "value"), [(16, 0), (24, 2**64 - 8), (24, 2**40), (8, 15), (8, 2**50)])
def test_a_damaged_heap_of_a_netcdf_file_is_an_input_error(tmp_path, offset, value):
    """HDF5 2.0 never comes back from the first: it stays in a free object of size zero."""
    path = tmp_path / "heap.nc"
    t, qva = motion(ARM)
    write_trajectory(path, ARM, t, *qva)
    content = bytearray(path.read_bytes())
    begin = content.index(b"GCOL")
    content[begin + offset : begin + offset + 8] = value.to_bytes(8, "little")
    if not value:
        content[begin + 24 : begin + 32] = bytes(8)
    path.write_bytes(content)
    with pytest.raises(kg.InputError, match=rf"heap.nc: .*the heap at byte {begin} is damaged"):
        read_trajectory(path, ARM)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_that_do_not_exist(tmp_path, suffix):
    with pytest.raises(kg.InputError, match=r"none.*cannot be read: No such file"):
        read_trajectory(tmp_path / f"none{suffix}", ARM)
    with pytest.raises(kg.InputError, match="cannot be written"):
        write_torques(tmp_path / "nowhere" / f"x{suffix}", ARM, None, np.zeros((1, 2)))


def test_unknown_kinds_of_files():
    with pytest.raises(kg.InputError, match=r"'\.txt' are unknown; expected \.csv, \.npz or \.nc"):
        file_format("motion.txt")


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(kg.InputError, match=r"`tau` has shape \(2,\); expected \(N, 2\)"):
        write_torques(tmp_path / "x.csv", ARM, None, [1, 2])
    with pytest.raises(kg.InputError, match="`v` has 2 instants; expected 1"):
        write_trajectory(tmp_path / "x.csv", ARM, None, [[1, 2]], np.zeros((2, 2)), [[1, 2]])
    with pytest.raises(kg.InputError, match="`t` has shape"):
        write_torques(tmp_path / "x.csv", ARM, [0, 1], [[1, 2]])
    assert not list(tmp_path.iterdir())


# --- whole or not at all ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError("disk full"), RuntimeError])
def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch, suffix, stop):
    path = tmp_path / f"old{suffix}"
    path.write_text("old")
    write = trajectory._WRITERS[suffix]

    def fail(file, *arguments):
        write(file, *arguments)
        assert file.tell() > 0  # it fails with something already written
        raise stop

    monkeypatch.setitem(trajectory._WRITERS, suffix, fail)
    with pytest.raises((KeyboardInterrupt, kg.InputError, RuntimeError)):
        write_torques(path, ARM, None, [[1, 2]])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_netcdf_without_h5py_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(kg.InputError, match="NetCDF needs the package 'h5py'; install it"):
        write_torques(tmp_path / "x.nc", ARM, None, [[1, 2]])
    assert not list(tmp_path.iterdir())
