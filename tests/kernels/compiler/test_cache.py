"""Compiled code on disk: where it is, when it is stale, and what is never believed."""

import errno
import os
import shutil
import time

import pytest

from kinegrad._kernels.compiler import cache, jit
from tests.kernels.child import child, output
from tests.kernels.compiler.cache_folders import refuse_to_write, troubles
from tests.limits import LIMIT

compiled_only = pytest.mark.skipif(not jit.JIT, reason="nothing is compiled without the JIT")
owners_only = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no such owners and modes here")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
STRANGER = 12345  # the number of a user who is neither this one nor root


@pytest.fixture
def chosen(fresh, tmp_path):
    """A folder of one's own, chosen by the environment: where code is kept."""
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path / "chosen"))
    cache.folder()
    return cache.folders()[0]


KEY, CODE = b"kernel: f\nsignature: (float64)", bytes(range(256)) * 4


def test_what_is_saved_is_loaded(chosen):
    assert cache.load("f", KEY) is None
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE
    assert [path.name for path in chosen.iterdir()] == ["f"]
    assert troubles() == []


def test_another_key_does_not_get_it(chosen):
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY[:-1]) is None
    assert cache.load("f", KEY + b" ") is None
    assert cache.load("f", KEY + CODE) is None


def test_any_flipped_byte_is_found_and_the_file_replaced(chosen):
    cache.save("f", KEY, CODE)
    good = (chosen / "f").read_bytes()
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 1 << place % 8
        (chosen / "f").write_bytes(bad)
        assert cache.load("f", KEY) is None
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


def test_any_truncation_or_appended_byte_is_found(chosen):
    cache.save("f", KEY, CODE)
    good = (chosen / "f").read_bytes()
    for length in range(len(good)):
        (chosen / "f").write_bytes(good[:length])
        assert cache.load("f", KEY) is None
    (chosen / "f").write_bytes(good + b"\0")
    assert cache.load("f", KEY) is None


@owners_only
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_nobody_else_can_write_to_what_is_made(fresh, tmp_path, umask):
    """Where new files are writable by the group, as on many systems, ours must not be: they would not be believed."""
    old = os.umask(umask)
    try:
        fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path / "chosen"))
        cache.save("f", KEY, CODE)
    finally:
        os.umask(old)
    for path in (cache.folder(), cache.folder() / "f"):
        assert not path.stat().st_mode & 0o022
    assert cache.load("f", KEY) == CODE
    assert troubles() == []


@owners_only
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_others_can_write_to_is_not_used(chosen, mode):
    """Anyone can plant a file there, whose checksum is right and whose pickle runs code."""
    cache.save("f", KEY, CODE)
    chosen.chmod(mode)
    cache.folder.cache_clear()
    assert cache.load("f", KEY) is None
    cache.save("f", KEY, b"new")
    (said,) = troubles()
    assert f"{chosen}: other users can write to it (mode {mode:03o})" in said
    chosen.chmod(0o755)
    assert cache.load("f", KEY) == CODE  # nothing was written meanwhile


@root_only
def test_a_folder_of_another_user_is_not_used(chosen):
    cache.save("f", KEY, CODE)
    os.chown(chosen, STRANGER, -1)
    cache.folder.cache_clear()
    assert cache.load("f", KEY) is None
    assert cache.folder() is None
    assert f"it belongs to another user (number {STRANGER})" in troubles()[0]


@root_only
def test_a_file_of_another_user_is_not_used_and_replaced(chosen):
    cache.save("f", KEY, CODE)
    os.chown(chosen / "f", STRANGER, -1)
    assert cache.load("f", KEY) is None
    assert troubles() == [
        f"kinegrad: compiled code in {chosen / 'f'} is not used: it belongs to another user (number {STRANGER})"
    ]
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


@owners_only
def test_a_file_others_can_write_to_is_not_used_and_replaced(chosen):
    cache.save("f", KEY, CODE)
    (chosen / "f").chmod(0o666)
    assert cache.load("f", KEY) is None
    assert cache.load("f", KEY) is None
    assert len(troubles()) == 1  # said once
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


@owners_only
def test_what_belongs_to_root_is_used(chosen, monkeypatch):
    """As in an installation for all users, warmed up by the administrator."""
    cache.save("f", KEY, CODE)
    if os.geteuid() != 0:
        pytest.skip("only root owns files of root")
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert cache.load("f", KEY) == CODE


@owners_only
def test_links_are_not_followed(chosen, tmp_path):
    cache.save("f", KEY, CODE)
    (chosen / "f").rename(tmp_path / "elsewhere")
    (chosen / "f").symlink_to(tmp_path / "elsewhere")
    assert cache.load("f", KEY) is None
    (tmp_path / "elsewhere").write_bytes(b"untouched")
    cache.save("f", KEY, CODE)  # in the place of the link, not through it
    assert cache.load("f", KEY) == CODE
    assert (tmp_path / "elsewhere").read_bytes() == b"untouched"
    chosen.rename(tmp_path / "other")
    chosen.symlink_to(tmp_path / "other")
    cache.folder.cache_clear()
    assert cache.load("f", KEY) is None
    assert cache.folder() is None
    assert "it is not a folder" in troubles()[0]


@owners_only
def test_a_pipe_in_the_place_of_a_file_does_not_hang(chosen):
    os.mkfifo(chosen / "f")
    assert cache.load("f", KEY) is None
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


