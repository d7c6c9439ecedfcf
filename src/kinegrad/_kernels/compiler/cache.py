"""Compiled code kept on disk: one file per kernel and signature, used only after it was checked.

A file is a mark, the SHA-256 of all that follows, the key and the code.  The key is text that names everything the code
depends on: kernel, signature, sources, processor, versions; the file is named after its hash.  The code is a pickle,
as Numba serialises it, and a pickle can run anything, so nothing is unpickled unless

- folder and file belong to this user or to root, nobody else may write to them, and neither is a symbolic link;
- the checksum is right, and the key inside is the one asked for.

Files appear whole, by renaming, so that processes do not see each other's half; those that save the same code replace
it by the same.  All folders are looked in, and the first that can be written to gets what is new.  Where none can,
code stays in memory, and a warning says why.

Numba's own cache is not used: its index files point at data files by number, and are unpickled unseen.

Environment: ``KINEGRAD_CACHE_DIR`` (where compiled code is kept), read at import.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import secrets
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, config, serialize, sigutils
from numba.core.compiler import CompileResult

from kinegrad._kernels.compiler.width import WIDTH

BOUNDSCHECK = bool(config.BOUNDSCHECK)
SOURCES = Path(__file__).parents[1]  # _kernels/, with all that compiled code is made of

_MARK = b"kinegrad compiled code 1\n"
_HASH = hashlib.sha256().digest_size
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_troubles: list[str] = []  # to be warned of by whoever waits for the compilation
_warned: set[str] = set()


# --- which folder ---------------------------------------------------------------------------------------------------


@functools.cache
def digest() -> str:
    """Digest of what all compiled code depends on: every source of ``_kernels/``, lane width, bounds checking."""
    sha = hashlib.sha256(f"{WIDTH} {BOUNDSCHECK}".encode())
    for source in sorted(SOURCES.rglob("*.py")):
        sha.update(source.relative_to(SOURCES).as_posix().encode() + source.read_bytes())
    return sha.hexdigest()[:16]


@functools.cache
def folders() -> tuple[Path, ...]:
    """Where code may be: in the environment's folder if there is one; else beside the package, or in the user's cache.

    Absolute, and settled at import, so that a later change of the working directory or of the environment does
    not matter.
    """
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    chosen = os.environ.get("KINEGRAD_CACHE_DIR")
    found = []
    for place in [Path(chosen)] if chosen else [SOURCES / "__pycache__", Path(user, "kinegrad")]:
        with contextlib.suppress(OSError, RuntimeError):  # there is no working directory, or no home
            found.append(place.expanduser().absolute() / f"compiled-{digest()}")
    return tuple(found)


@functools.cache
def folder() -> Path | None:
    """The first folder that is safe and can be written to, made if need be; None, and a warning to come, if none is."""
    reasons = [] if folders() else ["there is neither a home nor a working directory"]
    for candidate in folders():
        try:
            candidate.mkdir(mode=0o755, parents=True, exist_ok=True)
            _check(os.lstat(candidate), stat.S_ISDIR, "a folder")
            tempfile.TemporaryFile(dir=candidate).close()
            _tidy(candidate)
        except OSError as reason:
            reasons.append(f"{candidate}: {reason.strerror or reason}")
        else:
            return candidate
    _troubles.append(
        f"compiled code stays in memory, and each process compiles anew, since it cannot be kept on disk ("
        f"{'; '.join(reasons)}); set KINEGRAD_CACHE_DIR to a folder that only you can write to"
    )
    return None


def _tidy(place: Path) -> None:
    """Remove what processes left that were killed while they wrote, a day ago or longer."""
    for path in place.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > 86400:
                path.unlink()


def _check(status: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> None:
    """Raise PermissionError if what `status` describes is not of the kind, or could be another user's work."""
    if not is_kind(status.st_mode):
        raise PermissionError(f"it is not {kind}")
    if not hasattr(os, "geteuid"):
        return  # Windows: no such owners and modes; access lists keep others out of a user's folders
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"it belongs to another user (number {status.st_uid})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"other users can write to it (mode {stat.S_IMODE(status.st_mode):03o})")


# --- files ----------------------------------------------------------------------------------------------------------


def load(name: str, key: bytes) -> bytes | None:
    """The code kept under the name, from the first folder that has it whole, for this key, and safe."""
    for place in folders():
        with contextlib.suppress(OSError):
            _check(os.lstat(place), stat.S_ISDIR, "a folder")  # where it fails, `folder` has the word
            with open(os.open(place / name, _READ), "rb") as file:
                try:
                    _check(os.fstat(file.fileno()), stat.S_ISREG, "a file")
                except PermissionError as reason:
                    _troubles.append(f"compiled code in {place / name} is not used: {reason}")
                    continue
                code = _checked(file.read(), key)
            if code is not None:
                return code
    return None


