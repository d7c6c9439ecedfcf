"""Paths that a caller may give, and files that appear whole or not at all.

A file is written under a temporary name in its own folder, forced to the disk, and renamed: whoever looks sees the
old file or the whole new one, also when the disk is full, the program is interrupted, or the machine stops.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from kinegrad.errors import InputError

__all__ = ["TEMPORARY", "check_kept", "checked_path", "keep_mode", "regular_file", "replacing"]

TEMPORARY = ".kinegrad-"  # how the names of temporary files and folders begin


def checked_path(path: Any, what: str = "path") -> Path:
    """`path` as a Path, or an InputError that names the argument `what`.

    >>> checked_path("walk.csv").name
    'walk.csv'
    >>> checked_path(None)
    Traceback (most recent call last):
    kinegrad.errors.InputError: `path` is a NoneType; expected a path as text or pathlib.Path
    """
    try:
        text = os.fspath(path)
    except Exception:  # whatever a foreign object raises when asked for its path
        text = None
    if not isinstance(text, str):
        raise InputError(f"`{what}` is a {type(path).__name__}; expected a path as text or pathlib.Path")
    if "\0" in text:
        raise InputError(f"`{what}` holds the character NUL at position {text.index(chr(0))}; no path can")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        found = f"{text[error.start]!a} at position {error.start}"
        raise InputError(f"`{what}` holds {found}; expected characters that the file system can store") from None
    return Path(text)


def regular_file(path: Path) -> os.stat_result:
    """The status of a file that can be read as a whole; OSError if it is not there, InputError if it is a pipe, …"""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is {_kind(status.st_mode)}; expected a regular file")
    return status


def check_kept(outputs: Iterable[Path], inputs: Iterable[Path | None]) -> None:
    """Refuse to write over a file that is read; symbolic links are followed.

    >>> check_kept([Path("out/../walk.csv")], [None, Path("walk.csv")])
    Traceback (most recent call last):
    kinegrad.errors.InputError: out/../walk.csv: is read, and would be written over; expected another name or folder
    """
    read = {os.path.realpath(path) for path in inputs if path is not None}
    for path in outputs:
        if os.path.realpath(path) in read:
            raise InputError(f"{path}: is read, and would be written over; expected another name or folder")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` at the end, or is gone if anything went wrong.

    Links are followed.  A file that is there keeps its mode, and its owner where the system allows it; a new one gets
    the mode that the umask leaves.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    try:
        old = regular_file(path)
    except FileNotFoundError:
        old = None
    target = Path(os.path.realpath(path))
    temporary = target.with_name(TEMPORARY + secrets.token_hex(8))
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                keep_mode(temporary, old)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def keep_mode(path: Path, old: os.stat_result) -> None:
    """Give the file at `path` the owner, where that is allowed, and the mode of the one that it will replace."""
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a named pipe", stat.S_ISSOCK: "a socket"}
    return next((name for check, name in kinds.items() if check(mode)), "a device")
