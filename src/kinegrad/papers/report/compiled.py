"""Compile algorithms of papers as plain loops over arrays: one style, so that their times can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from kinegrad import _engine as engine

__all__ = ["compiled", "inner"]

Function = TypeVar("Function", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "reassoc"},
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
}


def compiled(function: Function) -> Function:
    """Compile on first use, out of reach of interrupts, and keep the code."""
    return cast(Function, cast(Any, engine.keep_compiled)(cast(Any, numba.njit)(**OPTIONS)(function)))


def inner(function: Function) -> Function:
    """Compile a function that only compiled code calls, which takes less time."""
    return cast(Function, cast(Any, numba.njit)(no_cpython_wrapper=True, **OPTIONS)(function))
