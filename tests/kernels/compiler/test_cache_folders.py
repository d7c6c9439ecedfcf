"""Where compiled code is kept, and when it is stale."""

import shutil
from pathlib import Path

import pytest

from kinegrad._kernels.compiler import cache
from tests.kernels.child import child, output
from tests.kernels.compiler.cache_folders import refuse_to_write, troubles

PACKAGE = cache.SOURCES


def test_beside_the_package_by_default(fresh):
    assert cache.folder() == PACKAGE / "__pycache__" / f"compiled-{cache.digest()}"


def test_where_the_environment_says(fresh, tmp_path):
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path / "deep" / "down"))
    assert cache.folder() == tmp_path / "deep" / "down" / f"compiled-{cache.digest()}"
    assert cache.folder().is_dir()


@pytest.mark.parametrize("how", ["mkdir", "write"])
def test_read_only_package_falls_back_to_the_users_cache(fresh, tmp_path, how):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, how=how)
    assert cache.folder() == tmp_path / "kinegrad" / f"compiled-{cache.digest()}"
    assert troubles() == []


def test_the_users_cache_is_in_the_home_folder(fresh, tmp_path):
    fresh.setenv("HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, how="write")
    assert cache.folder() == tmp_path / ".cache" / "kinegrad" / f"compiled-{cache.digest()}"


def test_in_memory_where_nothing_can_be_written(fresh, tmp_path):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    refuse_to_write(fresh, PACKAGE, tmp_path, how="write")
    assert cache.folder() is None
    (said,) = troubles()
    assert f"{tmp_path / 'kinegrad'}" in said
    assert said.count("Read-only file system") == 2


def test_a_chosen_folder_that_cannot_be_written_is_not_replaced(fresh, tmp_path):
    fresh.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    refuse_to_write(fresh, tmp_path, how="mkdir")
    assert cache.folder() is None
    (said,) = troubles()
    assert said == (
        "kinegrad: compiled code stays in memory, and each process compiles anew, since it cannot be kept on disk "
        f"({cache.folders()[0]}: read-only); set KINEGRAD_CACHE_DIR to a folder that only you can write to"
    )


def test_a_relative_folder_does_not_follow_the_working_directory(fresh, tmp_path):
    fresh.setenv("KINEGRAD_CACHE_DIR", "here")
    fresh.chdir(tmp_path)
    cache.folders()  # as at import
    (tmp_path / "elsewhere").mkdir()
    fresh.chdir(tmp_path / "elsewhere")
    assert cache.folder() == tmp_path / "here" / f"compiled-{cache.digest()}"


def test_folders_are_settled_at_import(tmp_path):
    script = """
import os
os.mkdir("elsewhere")
import kinegrad
os.chdir("elsewhere")
os.environ["KINEGRAD_CACHE_DIR"] = "/nowhere"
from kinegrad._kernels.compiler import cache
print(cache.folder())
"""
    script = f"import os; os.chdir({str(tmp_path)!r})" + script
    assert output(child(script, KINEGRAD_CACHE_DIR="here")).startswith(f"{tmp_path}/here/compiled-")


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
    assert cache.folder() == PACKAGE / "__pycache__" / f"compiled-{cache.digest()}"


def test_without_a_home_folder_where_the_environment_says(homeless, tmp_path):
    homeless.setenv("KINEGRAD_CACHE_DIR", str(tmp_path))
    assert cache.folder() == tmp_path / f"compiled-{cache.digest()}"


def test_without_a_home_folder_and_a_read_only_package(homeless):
    refuse_to_write(homeless, PACKAGE, how="write")
    assert cache.folder() is None


def test_with_neither_home_nor_working_directory(homeless, tmp_path):
    (tmp_path / "gone").mkdir()
    homeless.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    homeless.setenv("KINEGRAD_CACHE_DIR", "relative")
    assert cache.folder() is None
    assert "neither a home nor a working directory" in troubles()[0]


@pytest.fixture
def digest_of(monkeypatch, tmp_path):
    """A copy of the kernels' sources, and the digest they would have."""
    copy = tmp_path / "_kernels"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "SOURCES", copy)
    return copy, cache.digest.__wrapped__


def test_the_content_counts_not_the_place(digest_of):
    _, digest = digest_of
    assert digest() == digest() == cache.digest()


@pytest.mark.parametrize("name", sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")))
def test_a_change_of_any_file_changes_the_digest(digest_of, name):
    """The file of a kernel is not all that it depends on: spatial.py is in every kernel and is none itself."""
    copy, digest = digest_of
    with (copy / name).open("a") as file:
        file.write("# a comment\n")
    assert digest() != cache.digest()


def test_a_file_more_or_less_changes_the_digest(digest_of):
    copy, digest = digest_of
    (copy / "spatial.py").rename(copy / "spatial2.py")
    renamed = digest()
    (copy / "spatial2.py").unlink()
    assert len({cache.digest(), renamed, digest()}) == 3


def test_width_and_bounds_checking_change_the_digest(monkeypatch):
    digests = set()
    for width in (1, 2, 4, 8, 16):
        for checked in (False, True):
            monkeypatch.setattr(cache, "WIDTH", width)
            monkeypatch.setattr(cache, "BOUNDSCHECK", checked)
            digests.add(cache.digest.__wrapped__())
    assert len(digests) == 10
    assert cache.digest() in digests


def test_a_kernel_from_elsewhere_depends_on_its_folder_too(tmp_path):
    """As those of papers; and one without a file, or with variables of a function around it, is not kept."""
    found = set()
    for text in ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 2\n"):
        (tmp_path / "some.py").write_text(text)
        names: dict = {}
        exec(compile(text, str(tmp_path / "some.py"), "exec"), names)
        found.add(cache._source(names["f"]))
    assert len(found) == 2
    (tmp_path / "other.py").write_text("what the first may call")
    found.add(cache._source(names["f"]))
    assert len(found) == 3
    (tmp_path / "some.py").unlink()
    assert cache._source(names["f"]) is None
    assert cache._source(lambda: names) is None
