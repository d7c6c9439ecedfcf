"""Identities of problems: what files of results are compared with, so that results of another problem are refused.

An identity is a mapping from paths such as ``requirements[2].tau`` to short texts.  It is the same in every process and
in every run of Python: no address and no hash of Python enters it.  A text is the value itself if that is short, and
otherwise its kind and a digest (SHA-256) of everything in it:

- numbers and arrays to 10 significant digits, so that another processor, which rounds otherwise, gives the same text;
- functions: byte code, constants, defaults, closure, and the values of the global names that they use; functions within
  them, too.  Functions of installed packages are known by their name alone;
- instances: type and state, as pickle sees them, and the methods of a type that no installed package has.

What cannot be pickled, a generator for example, is known by its type alone.  Programs are therefore also evaluated at a
point that depends on their bounds alone: ``values`` in an identity are f and a combination of all g there.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import pickle
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from kinegrad.errors import shown

__all__ = ["difference", "digest", "expanded", "program_identity", "sections"]

DIGITS = 10  # of numbers
SAME = 1e-9  # relative, by which `values` may differ: another machine rounds otherwise
SHORT = 6  # numbers that are written one by one
LETTERS = 16  # of a digest
MANY = 20  # entries of a mapping that are written one by one
DEPTH = 100  # objects within each other
ROUNDING = 1e-14  # of the largest number of an array: what is less is zero
NUMBER = (bool, int, float, complex, np.number, np.bool_)


def digest(value: Any) -> str:
    """Return 16 hexadecimal digits that are equal for equal values, in every process and run of Python.

    >>> digest({"a": [1, 2.0], "b": np.ones(3)}) == digest({"b": np.ones(3), "a": (1.0, 2)})
    True
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 2)
    False
    """
    return _Digests().of(value).hex()[:LETTERS]


def expanded(**values: Any) -> dict[str, str]:
    """Return the identity of several values by name: a text for each number, array or function within them.

    >>> expanded(seed=1, draw=None, guess={"noise": 0.1, "durations": [1.0, 0.5]})
    {'seed': '1', 'draw': 'None', 'guess.durations': '[1, 0.5]', 'guess.noise': '0.1'}
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        found.update(_leaves(name, value))
    return found


def sections(identity: Mapping[str, Any]) -> dict[str, str]:
    """Return one digest for each first name of an identity: ``requirements`` for all ``requirements[2].tau``."""
    groups: dict[str, list[str]] = {}
    for path, text in identity.items():
        if isinstance(text, str):
            groups.setdefault(path.partition(".")[0].partition("[")[0], []).append(f"{path}={text}")
    return {name: digest(sorted(texts))[: LETTERS // 2] for name, texts in groups.items()}


def difference(found: Any, expected: Any, path: str = "") -> str | None:
    """Return a clause that names what differs between two mappings, as JSON has them; None if nothing does.

    >>> difference({"a": {"b": "1"}}, {"a": {"b": "2"}}), difference({"x": 0.1}, {"x": 0.1 + 1e-12})
    ("its 'a.b' is '1'; expected '2'", None)
    """
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        for key in (*expected, *(key for key in found if key not in expected)):
            inner = f"{path}.{key}" if path else str(key)
            if key not in found:
                return f"it has no {inner!r}; expected {shown(expected[key])}"
            if key not in expected:
                return f"it has {inner!r}, {shown(found[key])}; expected none"
            if text := difference(found[key], expected[key], inner):
                return text
        return None
    return None if _equal(found, expected) else f"its {path!r} is {shown(found)}; expected {shown(expected)}"


@np.errstate(all="ignore")  # what overflows is not finite, and is kept as None
def program_identity(program: Any) -> dict[str, Any]:
    """Return what a program says of its identity, or its bounds, scales and patterns; and its values at a point."""
    own = getattr(program, "identity", None)
    if own is None:
        names = ("n", "m", "x_lower", "x_upper", "g_lower", "g_upper", "x_scale", "g_scale", "f_scale")
        own = expanded(**{name: getattr(program, name) for name in names})
        own |= expanded(jacobian_pattern=program.jacobian_pattern, hessian_pattern=program.hessian_pattern)
    random = np.random.default_rng(0)
    share, weights = random.uniform(0.3, 0.7, program.n), random.uniform(0.5, 1.5, program.m)
    low, high = (np.asarray(b, dtype=float) for b in (program.x_lower, program.x_upper))
    scale = np.asarray(program.x_scale, dtype=float)
    low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0) - scale)
    high = np.where(np.isfinite(high), high, low + 2 * scale)
    x = low + share * np.minimum(high - low, 10 * scale)
    try:
        values = [float(program.objective(x)), float(weights @ np.asarray(program.constraints(x), dtype=float))]
    except Exception:  # of a program that is not defined there
        values = [math.nan, math.nan]
    return {**own, "values": [value if math.isfinite(value) else None for value in values]}


