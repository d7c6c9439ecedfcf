"""The papers that kinegrad is built on, done again: one module a paper, with its figures and tables.

zhakatayev2023   inverse-dynamics sensitivities of the 43-joint human, beside numerical ones

>>> sorted(PAPERS)
['zhakatayev2023']
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["PAPERS", "load"]

PAPERS = {"zhakatayev2023": "kinegrad.papers.zhakatayev2023"}


def load(key: str) -> Any:
    """The module of a paper, imported when it is wanted: it has the function ``reproduce``.

    >>> load("zhakatayev2023").reproduce.__name__
    'reproduce'
    """
    return import_module(PAPERS[key])
