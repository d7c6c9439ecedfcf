"""Models from files and into them, whatever the format: chosen by the suffix, and for XML by the outermost element.

===========  =====================================  ===========================================
suffix       format                                 read by
===========  =====================================  ===========================================
.toml        kinegrad's own                         :mod:`kinegrad.io.toml`
.urdf        URDF                                   :mod:`kinegrad.io.urdf`
.xml, .mjcf  MJCF, or URDF if it holds a <robot>    :mod:`kinegrad.io.mjcf`
.osim        OpenSim                                :mod:`kinegrad.io.opensim`
===========  =====================================  ===========================================
"""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import LeftOutWarning, ModelFile
from kinegrad.io.strict_xml import read_xml
from kinegrad.io.whole_file import checked_path
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["MODEL_SUFFIXES", "load", "read_model", "save"]

_FORMATS = {".toml": "toml", ".urdf": "urdf", ".osim": "opensim", ".xml": "mjcf", ".mjcf": "mjcf"}
MODEL_SUFFIXES = tuple(_FORMATS)


def load(path: str | os.PathLike[str], **options: Any) -> Model:
    """Read the model in a file.

    Parameters
    ----------
    path : path
        A .toml, .urdf, .osim, .xml or .mjcf file.
    **options
        Options of the format, such as ``root="free"`` for URDF: see :func:`kinegrad.io.read_model`.

    Returns
    -------
    Model

    Raises
    ------
    FileError
        With all problems of the file: lines, elements, values, and what to do.

    Warns
    -----
    LeftOutWarning
        If the file contains something that affects the motion and is not in the model: friction, muscles, constraints,
        loads; or something that no model can have and that was read otherwise: impossible inertias, joints that move
        no mass.  :func:`kinegrad.io.read_model` returns them, or a report of them, and does not warn.

    Examples
    --------
    >>> import tempfile, kinegrad as kg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kg.save(kg.samples.two_link(), f"{folder}/arm.toml")
    ...     arm = kg.load(f"{folder}/arm.toml")
    >>> arm == kg.samples.two_link()
    True
    """
    found = read_model(path, **options)
    if found.warning:
        warnings.warn(LeftOutWarning(found.warning), stacklevel=2)
    return found.model


def read_model(path: str | os.PathLike[str], **options: Any) -> ModelFile:
    """All that is in a file of a model: the model, constraints, loads, a design, and a report of what is left out.

    Parameters
    ----------
    path : path
        A .toml, .urdf, .osim, .xml or .mjcf file.
    **options
        Of its format.  URDF: ``root="fixed"`` or ``"free"``, ``quaternion``, ``packages``, ``inertia="close"``,
        ``"project"`` or ``"refuse"``, ``massless``, ``strict``, ``gravity``, see :func:`kinegrad.io.urdf.read`.
        MJCF: ``quaternion``, ``inertia``, ``strict``, see :func:`kinegrad.io.mjcf.read`.  OpenSim:
        ``locked="fixed"`` or ``"free"``, ``inertia``, ``massless``, ``strict``, ``markers``, see
        :func:`kinegrad.io.opensim.read`.  TOML: none.

    Returns
    -------
    ModelFile

    Raises
    ------
    FileError
        With all problems of the file.

    Examples
    --------
    >>> import tempfile, kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> rod = kg.Distance("forearm", other_point=[0.8, 0.3, 0], length=0.3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kg.save(arm, f"{folder}/arm.toml", constraints=[rod])
    ...     found = kg.io.read_model(f"{folder}/arm.toml")
    >>> found.constraints.names, len(found.report)
    (('distance_forearm',), 0)
    """
    place = checked_path(path)
    reader = _reader(place)
    known = [name for name, p in inspect.signature(reader).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(known) or 'none'}"
            raise InputError(f"option `{shown(name)[1:-1]}` is unknown for {place.suffix} files; {hint}")
    found: ModelFile = reader(place, **options)
    return found


def save(
    model: Model | ModelFile,
    path: str | os.PathLike[str],
    *,
    constraints: ConstraintSet | Any = None,
    loads: Loads | None = None,
    design: Design | Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a TOML file, from which :func:`load` makes it again to the last bit.

    Parameters
    ----------
    model : Model or ModelFile
        Any model; or what :func:`kinegrad.io.read_model` found, whose constraints, loads and design are written, too.
    path : path
        A .toml file.  It appears whole or not at all.
    constraints : ConstraintSet or sequence of constraints, optional
        Of the model.
    loads : Loads, optional
        Constant ones.
    design : Design, or its parameters, optional
        By names of constants; one that a function builds cannot be written.

    Examples
    --------
    >>> import tempfile, kinegrad as kg
    >>> human = kg.samples.human43()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kg.save(human, f"{folder}/human.toml")
    ...     kg.load(f"{folder}/human.toml") == human
    True
    """
    from kinegrad.io.toml import write

    place = checked_path(path)
    if place.suffix.lower() != ".toml":
        raise InputError(f"{place}: files of kind {shown(place.suffix)} cannot be written; expected .toml")
    write(place, model, constraints=constraints, loads=loads, design=design)


def _reader(path: Path) -> Callable[..., ModelFile]:
    """The function that reads such a file."""
    suffix = path.suffix.lower()
    if suffix == ".xacro":
        raise InputError(f"{path}: is a macro of URDF; expected the URDF file that the program xacro makes of it")
    if suffix not in _FORMATS:
        expected = ", ".join(MODEL_SUFFIXES)
        raise InputError(f"{path}: files of kind {shown(suffix)} are unknown; expected one of {expected}")
    name = _FORMATS[suffix]
    if suffix == ".xml" and read_xml(path).root.tag == "robot":
        name = "urdf"
    reader: Callable[..., ModelFile] = import_module(f"kinegrad.io.{name}").read
    return reader