def _equal(one: Any, other: Any) -> bool:
    """Return True if two values are the same, floating-point numbers but for rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= SAME * max(abs(one), abs(other), 1.0)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


# --- texts ------------------------------------------------------------------------------------------------------------


def _leaves(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Paths and texts; deeper only into what describes a problem: descriptions, mappings by name, lists of these."""
    fields = _fields(value) if depth < 3 else None
    if fields is not None:
        if not isinstance(value, Mapping):
            yield path, type(value).__name__
        for name in sorted(fields):
            yield from _leaves(f"{path}.{name}", fields[name], depth + 1)
    elif isinstance(value, list | tuple) and value and all(_fields(x) is not None for x in value):
        for k, x in enumerate(value):
            yield from _leaves(f"{path}[{k}]", x, depth + 1)
    else:
        yield path, _text(value)


def _fields(value: Any) -> Mapping[str, Any] | None:
    """Parts of a description, or of a mapping with names; None of anything else."""
    if isinstance(value, Mapping):
        names = 0 < len(value) <= MANY and all(isinstance(key, str) and key.isprintable() for key in value)
        return value if names else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.compare}
    return None


def _text(value: Any) -> str:
    """A number, a word or a few numbers as they are; the kind and the digest of anything else."""
    if value is None or isinstance(value, NUMBER):
        return _number(value)
    if isinstance(value, str) and len(value) <= 40:
        return repr(value)
    row = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if row and len(value) <= SHORT and all(isinstance(x, NUMBER) for x in value):
        return f"[{', '.join(map(_number, value))}]"
    return f"{type(value).__name__} {digest(value)}"


def _number(value: Any) -> str:
    """A number to DIGITS digits: 1, 1.0 and those of NumPy are the same, and so are 0 and −0."""
    if value is None or isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer) and abs(int(value)) >= 10**DIGITS:
        return str(int(value))
    if isinstance(value, complex | np.complexfloating):
        return f"{_number(value.real)}, {_number(value.imag)} j"
    return f"{float(value) + 0.0:.{DIGITS}g}"


# --- digests ----------------------------------------------------------------------------------------------------------


