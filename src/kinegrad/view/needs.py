"""What the viewer needs beyond kinegrad's own dependencies."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["need_collada", "need_trimesh", "need_viser"]


def need_viser() -> Any:
    """The module viser, or an ImportError that says how to get it."""
    return _need("viser", "viser", "the browser viewer needs")


def need_trimesh() -> Any:
    """The module trimesh, which viser brings, or an ImportError that says how to get it."""
    return _need("trimesh", "trimesh", "meshes need")


def need_collada() -> Any:
    """The module collada, with which trimesh reads .dae files, or an ImportError that says how to get it."""
    return _need("collada", "pycollada", "meshes in .dae files need")


def _need(module: str, package: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # installed, but something it needs is not
            raise
        raise ImportError(
            f"{what} the package '{package}', which is not installed: pip install 'kinegrad[view]'", name=module
        ) from error
