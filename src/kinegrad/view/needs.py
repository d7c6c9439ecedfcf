"""What the browser viewer needs beyond kinegrad's own dependencies."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["need_viser"]


def need_viser() -> Any:
    """The module viser, or an ImportError that says how to get it."""
    try:
        return importlib.import_module("viser")
    except ModuleNotFoundError as error:
        if error.name != "viser":  # installed, but something it needs is not
            raise
        raise ImportError(
            "the browser viewer needs the package 'viser', which is not installed: pip install 'kinegrad[view]'",
            name="viser",
        ) from error
