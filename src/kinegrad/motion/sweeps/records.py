"""Results in a file, one line each, as they arrive: nothing is lost, and nothing is there twice.

A record is one line of JSON, ended by a line feed, that begins with a checksum of the rest:

    {"crc": "1c291ca3", "key": "…", "result": {…}}

It is handed to the operating system in one piece and forced to the disk before the next one.  A machine that stops in
the middle leaves at most one line without its end, which is cut off when the file is opened again; whatever else is
not whole is refused by its line number, since it cannot come from that.  The first line names the work that the file
is of, so that results of another are not taken for it.  A file that does not begin so is not written to, whatever it
is.  Only one process can have the file open to write.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from kinegrad.errors import InputError, shown
from kinegrad.io.whole_file import checked_path, regular_file
from kinegrad.motion.nlp.identity import difference, digest

__all__ = ["Records", "read_records"]

FORMAT = "kinegrad records 1"
HEAD = b'{"crc": "'  # of every line


class Records:
    """A file of results by key, read at the start and appended to.

    Parameters
    ----------
    path : str or pathlib.Path
    work : mapping
        What the results are of, as JSON has it; has to be the same when the file is opened again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Records(Path(folder, "a.jsonl"), {"what": "squares"}) as records:
    ...         _ = records.add("3", {"square": 9})
    ...     with Records(Path(folder, "a.jsonl"), {"what": "squares"}) as records:
    ...         records.found
    {'3': {'square': 9}}
    """

    def __init__(self, path: str | os.PathLike[str], work: Mapping[str, Any]) -> None:
        self.path = checked_path(path, "record")
        self.work = json.loads(json.dumps(plain(work)))
        self.found: dict[str, Any] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Records:
        try:
            if self.path.exists():
                regular_file(self.path)
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise InputError(f"`record` {self.path} cannot be opened: {error.strerror or error}") from None
        try:
            self._lock()
            self._file.seek(0)
            content = self._file.read()
            end = content.rfind(b"\n") + 1
            if end:
                work, self.found = _parsed(self.path, content[:end])
                if text := difference(work, self.work):
                    raise InputError(f"`record` {self.path} is of other work: {text}, or a new file")
                if end < len(content):
                    self._file.truncate(end)
            else:
                first = _line({"format": FORMAT, "work": self.work})
                if not first.startswith(content):
                    found = f"`record` {self.path} is no record: it has {len(content)} bytes without the end of a line"
                    raise InputError(f"{found}; expected a file that a run like this one wrote, or a new one")
                self._append(first[len(content) :])
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, key: str, result: Mapping[str, Any]) -> bool:
        """Append a result; False, and nothing happens, if there is one of this key."""
        if key in self.found:
            return False
        self._append(_line({"key": key, "result": plain(result)}))
        self.found[key] = json.loads(json.dumps(plain(result)))
        return True

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InputError(f"`record` {self.path} cannot be written: {error.strerror or error}") from None

    def _lock(self) -> None:
        """Refuse a file that another process writes to."""
        assert self._file is not None
        try:
            import fcntl
        except ImportError:  # not a POSIX system, whose files cannot be opened twice to write
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"`record` {self.path} is written to by another process; expected one of its own"
            ) from None


def read_records(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file of records is of, and its results by key, while or after it is written.

    Parameters
    ----------
    path : str or pathlib.Path

    Returns
    -------
    work : dict
    results : dict of str to dict
        In the order in which they arrived.
    """
    source = checked_path(path)
    try:
        regular_file(source)
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None
    end = content.rfind(b"\n") + 1
    if not end:
        raise InputError(f"{source}: has no whole record; expected {FORMAT!r} in its first line")
    return _parsed(source, content[:end])


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, numbers that are not finite as null, other objects by their digest."""
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else f"{type(value).__name__} {digest(value)}"


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, allow_nan=False, separators=(", ", ": "))
    return f'{{"crc": "{zlib.crc32(text.encode()):08x}", {text[1:]}\n'.encode()


def _parsed(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    lines = content.split(b"\n")[:-1]
    found: dict[str, Any] = {}
    work: dict[str, Any] = {}
    for number, data in enumerate(lines, start=1):
        record = _record(data)
        if record is None and number == 1 and not data.startswith(HEAD):
            raise InputError(f"{path}: is no record of kinegrad; expected a new file, or a record of this work")
        if record is None:
            raise InputError(f"{path}: line {number} is damaged: its checksum is not that of what it says")
        if number == 1:
            if record.get("format") != FORMAT or not isinstance(record.get("work"), dict):
                raise InputError(f"{path}: line 1 is {shown(record)}; expected {FORMAT!r} and what it is of")
            work = record["work"]
        elif not isinstance(record.get("key"), str) or not isinstance(record.get("result"), dict):
            raise InputError(f"{path}: line {number} has no key and result")
        else:
            found.setdefault(record["key"], record["result"])
    return work, found


def _record(data: bytes) -> dict[str, Any] | None:
    """What a line says; None if that is not what was written."""
    size = 8
    checksum, rest = data[len(HEAD) : len(HEAD) + size], data[len(HEAD) + size :]
    text = b"{" + rest[3:]
    if not data.startswith(HEAD) or not rest.startswith(b'", ') or b"%08x" % zlib.crc32(text) != checksum:
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
