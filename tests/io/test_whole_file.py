"""Files are whole or not there: full disks, interrupts, modes, links, and paths that are none."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_trajectory, write_torques, write_trajectory
from kinegrad.io.whole_file import checked_path, replacing
from tests.kernels.child import child, output

ARM = kg.samples.two_link()
SUFFIXES = [".csv", ".npz", ".nc"]

# HDF5 once left the process with a file that could neither be written nor closed: a segmentation fault at its end.
FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
import kinegrad as kg
from kinegrad.io import write_torques

path, room = Path(sys.argv[1]), int(sys.argv[2])
if room:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    write_torques(path, kg.samples.two_link(), None, np.random.default_rng(0).normal(size=(100_000, 2)))
except kg.InputError as error:
    print(error)
else:
    print("written")
"""


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own with room for 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_an_error_that_says_so(small_disk, suffix):
    path = small_disk / f"x{suffix}"
    path.write_text("old")
    said = output(child(FULL, path, 0))
    assert said == f"{path}: cannot be written: No space left on device\n"
    assert path.read_text() == "old"
    assert list(small_disk.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("room", [10, 10_000])
def test_a_file_that_may_not_grow_is_an_error_that_says_so(tmp_path, suffix, room):
    path = tmp_path / f"x{suffix}"
    path.write_text("old")
    assert output(child(FULL, path, room)) == f"{path}: cannot be written: File too large\n"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# --- modes and links ------------------------------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("old", [0o600, 0o640, 0o444])
def test_a_file_that_is_there_keeps_its_mode(tmp_path, suffix, old):
    path = tmp_path / f"x{suffix}"
    path.touch()
    path.chmod(old)
    write_torques(path, ARM, None, [[1, 2]])
    assert path.stat().st_size > 0
    assert mode(path) == old


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_follows_the_umask(tmp_path, suffix, mask):
    old = os.umask(mask)
    try:
        write_torques(tmp_path / f"x{suffix}", ARM, None, [[1, 2]])
    finally:
        os.umask(old)
    assert mode(tmp_path / f"x{suffix}") == 0o666 & ~mask


def test_nobody_else_reads_a_secret_file_while_it_is_written(tmp_path):
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"secret")
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert mode(temporary) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "x.csv"
    path.touch()
    os.chown(path, 12345, 54321)
    write_torques(path, ARM, None, [[1, 2]])
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "x.csv").symlink_to(tmp_path / "there" / "y.csv")
    for _ in range(2):  # it points to nothing at first
        write_torques(tmp_path / "x.csv", ARM, None, [[1, 2]])
        assert (tmp_path / "x.csv").is_symlink()
        assert (tmp_path / "there" / "y.csv").is_file()


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    write_torques(path, ARM, None, [[1, 2]])
    assert path.is_file()


# --- paths that are none --------------------------------------------------------------------------------------------


class Broken:
    def __fspath__(self):
        raise RuntimeError


WRONG = [None, b"x.csv", 3, 3.5, ["x.csv"], Broken(), Path, "x\0y.csv", "\ud800.csv", ""]


@pytest.mark.parametrize("path", WRONG, ids=lambda path: ascii(path).split(" object at ")[0])
def test_what_is_no_path_is_an_input_error(path):
    with pytest.raises(kg.InputError, match=r"`path`|files of kind ''"):
        read_trajectory(path, ARM)
    with pytest.raises(kg.InputError, match=r"`path`|files of kind ''"):
        write_torques(path, ARM, None, [[1, 2]])


def test_a_path_that_is_not_in_utf_8_is_a_path(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.csv")
    write_torques(path, ARM, None, [[1, 2]])
    assert checked_path(path) == path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_regular_file(tmp_path, suffix):
    """A loop of links, a folder, a pipe (which would wait for a writer), a device (which would be replaced)."""
    loop, folder, pipe, device = (tmp_path / f"{name}{suffix}" for name in ("loop", "folder", "pipe", "device"))
    loop.symlink_to(loop)
    folder.mkdir()
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    expected = {
        loop: "Too many levels of symbolic links",
        folder: "is a folder",
        pipe: "is a named pipe",
        device: "is a device",
    }
    for path, message in expected.items():
        with pytest.raises(kg.InputError, match=f"{path.name}: .*{message}"):
            read_trajectory(path, ARM)
        with pytest.raises(kg.InputError, match=f"{path.name}: .*{message}"):
            write_torques(path, ARM, None, [[1, 2]])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("model", [None, "two_link", 3])
def test_what_is_no_model(tmp_path, suffix, model):
    write_torques(tmp_path / f"x{suffix}", ARM, None, [[1, 2]])
    with pytest.raises(kg.InputError, match="`model` is a"):
        read_trajectory(tmp_path / f"x{suffix}", model)
    with pytest.raises(kg.InputError, match="`model` is a"):
        write_trajectory(tmp_path / f"x{suffix}", model, None, *np.zeros((3, 1, 2)))