def _checked(content: bytes, key: bytes) -> bytes | None:
    """The code in a file's content if all of it is as it was written, and for this key."""
    start = len(_MARK) + _HASH
    head = len(key).to_bytes(8, "little") + key
    if content[:start] != _MARK + hashlib.sha256(memoryview(content)[start:]).digest():
        return None
    return content[start + len(head) :] if content[start : start + len(head)] == head else None


def save(name: str, key: bytes, code: bytes) -> None:
    """Keep code for :func:`load`, whole or not at all; a full disk costs no more than a warning."""
    place = folder()
    if place is None:
        return
    body = len(key).to_bytes(8, "little") + key + code
    temporary = place / f"{name}.{os.getpid()}-{secrets.token_hex(8)}.tmp"
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)  # someone may have emptied the cache
        try:
            with open(os.open(temporary, _WRITE, 0o644), "wb") as file:
                file.write(_MARK + hashlib.sha256(body).digest() + body)
            os.replace(temporary, place / name)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as reason:
        _troubles.append(f"compiled code could not be kept in {place}: {reason.strerror or reason}")


def warn_of_troubles() -> None:
    """Warn of what has kept code from being loaded or saved, once each; on the thread of the caller."""
    while _troubles:
        trouble = _troubles.pop(0)
        if trouble not in _warned:
            _warned.add(trouble)
            warnings.warn(f"kinegrad: {trouble}", RuntimeWarning, stacklevel=3)


# --- Numba's side ---------------------------------------------------------------------------------------------------


class Cache(caching._Cache):
    """What a dispatcher asks for code before it compiles, and hands code to afterwards."""

    def __init__(self, function):
        self._function = function
        self._source = _source(function)
        self._enabled = self._source is not None
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @property
    def cache_path(self):
        return folder()

    def enable(self):
        self._enabled = self._source is not None

    def disable(self):
        self._enabled = False

    def flush(self):
        """Forget what is kept of this kernel."""
        place = folder()
        for path in place.glob(f"{self._name}-*.kernel") if place else ():
            with contextlib.suppress(OSError):
                path.unlink()

    def load_overload(self, sig, target_context):
        found = self._load(sig, target_context)
        if found is None:
            self.missed()
        return found

    def missed(self):
        """Called when there is no code and it has to be compiled; ``jit.py`` replaces it."""

    def _load(self, sig, target_context):
        if not self._enabled:
            return None
        target_context.refresh()
        code = load(*self._name_and_key(sig, target_context.codegen()))
        if code is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # as it was written, but not by what reads it: compiled again, and replaced
            return None

    def save_overload(self, sig, data):
        if not self._enabled:
            return
        if data.lifted or data.library.has_dynamic_globals:
            _troubles.append(f"compiled code of {self._name} cannot be kept, as it refers to objects of this process")
            return
        save(*self._name_and_key(sig, data.codegen), serialize.dumps(data._reduce()))

    def _name_and_key(self, sig, codegen):
        arguments, result = sigutils.normalize_signature(sig)
        function = self._function
        parts = {
            "kernel": f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}",
            "signature": f"({', '.join(map(str, arguments))}) -> {result}",
            "sources": f"{digest()} {self._source}",
            "processor": codegen.magic_tuple(),
            "versions": (sys.version, numba.__version__, llvmlite.__version__),
            "options": [(name, str(getattr(config, name, None))) for name in _SETTINGS],
        }
        key = "\n".join(f"{what}: {value}" for what, value in parts.items()).encode()
        return f"{self._name}-{hashlib.sha256(key).hexdigest()[:32]}.kernel", key


_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "ENABLE_AVX")  # Numba's, which shape code


def _source(function: Any) -> str | None:
    """What else code of the function depends on: nothing for kernels of this folder, otherwise all sources of its own.

    None if that cannot be known, as of functions typed into a session or made inside others: not to be kept.
    """
    if function.__closure__ is not None:
        return None
    path = Path(function.__code__.co_filename)
    if SOURCES in path.parents:
        return ""
    try:
        return hashlib.sha256(
            b"".join(source.read_bytes() for source in sorted({path, *path.parent.glob("*.py")}))
        ).hexdigest()
    except OSError:
        return None


folders()  # now, before anyone changes the working directory
