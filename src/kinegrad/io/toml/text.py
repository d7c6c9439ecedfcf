"""TOML written: numbers in as many digits as bring them back to the last bit, one key a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["document"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
WIDTH = 110  # of a line, above which a list of lists goes to several


def document(content: Mapping[str, Any]) -> str:
    """A document: plain keys first, then tables, then arrays of tables, in the order given.

    >>> print(document({"name": "arm", "joint": [{"axis": "z", "mass": 0.1}]}))
    name = "arm"
    <BLANKLINE>
    [[joint]]
    axis = "z"
    mass = 0.1
    <BLANKLINE>
    """
    lines = [f"{_key(key)} = {_value(x)}" for key, x in content.items() if not _own_table(x)]
    for key, x in content.items():
        if isinstance(x, Mapping):
            lines += ["", f"[{_key(key)}]", *_body(x)]
        elif _own_table(x):
            for each in x:
                lines += ["", f"[[{_key(key)}]]", *_body(each)]
    return "\n".join(lines) + "\n"


def _own_table(value: Any) -> bool:
    """Whether it is written under a heading of its own."""
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _body(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(x)}" for key, x in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    plain = (_ESCAPED.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{"".join(plain)}"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(x)}" for key, x in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        each = [_value(x) for x in value]
        line = f"[{', '.join(each)}]"
        nested = bool(value) and isinstance(value[0], list | tuple | Mapping)
        return line if len(line) <= WIDTH or not nested else "[\n    " + ",\n    ".join(each) + ",\n]"
    if isinstance(value, int):
        return str(value)
    return repr(float(value))
