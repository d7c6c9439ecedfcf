"""A folder of results that is filled at once: nothing of a run that was interrupted or failed stays behind."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from kinegrad.errors import InputError
from kinegrad.io.whole_file import TEMPORARY, checked_path, keep_mode

__all__ = ["unfinished_page", "whole_folder"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what writing to a disk may end with


@contextmanager
def whole_folder(out: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder within `out` whose files move into `out` at the end, or vanish if anything went wrong.

    Within it, because `out` may be a disk of its own (a volume of a container), or the only folder that may be written
    to.  Files that `out` already holds are replaced where the names agree, all or none, and otherwise left alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with whole_folder(Path(place, "results")) as folder:
    ...         _ = (folder / "a.txt").write_text("1")
    ...         assert not Path(place, "results", "a.txt").exists()
    ...     sorted(path.name for path in Path(place).rglob("*"))
    ['a.txt', 'results']
    """
    path = checked_path(out, "out")
    target = Path(os.path.realpath(path))
    temporary = target / (TEMPORARY + secrets.token_hex(8))
    made: list[Path] = []
    try:
        with _refused(path):
            with suppress(FileNotFoundError):
                if not stat.S_ISDIR(os.stat(path).st_mode):
                    raise InputError(f"{path}: is a file; expected a folder, or a name for a new one")
            _make(target, made)
            temporary.mkdir(mode=0o700)
        try:
            yield temporary
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        with _refused(path):
            _publish(temporary, target)
        made.clear()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in reversed(made):
            with suppress(OSError):  # not empty, or not there
                folder.rmdir()


def unfinished_page(path: Path, title: str) -> None:
    """Write a page that stands beside numbers until the page with their pictures takes its place."""
    heading = escape(title)
    words = "The numbers in this folder are whole. The page with their pictures was not finished."
    page = f'<!doctype html>\n<meta charset="utf-8">\n<title>{heading}</title>\n<h1>{heading}</h1>\n<p>{words}</p>\n'
    path.write_text(page, encoding="utf-8")


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """What the system says against writing there, as an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _make(folder: Path, made: list[Path]) -> None:
    """Make `folder` and those above it, and list in `made` those that were not there."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            made.append(each)  # first, so that an interrupt finds it
            each.mkdir(exist_ok=True)


def _publish(temporary: Path, target: Path) -> None:
    """Move all files from one to the other; if that fails, none.

    What they replace is kept, under another name, until the last is in its place.
    """
    replaced = temporary / "replaced"
    names = sorted(each.name for each in temporary.iterdir())
    replaced.mkdir()
    try:
        for name in names:
            new, place = temporary / name, target / name
            if os.path.lexists(place):
                if place.is_dir():
                    raise InputError(f"{place}: is a folder; expected a file to replace, or none")
                if place.is_file():
                    keep_mode(new, place.stat())
                try:
                    os.link(place, replaced / name, follow_symlinks=False)
                except OSError:  # a disk without links
                    os.replace(place, replaced / name)
            os.replace(new, place)
    except BaseException:
        for name in names:
            if not (temporary / name).exists():
                os.replace(target / name, temporary / name)
            if os.path.lexists(replaced / name):
                os.replace(replaced / name, target / name)
        raise