class _Digests:
    """Digests of objects from those of their parts; each object is looked at once, and cycles end where they began."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}  # with the object, whose id is then no other's
        self._depth = 0

    def of(self, value: Any) -> bytes:
        if value is None or isinstance(value, NUMBER):
            return _sha(b"number", _number(value).encode())
        if isinstance(value, str):
            return _sha(b"text", value.encode("utf-8", "surrogatepass"))
        if id(value) in self._known:
            return self._known[id(value)][1]
        self._known[id(value)] = value, b"around"
        if self._depth >= DEPTH:
            return _pickled(value)
        self._depth += 1
        try:
            found = self._inside(value)
        finally:
            self._depth -= 1
        self._known[id(value)] = value, found
        return found

    def _all(self, kind: str, *values: Any) -> bytes:
        return _sha(kind.encode(), *map(self.of, values))

    def _inside(self, value: Any) -> bytes:
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return _sha(b"array", str(value.shape).encode(), _rounded(value))
        if isinstance(value, np.ndarray):
            return self._all("array", value.shape, value.dtype.str, *value.ravel().tolist())
        if isinstance(value, bytes | bytearray | memoryview):
            return _sha(b"bytes", bytes(value))
        if isinstance(value, list | tuple):
            return self._all("list", *value)
        if isinstance(value, Mapping):  # neither the order of insertion nor that of Python's hashes counts
            keys = sorted((self.of(key), key) for key in value) if _plain(value) else [(b"", key) for key in value]
            return _sha(b"mapping", *sorted(_sha(self.of(key), self.of(value[key])) for _, key in keys))
        if isinstance(value, set | frozenset):
            return _sha(b"set", *sorted(map(self.of, value)))
        if isinstance(value, ModuleType):
            return _sha(b"module", value.__name__.encode())
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return self._all("method", value.__func__, value.__self__)
        if isinstance(value, BuiltinFunctionType | np.ufunc):
            own = getattr(value, "__self__", None)
            name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
            return self._all("function", name, None if isinstance(own, ModuleType) else own)
        if isinstance(value, type):
            return self._type(value)
        for name in ("py_func", "__wrapped__"):  # functions that Numba compiled, or that have a cache
            if isinstance(getattr(value, name, None), FunctionType):
                return self._all("function", type(value), getattr(value, name))
        return self._instance(value)

    def _code(self, code: CodeType) -> bytes:
        """What a code object does: neither its file, nor its lines, nor the names of its local variables."""
        counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
        table = getattr(code, "co_exceptiontable", b"")
        return self._all("code", code.co_code, counts, code.co_names, list(code.co_consts), table)

    def _function(self, function: FunctionType) -> bytes:
        installed = _installed(function)
        if installed and "<" not in function.__qualname__:
            return _sha(b"function", f"{function.__module__}.{function.__qualname__}".encode())
        closure = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # of a cell that is not filled yet
                closure[name] = cell.cell_contents
        names = set() if installed else _names(function.__code__)
        used = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
        used = {name: self._module(x, names) if isinstance(x, ModuleType) else x for name, x in used.items()}
        return self._all("function", function.__code__, function.__defaults__, function.__kwdefaults__, closure, used)

    def _module(self, module: ModuleType, names: set[str], around: tuple[ModuleType, ...] = ()) -> bytes:
        """Digest of what a function may read of a module: of one that is not installed, the values of these names."""
        if module in around or _of_package(module):
            return _sha(b"module", module.__name__.encode())
        own = {name: vars(module)[name] for name in sorted(names) if name in vars(module)}
        inner = (*around, module)
        parts = {name: self._module(x, names, inner) if isinstance(x, ModuleType) else x for name, x in own.items()}
        return self._all("module", module.__name__, parts)

    def _type(self, kind: type) -> bytes:
        if _installed(kind):
            return _sha(b"type", f"{kind.__module__}.{kind.__qualname__}".encode())
        own: dict[str, Any] = {}
        for name, x in vars(kind).items():
            if isinstance(x, staticmethod | classmethod):
                own[name] = x.__func__
            elif isinstance(x, property):
                own[name] = x.fget, x.fset
            elif isinstance(x, FunctionType) or not name.startswith("__"):
                own[name] = x
        return self._all("type", kind.__qualname__, kind.__bases__, own)

    def _instance(self, value: Any) -> bytes:
        kind = type(value)
        own = any("__reduce__" in vars(each) or "__reduce_ex__" in vars(each) for each in kind.__mro__[:-1])
        if dataclasses.is_dataclass(value) and not own:
            return self._all("instance", kind, _fields(value))
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # of what cannot be pickled
            return self._all("unknown", kind)
        if isinstance(reduced, str):
            return self._all("instance", kind, reduced)
        items = (list(x) if k in (3, 4) and x is not None else x for k, x in enumerate(reduced[:5]))
        return self._all("instance", kind, *items)


def _pickled(value: Any) -> bytes:
    """Return the digest of an object's pickle; one constant for objects that are nested too deep even for that."""
    try:
        return _sha(b"deep", pickle.dumps(value, protocol=4))
    except Exception:
        return b"deep"


def _sha(*parts: bytes) -> bytes:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.digest()


def _plain(value: Mapping[Any, Any]) -> bool:
    return all(isinstance(key, str) for key in value)


def _rounded(array: Any) -> bytes:
    """Numbers to DIGITS digits; those that are rounding beside the largest of the array are zero."""
    x = np.stack([array.real, array.imag]) if array.dtype.kind == "c" else array
    x = np.asarray(x, dtype=float).ravel()
    finite = np.isfinite(x)
    small = finite & (np.abs(x) <= ROUNDING * np.abs(x[finite]).max(initial=0.0))
    form = f"{{:.{DIGITS - 1}e}}".format
    return " ".join(map(form, np.where(small, 0.0, x).tolist())).encode()


def _names(code: CodeType) -> set[str]:
    """Names that a function, or one within it, may look up in its module."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


@functools.cache
def _folders() -> tuple[Path, ...]:
    """Where Python, installed packages and this package are."""
    places = {sysconfig.get_path(what) for what in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (*(Path(place).resolve() for place in places if place), Path(__file__).resolve().parents[2])


def _installed(thing: Any) -> bool:
    """Return True if a function or type is of Python or an installed package, so that its name says what it is."""
    module = sys.modules.get(str(getattr(thing, "__module__", None)))
    return module is not None and _of_package(module)


def _of_package(module: ModuleType) -> bool:
    """Return True if a module is of Python or an installed package, rather than a user's own."""
    if module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    return file is None or any(Path(file).resolve().is_relative_to(folder) for folder in _folders())
