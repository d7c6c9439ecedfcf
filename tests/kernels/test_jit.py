"""Where compiled code is kept, when it is stale, and what is said while compiling."""

import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from kinegrad._kernels import jit
from tests.kernels.child import child, output
from tests.limits import LIMIT

PACKAGE = Path(jit.__file__).parent
compiled_only = pytest.mark.skipif(not jit.JIT, reason="nothing is compiled without the JIT")


@pytest.fixture
def fresh(monkeypatch):
    """The choice of folder made anew, without settings; the real choice is made anew afterwards too."""
    for name in ("KINEGRAD_CACHE_DIR", "KINEGRAD_QUIET", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    jit.cache_folder.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    jit.cache_folder.cache_clear()


def refuse_to_write(monkeypatch, *folders, how):
    """Writing below `folders` fails as on a read-only disk (permission bits would not stop root)."""
    mkdir, temporary = Path.mkdir, tempfile.TemporaryFile

    def refused(path):
        return any(Path(path).is_relative_to(folder) for folder in folders)

    def checked_mkdir(self, *arguments, **options):
        if how == "mkdir" and refused(self):
            raise PermissionError(13, "read-only", str(self))
        return mkdir(self, *arguments, **options)

    def checked_temporary(*arguments, **options):
        if refused(options["dir"]):
            raise OSError(30, "read-only file system", str(options["dir"]))
        return temporary(*arguments, **options)

    monkeypatch.setattr(Path, "mkdir", checked_mkdir)
    monkeypatch.setattr(tempfile, "TemporaryFile", checked_temporary)


# --- which folder -------------------------------------------------------------------------------------------


def test_beside_the_package_by_default(fresh):
    assert jit.cache_folder() == PACKAGE / "__pycache__" / f"compiled-{jit.digest()}"


def test_where_the_environment_says(fresh, tmp_path):
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path / "deep" / "down"))
    assert jit.cache_folder() == tmp_path / "deep" / "down" / f"compiled-{jit.digest()}"
    assert jit.cache_folder().is_dir()


@pytest.mark.parametrize("how", ["mkdir", "write"])
def test_read_only_package_falls_back_to_the_users_cache(fresh, tmp_path, how):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, how=how)
    assert jit.cache_folder() == tmp_path / "kinegrad" / f"compiled-{jit.digest()}"


def test_the_users_cache_is_in_the_home_folder(fresh, tmp_path):
    fresh.setenv("HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, how="write")
    assert jit.cache_folder() == tmp_path / ".cache" / "kinegrad" / f"compiled-{jit.digest()}"


def test_in_memory_where_nothing_can_be_written(fresh, tmp_path):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, tmp_path, how="write")
    assert jit.cache_folder() is None


def test_a_chosen_folder_that_cannot_be_written_is_not_replaced(fresh, tmp_path):
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    refuse_to_write(fresh, tmp_path, how="mkdir")
    assert jit.cache_folder() is None


@pytest.fixture
def homeless(fresh):
    """As in a container that runs under a number without an entry in /etc/passwd."""

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    fresh.delenv("HOME", raising=False)
    fresh.setattr(pytest.importorskip("pwd"), "getpwuid", unknown)
    with pytest.raises(RuntimeError):
        Path.home()
    return fresh


def test_without_a_home_folder_beside_the_package(homeless):
    assert jit.cache_folder() == PACKAGE / "__pycache__" / f"compiled-{jit.digest()}"


def test_without_a_home_folder_where_the_environment_says(homeless, tmp_path):
    homeless.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    assert jit.cache_folder() == tmp_path / f"compiled-{jit.digest()}"


def test_without_a_home_folder_and_a_read_only_package(homeless):
    refuse_to_write(homeless, PACKAGE, how="write")
    assert jit.cache_folder() is None


# --- stale or not -------------------------------------------------------------------------------------------


@pytest.fixture
def digest_of(monkeypatch, tmp_path):
    """A copy of the kernels' sources, and the digest they would have."""
    copy = tmp_path / "_kernels"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "__file__", str(copy / "jit.py"))
    return copy, jit.digest.__wrapped__