def test_a_read_only_cache_is_used(fresh, tmp_path):
    """Beside the package, filled by whoever installed it; what it lacks goes to the user's cache."""
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    package = tmp_path / "package"
    fresh.setattr(cache, "SOURCES", package)
    fresh.setattr(cache, "digest", lambda: "0123")
    cache.save("f", KEY, CODE)
    assert cache.folder() == package / "__pycache__" / "compiled-0123"
    cache.folder.cache_clear()
    refuse_to_write(fresh, package, how="write")
    assert cache.load("f", KEY) == CODE
    assert not (tmp_path / "user").exists()
    cache.save("g", KEY, CODE)
    assert cache.load("g", KEY) == CODE
    assert [path.name for path in (tmp_path / "user" / "kinegrad" / "compiled-0123").iterdir()] == ["g"]
    (package / "__pycache__" / "compiled-0123" / "f").write_bytes(b"damaged")
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE  # from the next folder
    assert troubles() == []


@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_full_disk_costs_a_warning(chosen, monkeypatch, call):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        cache.save("f", KEY, CODE)
    assert troubles() == [f"kinegrad: compiled code could not be kept in {chosen}: No space left on device"]
    assert list(chosen.iterdir()) == []  # nothing half-written
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


def test_an_interrupted_write_leaves_nothing(chosen, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.save("f", KEY, CODE)
    assert list(chosen.iterdir()) == []


def test_what_killed_processes_left_is_removed_in_time(chosen):
    """Not at once: another process may be writing it."""
    for name, age in (("new.tmp", 0), ("old.tmp", 2 * 86400), ("old.kernel", 2 * 86400)):
        (chosen / name).write_bytes(b"")
        os.utime(chosen / name, (time.time() - age,) * 2)
    cache.folder.cache_clear()
    cache.folder()
    assert {path.name for path in chosen.iterdir()} == {"new.tmp", "old.kernel"}


def test_a_cache_that_was_removed_is_made_again(chosen):
    shutil.rmtree(chosen)
    cache.save("f", KEY, CODE)
    assert cache.load("f", KEY) == CODE


CALL = """
import sys
import numpy as np
from tests.kernels.waves import double
kind = sys.argv[1]
x, y = np.ones((3, 2)), np.zeros((3, 2))
if kind != "float64":
    x = x.astype(kind)
assert double(x, y, 0, 3) and (y == 2).all()
print(sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values()))
"""


@compiled_only
def test_a_second_process_does_not_compile_again(tmp_path):
    setting = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    assert output(child(CALL, "float64", **setting)) == "0 1\n"
    (path,) = tmp_path.glob("compiled-*/*")
    assert path.suffix == ".kernel"
    assert output(child(CALL, "float64", **setting)) == "1 0\n"


@pytest.mark.slow
@compiled_only
def test_processes_that_save_different_signatures_do_not_disturb_each_other(tmp_path):
    """Numba's index had the one's signature point at the other's code."""
    setting = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    for expected in ("0 1\n", "1 0\n"):
        both = [child(CALL, kind, **setting) for kind in ("float64", "int32")]
        assert [output(process) for process in both] == [expected] * 2
    assert len(list(tmp_path.glob("compiled-*/*"))) == 2


@pytest.mark.slow
@compiled_only
def test_a_damaged_file_is_compiled_again_and_replaced(tmp_path):
    """A flipped bit in any part, or half a file, as a crash of the machine may leave it."""
    setting = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    assert output(child(CALL, "float64", **setting)) == "0 1\n"
    (path,) = tmp_path.glob("compiled-*/*")
    for where in (0.01, 0.7, None):
        content = bytearray(path.read_bytes())
        if where is None:
            del content[len(content) // 2 :]
        else:
            content[int(where * len(content))] ^= 4
        path.write_bytes(content)
        assert output(child(CALL, "float64", **setting)) == "0 1\n"
    assert output(child(CALL, "float64", **setting)) == "1 0\n"


@pytest.mark.slow
@compiled_only
@owners_only
def test_planted_code_does_not_run(tmp_path):
    """A file with the right name, key and checksum in a folder that is open to all, as an attacker would make it."""
    setting = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    output(child(CALL, "float64", **setting))
    (path,) = tmp_path.glob("compiled-*/*")
    plant = """
import os, sys, pickle
from kinegrad._kernels.compiler import cache
class Evil:
    def __reduce__(self):
        return os.mkdir, (sys.argv[2],)
content = open(sys.argv[1], "rb").read()
start = len(cache._MARK) + cache._HASH
length = int.from_bytes(content[start : start + 8], "little")
cache.save(os.path.basename(sys.argv[1]), content[start + 8 : start + 8 + length], pickle.dumps(Evil()))
"""
    output(child(plant, path, tmp_path / "evil", **setting))
    assert b"mkdir" in path.read_bytes()
    path.parent.chmod(0o777)
    process = child("import warnings; warnings.simplefilter('default')" + CALL, "float64", **setting)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "0 1\n")
    assert "other users can write to it (mode 777)" in err
    assert not (tmp_path / "evil").exists()


@compiled_only
def test_code_that_cannot_be_kept_says_so(fresh):
    class Result:
        lifted = ()

        class library:
            has_dynamic_globals = True

    def some_kernel():
        return 0

    cache.Cache(some_kernel).save_overload((), Result)
    assert "test_cache.some_kernel cannot be kept" in troubles()[0]


@compiled_only
def test_flushing_forgets_this_kernel_only(chosen):
    def f():
        return 0

    for name in ("test_cache.f-0.kernel", "test_cache.g-0.kernel"):
        cache.save(name, KEY, CODE)
    cache.Cache(f).flush()
    assert [path.name for path in chosen.iterdir()] == ["test_cache.g-0.kernel"]
