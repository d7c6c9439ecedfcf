"""Frames of an ``.osim`` file by their paths, and which body each of them is fixed in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import shown
from kinegrad.io.strict_xml import Element, XmlFile
from kinegrad.model.placement import rotate, translate

__all__ = ["GROUND", "Frames", "placed", "vector"]

Array = NDArray[np.float64]
GROUND = "ground"


def vector(file: XmlFile, element: Element, tag: str, default: Any = (0.0, 0.0, 0.0)) -> Array:
    """Three numbers in a child of the element."""
    child = file.only(element, tag)
    return np.array(default, dtype=float) if child is None else file.numbers(child, None, 3)


def placed(translation: Array, orientation: Array) -> Array:
    """A frame at a place, turned about its own x, then y, then z."""
    if not (np.isfinite(translation).all() and np.isfinite(orientation).all()):
        return np.eye(4)  # a problem has been reported already
    T = translate(*translation)
    for axis, angle in zip("xyz", orientation, strict=True):
        T = T @ rotate(axis, float(angle))
    return np.asarray(T, dtype=float)


class Frames:
    """Bodies and offset frames by their paths, and which body a socket leads to."""

    def __init__(self, file: XmlFile, model: Element) -> None:
        self.file = file
        self.paths: dict[str, Element] = {}
        self.path_of: dict[int, str] = {}
        self._collect(model)

    def _collect(self, model: Element) -> None:
        waiting = [(child, "") for child in model.children]
        while waiting:
            element, above = waiting.pop()
            name = element.get("name") or (element.tag.lower() if element.tag.endswith("Set") else "")
            path = f"{above}/{name}" if name else above
            if name:
                self.path_of[id(element)] = path
                if element.tag in ("Body", "Ground", "PhysicalOffsetFrame"):
                    self.paths.setdefault(path, element)
            waiting += [(child, path) for child in element.children]

    def socket(self, element: Element, tag: str) -> tuple[str, Array]:
        """The body that a socket leads to, and where the frame is in it; "" and a problem if it leads nowhere."""
        T = np.eye(4)
        for _ in range(100):
            holder = self.file.only(element, tag)
            if holder is None:
                older = " (files between versions 3 and 4 name their frames otherwise: save it with OpenSim 4)"
                self.file.problem(element, f"has no <{tag}>{older}; add it")
                return "", np.eye(4)
            target = self._find(element, self.file.word(holder, None), holder)
            if target is None:
                return "", np.eye(4)
            if target.tag != "PhysicalOffsetFrame":
                return (GROUND if target.tag == "Ground" else target.get("name")), T
            numbers = (vector(self.file, target, what) for what in ("translation", "orientation"))
            T = placed(*numbers) @ T
            element, tag = target, "socket_parent"
        self.file.problem(element, "its frames refer to each other in a circle; expected a body in the end")
        return "", np.eye(4)

    def _find(self, element: Element, text: str, holder: Element) -> Element | None:
        if not text:
            return None
        path = text if text.startswith("/") else f"{self.path_of.get(id(element), '')}/{text}"
        parts = list[str]()
        for part in path.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        exact = self.paths.get("/" + "/".join(parts))
        if exact is not None:
            return exact
        last = text.rstrip("/").rsplit("/", 1)[-1]
        ends = [x for path, x in self.paths.items() if path.rsplit("/", 1)[-1] == last]
        if len(ends) != 1:
            found = "no frame or body" if not ends else f"{len(ends)} frames"
            self.file.problem(holder, f"{shown(text)} leads to {found}; expected the path of one")
            return None
        return ends[0]
