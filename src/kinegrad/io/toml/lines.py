"""Which line of a TOML text a key is in, for messages: Python's parser does not say.

The text has been parsed before, so it is known to be TOML.  Statements are found by counting brackets and quotes.
"""

from __future__ import annotations

import re

__all__ = ["Path", "key_lines", "line_of"]

Path = tuple[str | int, ...]
_KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.|$)""")
# strings of any kind, comments, brackets: what decides where a statement ends
_TOKEN = re.compile(r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}=\n]', re.S)


def key_lines(text: str) -> dict[Path, int]:
    """Lines, from 1, by paths of keys: ``("joint", 0, "mass")`` is the key mass of the first [[joint]]."""
    found: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for line, statement in _statements(text):
        if statement.startswith("[["):
            name = _resolved(_parts(statement[2:].partition("]]")[0]), counts)
            counts[name] = counts.get(name, -1) + 1
            table = (*name, counts[name])
            found[table] = line
            found.setdefault(name, line)
        elif statement.startswith("["):
            table = _resolved(_parts(statement[1:].partition("]")[0]), counts)
            found[table] = line
        else:
            found.setdefault((*table, *_parts(_left(statement))), line)
    return found


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of a key, or of the nearest one around it; 0 if none is known."""
    for k in range(len(path), 0, -1):
        if path[:k] in lines:
            return lines[path[:k]]
    return 0


def _statements(text: str) -> list[tuple[int, str]]:
    """The first line of each statement, and where it is."""
    found, depth, start, line, begun = list[tuple[int, str]](), 0, 0, 1, 1
    for match in _TOKEN.finditer(text + "\n"):
        token = match[0]
        if token == "\n" and depth == 0:
            statement = text[start : match.start()].strip()
            if statement and not statement.startswith("#"):
                found.append((begun, statement))
            start, begun = match.end(), line + 1
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        line += token.count("\n")
    return found


def _left(statement: str) -> str:
    """What is before the equals sign; quotes may hold others."""
    for match in _TOKEN.finditer(statement):
        if match[0] == "=":
            return statement[: match.start()]
    return statement


def _parts(text: str) -> Path:
    parts, at = list[str](), 0
    text = text.strip()
    while at < len(text) and (match := _KEY.match(text, at)):
        parts.append(next(x for x in match.groups()[:3] if x is not None))
        at = match.end()
    return tuple(parts)


def _resolved(name: Path, counts: dict[Path, int]) -> Path:
    """A table within the last one of an array of tables."""
    found: Path = ()
    for part in name[:-1]:
        found = (*found, part)
        if found in counts:
            found = (*found, counts[found])
    return (*found, *name[-1:])
