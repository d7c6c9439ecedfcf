"""From a file of MJCF to MuJoCo's compiled model.

MuJoCo knows what its files mean (defaults, includes, angles in degrees, bodies made of geoms), so it compiles them.
What it would take silently is refused before (:mod:`kinegrad.io.mjcf.before`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from kinegrad.errors import FileError, InputError, said
from kinegrad.io.mjcf.before import check_before

__all__ = ["compiled", "mujoco"]

_one_at_a_time = threading.Lock()
_LINE = re.compile(r"line (\d+)")


def mujoco() -> Any:
    """The package, or an InputError that says how to install it."""
    try:
        return import_module("mujoco")
    except ImportError as error:
        found = f"MJCF is compiled by MuJoCo, which cannot be imported ({said(error)})"
        raise InputError(f"{found}; install it with: pip install 'kinegrad[mjcf]'") from None


@contextmanager
def _warnings_kept(package: Any) -> Iterator[list[str]]:
    """What MuJoCo warns of meanwhile; by itself it would print it, and write a file into the current folder."""
    said_so: list[str] = []
    with _one_at_a_time:
        package.set_mju_user_warning(lambda text: said_so.append(" ".join(str(text).split())))
        try:
            yield said_so
        finally:
            package.set_mju_user_warning(None)


def compiled(path: Path) -> tuple[Any, list[str]]:
    """The compiled ``mujoco.MjModel`` of a file and what MuJoCo warns of, or a FileError of what is wrong with it."""
    check_before(path)
    package = mujoco()
    try:
        with _warnings_kept(package) as warned:
            return package.MjModel.from_xml_path(str(path)), warned
    except (ValueError, RuntimeError, MemoryError, package.FatalError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        line = _LINE.search(text)
        sentence = f"MuJoCo refuses it: {text}; correct it there"
        raise FileError(path, (f"line {line[1]}: {sentence}" if line and int(line[1]) else sentence,)) from None
