"""``kinegrad convert``: a model of any format, as a kinegrad TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import find_file, open_console, plain
from kinegrad.cli.info import Massless, ModelName, Project, Root, Strict, Turned, file_options
from kinegrad.io.whole_file import check_kept

__all__ = ["convert"]


def convert(
    model: ModelName,
    out: Annotated[Path, typer.Argument(metavar="OUT.toml", help="File to write.")],
    root: Root = None,
    quaternion: Turned = False,
    massless: Massless = False,
    project_inertia: Project = False,
    strict: Strict = False,
) -> None:
    """Write a model as a kinegrad TOML file, which every other command reads without options.

    Constraints, loads and a design go with it. What of the file is not in the model is listed.
    """
    if Path(model).suffix.lower() != ".toml":
        check_kept([out], [Path(model)])
    found = find_file(model, **file_options(root, quaternion, massless, project_inertia, strict))
    console = open_console()
    if found is None:
        kg.save(kg.samples.SAMPLES[model](), out)
    else:
        kg.save(found, out)
        if len(found.report):
            console.print(plain(found.report), soft_wrap=True)
    console.print(f"model: {plain(out)}", soft_wrap=True)
