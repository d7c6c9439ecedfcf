"""What links of a URDF file look like: solids, colours, and where the files of meshes are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import Note
from kinegrad.io.strict_xml import Element, XmlFile
from kinegrad.io.whole_file import checked_path
from kinegrad.model import Box, Capsule, Cylinder, Mesh, Sphere
from kinegrad.model.geometry import Solid

__all__ = ["PlacedSolid", "ShapeReader", "checked_packages"]

Array = NDArray[np.float64]
Color = tuple[float, ...]
Packages = Mapping[str, str | os.PathLike[str]] | Sequence[str | os.PathLike[str]] | str | os.PathLike[str]
_SOLIDS = ("box", "cylinder", "sphere", "capsule", "mesh")
_UP = 8  # folders above a file in which packages are looked for


class PlacedSolid(NamedTuple):
    """A solid in the frame of a link."""

    solid: Solid
    placement: Array
    color: Color | None
    collision: bool
    line: int


def checked_packages(given: Any) -> tuple[dict[str, Path], list[Path]]:
    """Folders of packages by name, and folders that hold packages; or an InputError."""
    if given is None:
        return {}, []
    if isinstance(given, Mapping):
        named = {}
        for name, place in given.items():
            if not isinstance(name, str) or not name:
                raise InputError(f"`packages` has the name {shown(name)}; expected names of packages, as text")
            named[name] = checked_path(place, f"packages[{name!r}]")
        return named, []
    if isinstance(given, str | os.PathLike):
        return {}, [checked_path(given, "packages")]
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        expected = "expected a folder, several in a list, or a dictionary from packages to their folders"
        raise InputError(f"`packages` is {shown(given)}; {expected}")
    return {}, [checked_path(place, f"packages[{k}]") for k, place in enumerate(given)]


class ShapeReader:
    """Reads <visual> and <collision>; keeps materials, and notes of what is missing.

    Parameters
    ----------
    file : XmlFile
    packages : folder, sequence of folders, or dict from names to folders, optional
        Where ``package://name/…`` is: folders that hold the packages, or each package's own.  Without it, or where a
        package is not found so, the folders above the file are searched, then those of ROS_PACKAGE_PATH.
    strict : bool
        Whether a second material of a shape is a problem, and a shape without geometry.
    """

    def __init__(self, file: XmlFile, packages: Packages | None = None, *, strict: bool = False) -> None:
        self.file, self.strict = file, strict
        self.notes: list[Note] = []
        self.named, self.roots = checked_packages(packages)
        self.here = Path(os.path.abspath(file.path)).parent
        self.materials: dict[str, Color | None] = {}
        self.found: dict[str, Path | None] = {}

    # --- colours ------------------------------------------------------------------------------------------------

    def read_materials(self, root: Element) -> None:
        """All materials with a name and a colour, those within links too: URDF lets others refer to them."""
        for element in [*root.all("material"), *(x for link in root.all("link") for x in _drawn_materials(link))]:
            name, color = element.get("name"), self._own_color(element)
            if name and (color is not None or element.find("texture") is not None):
                self.materials.setdefault(name, color)

    def _own_color(self, element: Element) -> Color | None:
        color = element.find("color")
        if color is None:
            return None
        rgba = self.file.numbers(color, "rgba", 4)
        if not np.isfinite(rgba).all():
            return None
        if not ((rgba >= 0) & (rgba <= 1)).all():
            self.file.problem(color, f'rgba="{color.get("rgba")}" is out of range; expected four numbers from 0 to 1')
            return None
        return tuple(rgba.tolist())

    def _color(self, element: Element) -> Color | None:
        several = element.all("material")
        if len(several) > 1 and not self.strict:
            text = f"{element.label} has {len(several)} materials, of which the first counts"
            self.notes.append(Note("second material", text, several[1].line, matters=False))
        material = self.file.only(element, "material") if self.strict else next(iter(several), None)
        if material is None:
            return None
        own, name = self._own_color(material), material.get("name")
        if material.find("texture") is not None:
            self.notes.append(Note("texture", f"{material.label} has a texture", material.line, matters=False))
        if own is not None:
            return own
        if name not in self.materials and material.find("texture") is None:
            text = f"{element.label} has the material {shown(name)}, which the file does not define"
            self.notes.append(Note("undefined material", text, material.line, matters=False))
        return self.materials.get(name)

    # --- solids -------------------------------------------------------------------------------------------------

    def read(self, element: Element, placement: Array, *, collision: bool) -> PlacedSolid | None:
        """The solid of a <visual> or <collision>; None if it is wrong, which is a problem of the file then."""
        file = self.file
        for part in file.strange(element, ("name",), ("origin", "geometry", "material")):
            what = part if isinstance(part, str) else part.own_label
            self.notes.append(Note(f"{what} in <{element.tag}>", f"{element.label} has {what}", element.line, False))
        color = self._color(element)
        geometry = file.only(element, "geometry", required=True)
        if geometry is None:
            return None
        if not geometry.children and not self.strict:
            self.notes.append(Note("empty shape", f"{element.label} has no geometry", geometry.line, matters=False))
            return None
        if len(geometry.children) != 1:
            file.problem(geometry, f"holds {len(geometry.children)} elements; expected one of {', '.join(_SOLIDS)}")
            return None
        (given,) = geometry.children
        solid = self._solid(given)
        return None if solid is None else PlacedSolid(solid, placement, color, collision, element.line)

    def _solid(self, given: Element) -> Solid | None:
        file = self.file
        if given.tag not in _SOLIDS:
            file.problem(given, f"is no solid of URDF; expected one of {', '.join(_SOLIDS)}")
            return None
        before = len(file.problems)
        made: Any = None
        if given.tag == "box":
            size = file.numbers(given, "size", 3)
            if (size < 0).any():
                file.problem(given, f'size="{given.get("size")}" is negative; expected three lengths, not negative')
            made = (Box, size)
        elif given.tag in ("sphere", "cylinder", "capsule"):
            what = ("radius",) if given.tag == "sphere" else ("radius", "length")
            size = np.array([file.number(given, name, least=0.0, unit="m") for name in what])
            made = ({"sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}[given.tag], *size.tolist())
        else:
            name = file.word(given, "filename")
            scale = file.numbers(given, "scale", 3, (1.0, 1.0, 1.0))
            found = self._mesh(given, name) if name else None
            made = (Mesh, found, scale) if found is not None else None
        if len(file.problems) > before or made is None:
            return None
        if given.tag != "mesh" and not size.all():  # as in some published robots: there is nothing to draw
            self.notes.append(Note("empty shape", f"{given.label} has no size", given.line, matters=False))
            return None
        solid: Solid | None = file.guard(given, *made)
        return solid

    # --- meshes -------------------------------------------------------------------------------------------------

    def _mesh(self, element: Element, name: str) -> str | None:
        """Where the file of a mesh is; None, and a note, if it is not found: nothing could be drawn of it."""
        scheme, separator, rest = name.partition("://")
        place: Path | None
        if not separator:
            place = self.here / name
        elif scheme == "file":
            place = Path(unquote(rest))
        elif scheme in ("package", "model"):
            place = self._in_package(unquote(rest))
        else:
            place = None
        if place is not None and "\0" not in str(place) and os.path.isfile(place):
            return str(place)
        text = f"{element.label} is in {shown(name)}, which is not found, and left out"
        hint = "; say where its package is by packages=… or ROS_PACKAGE_PATH" if scheme in ("package", "model") else ""
        self.notes.append(Note("mesh not found", text + hint, element.line, matters=False))
        return None

    def _in_package(self, rest: str) -> Path | None:
        package, _, inside = rest.lstrip("/").partition("/")  # some files have three slashes
        if package not in self.found:
            self.found[package] = self._package(package)
        folder = self.found[package]
        return None if folder is None else folder / inside

    def _package(self, name: str) -> Path | None:
        """The folder of a package: as given, else within or among the folders above the file, else where ROS looks."""
        if name in self.named:
            return self.named[name]
        if not name or name in (".", "..") or "\0" in name:
            return None
        above = [self.here, *self.here.parents][:_UP]
        ros = [Path(x) for x in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if x]
        for folder in [*self.roots, *above, *ros]:
            if folder.name == name and folder.is_dir():
                return folder
            if (folder / name).is_dir():
                return folder / name
        return None


def _drawn_materials(link: Element) -> list[Element]:
    return [material for drawn in link.all("visual", "collision") for material in drawn.all("material")]