def test_the_content_counts_not_the_place(digest_of):
    _, digest = digest_of
    assert digest() == digest() == jit.digest()


@pytest.mark.parametrize("name", sorted(path.name for path in PACKAGE.glob("*.py")))
def test_a_change_of_any_file_changes_the_digest(digest_of, name):
    """Numba looks at the kernel's own file only; spatial.py is in every kernel and is none itself."""
    copy, digest = digest_of
    with (copy / name).open("a") as file:
        file.write("# a comment\n")
    assert digest() != jit.digest()


def test_a_file_more_or_less_changes_the_digest(digest_of):
    copy, digest = digest_of
    (copy / "spatial.py").rename(copy / "spatial2.py")
    renamed = digest()
    (copy / "spatial2.py").unlink()
    assert len({jit.digest(), renamed, digest()}) == 3


def test_width_and_bounds_checking_change_the_digest(monkeypatch):
    digests = set()
    for width in (1, 2, 4, 8, 16):
        for checked in (False, True):
            monkeypatch.setattr(jit, "WIDTH", width)
            monkeypatch.setattr(jit, "BOUNDSCHECK", checked)
            digests.add(jit.digest.__wrapped__())
    assert len(digests) == 10
    assert jit.digest() in digests


FINITE = """
import numpy as np
import kinegrad._kernels.kinematics as kinematics
from kinegrad import _engine, samples
model = samples.two_link()
T = np.empty((1, 32))
assert kinematics.transforms(_engine.mechanism(model), np.ones((1, 2)), T, _engine.scratch(90), 0, 1)
stats = kinematics.transforms.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@compiled_only
def test_a_second_process_does_not_compile_again(tmp_path):
    cache = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    assert output(child(FINITE, **cache)) == "0 1\n"
    assert {path.suffix for path in tmp_path.glob("compiled-*/*")} == {".nbi", ".nbc"}
    assert output(child(FINITE, **cache)) == "1 0\n"


@compiled_only
def test_a_damaged_cache_is_compiled_again(tmp_path):
    """Empty files, as a crash of the machine or a full disk may leave them, must not be fatal."""
    cache = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    output(child(FINITE, **cache))
    for path in tmp_path.glob("compiled-*/*.nb?"):
        path.write_bytes(b"")
    assert output(child(FINITE, **cache)) == "0 1\n"


# --- what is said while compiling ---------------------------------------------------------------------------


def test_notice_names_kernel_and_folder(fresh, tmp_path, capsys):
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    jit._notice("rnea")
    said = capsys.readouterr()
    assert said.err == f"kinegrad: compiling rnea (once; kept in {jit.cache_folder()})\n"
    assert said.out == ""


def test_notice_is_silent_if_asked(fresh, capsys):
    fresh.setenv("KINEGRAD_QUIET", "1")
    jit._notice("rnea")
    assert capsys.readouterr() == ("", "")


@compiled_only
@pytest.mark.parametrize("slow", [False, True])
def test_notice_only_when_compiling_takes_long(fresh, tmp_path, capsys, slow):
    """A compiler that waits until something is said, or one that is done before anything could be."""
    spoken, notice = threading.Event(), jit._notice

    class Compiler:
        _cache = None

        def compile(self, signature):
            assert not slow or spoken.wait(LIMIT)
            return signature

    def say(name):
        notice(name)
        spoken.set()

    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    fresh.setattr(jit, "_NOTICE_AFTER", 0.01 if slow else LIMIT)
    fresh.setattr(jit, "_notice", say)
    fresh.setattr(jit.numba, "njit", lambda **options: lambda function: Compiler())

    def some_kernel(x):
        return x

    assert jit.kernel(some_kernel).compile("signature") == "signature"
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer):
            timer.join(LIMIT / 2)  # a timer that was not cancelled is still waiting
            assert not timer.is_alive()
    assert ("compiling some_kernel" in capsys.readouterr().err) == slow


def test_nothing_of_numba_leaks_to_the_users_settings():
    """Importing kinegrad must not change how the user's own Numba functions behave."""
    script = "from numba import config; old = dict(vars(config)); import kinegrad; print(old == vars(config))"
    assert output(child(script)) == "True\n"
