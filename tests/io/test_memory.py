"""Reading takes memory in proportion to what is kept, and what a file claims is checked before it is believed."""

import io
import tracemalloc
import zipfile

import h5netcdf
import h5py
import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_trajectory, write_trajectory

ARM, HUMAN = kg.samples.two_link(), kg.samples.human43()


def peak(function, *arguments):
    """The most memory that a call had at a time, bytes; and what it returned or raised."""
    tracemalloc.start()
    try:
        try:
            result = function(*arguments)
        except kg.InputError as error:
            result = error
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("suffix", "most"),
    [
        (
            ".csv",
            1.5,
        ),  # the arrays, a sixteenth for growth, a block of lines; a mask of finite numbers, an eighth of one
        (".npz", 1.2),
        (".nc", 1.4),
    ],
)
def test_reading_takes_little_more_than_the_data(tmp_path, suffix, most):
    count = 8000
    qva = np.random.default_rng(0).normal(size=(3, count, HUMAN.n))
    path = tmp_path / f"x{suffix}"
    write_trajectory(path, HUMAN, np.arange(count), *qva)
    read_trajectory(path, HUMAN)  # whatever is imported on the way
    found, trajectory = peak(read_trajectory, path, HUMAN)
    np.testing.assert_array_equal(trajectory.v, qva[1])
    assert found < most * (qva.nbytes + 8 * count) + 2e6  # 2 MB: text and objects of one block of lines


def npz(path, **members):
    """An archive of the given bytes, packed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def npy(array, shape=None):
    """An array as in an NPZ, with another shape in its header if wanted."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | ({} if shape is None else {"shape": shape})
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


ZEROS = np.zeros((5, 2))
LARGE = 2_000_000  # zeros that are packed into 16 kB


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"others": npy(np.zeros(LARGE))}, "array 'others' is unknown"),
        ({"t": npy(np.zeros((LARGE // 5, 5)))}, r"`t` has shape \(400000, 5\)"),
        ({"v": npy(np.zeros((LARGE, 1)))}, r"`v` has shape \(2000000, 1\)"),
        ({"v": npy(np.zeros(LARGE, complex).reshape(-1, 2))}, "`v` holds complex numbers"),
        ({"joint_names": npy(np.zeros(LARGE, "U2"))}, "has 2000000 joint names of up to 2 characters; expected 2"),
        ({"joint_names": npy(np.array(["a", "b" * LARGE]))}, "2 joint names of up to 2000000 characters"),
        ({"v": npy(ZEROS, (LARGE, 2))}, "`v` of shape .* takes 32000000 bytes, and .* in the file"),
        ({"v": npy(ZEROS, (10**15, 2))}, "`v` of shape .* more than any packing achieves"),
        ({"v": npy(ZEROS, (6, 2))}, "takes another number of bytes"),
        ({"v": npy(ZEROS) + b"more"}, "takes another number of bytes"),
        ({"v": b""}, "not a readable NPZ"),
        ({"v": npy(ZEROS)[:3]}, "not a readable NPZ"),
        ({"v": b"\x93NUMPY\x03\x00" + npy(ZEROS)[8:]}, "header of version"),
    ],
)
def test_npz_headers_are_checked_before_arrays_are_unpacked(tmp_path, changes, message):
    path = tmp_path / "x.npz"
    npz(path, **({x: npy(ZEROS) for x in "qva"} | changes))
    with pytest.raises(kg.InputError, match=message):
        read_trajectory(path, ARM)
    found, error = peak(read_trajectory, path, ARM)
    assert isinstance(error, kg.InputError)
    assert found < 1e6


def test_an_array_that_is_there_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for x in "qva":
            archive.writestr(f"{x}.npy", npy(ZEROS))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("q.npy", npy(ZEROS))
    with pytest.raises(kg.InputError, match="array 'q' is there twice"):
        read_trajectory(tmp_path / "x.npz", ARM)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_that_numpy_does_not_write(tmp_path, compression):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", compression) as archive:
        for x in "qva":
            archive.writestr(f"{x}.npy", npy(ZEROS))
    with pytest.raises(kg.InputError, match="array 'q' is packed by method"):
        read_trajectory(tmp_path / "x.npz", ARM)


@pytest.mark.parametrize("order", ["<", ">"])
def test_names_of_characters_that_do_not_exist(tmp_path, order):
    """NumPy makes a text of any 32-bit numbers; Python's own functions then raise a SystemError, or worse."""
    codes = np.array([[115, 0xFFFFFFFF], [101, 0]], f"{order}u4")
    npz(tmp_path / "x.npz", **{x: npy(ZEROS) for x in "qva"}, joint_names=npy(codes.view(f"{order}U2")[:, 0]))
    with pytest.raises(kg.InputError, match="joint names hold a character that does not exist"):
        read_trajectory(tmp_path / "x.npz", ARM)


def test_compressed_archives_are_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", q=ZEROS, v=np.asfortranarray(ZEROS + 1), a=np.arange(10).reshape(5, 2))
    found = read_trajectory(tmp_path / "x.npz", ARM)
    assert found.a.dtype == np.float64
    assert found.a.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert (found.v == 1).all()


@pytest.mark.parametrize("name", ["q", "joint", "time"])
def test_netcdf_variables_that_were_never_filled(tmp_path, name):
    """A few kilobytes that claim 160 GB of fill values."""
    path = tmp_path / "x.nc"
    write_trajectory(path, ARM, np.arange(5), ZEROS, ZEROS, ZEROS)
    with h5py.File(path, "a") as file:
        del file[name]
        file.create_dataset(name, (10**10, 2) if name == "q" else (10**10,), chunks=True, dtype="f8")
    found, error = peak(read_trajectory, path, ARM)
    assert isinstance(error, kg.InputError)
    assert "more than any packing achieves" in str(error)
    assert found < 5e6


def test_other_variables_of_a_netcdf_file_are_not_read(tmp_path):
    path = tmp_path / "x.nc"
    write_trajectory(path, ARM, None, ZEROS, ZEROS, ZEROS)
    with h5netcdf.File(path, "a") as file:
        file.dimensions["marker"] = 10**10
        file.create_variable("markers", ("time", "marker"), "f8", chunks=(5, 1000))
    assert len(read_trajectory(path, ARM).q) == 5


@pytest.mark.parametrize("link", [h5py.SoftLink("/v"), h5py.ExternalLink("other.nc", "/q")])
def test_netcdf_variables_elsewhere_are_refused(tmp_path, link):
    path = tmp_path / "x.nc"
    write_trajectory(path, ARM, None, ZEROS, ZEROS, ZEROS)
    with h5py.File(path, "a") as file:
        del file["q"]
        file["q"] = link
    with pytest.raises(kg.InputError, match="variable 'q' is a link"):
        read_trajectory(path, ARM)


def test_an_endless_line_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("kinegrad.io.csv_file.LINE", 1000)
    (tmp_path / "x.csv").write_text("t" * 100_000)
    with pytest.raises(kg.InputError, match="a line of more than 1000 characters"):
        read_trajectory(tmp_path / "x.csv", ARM)
