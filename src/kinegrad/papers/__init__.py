"""The papers that kinegrad is built on, reproduced: one package per paper, with its figures and tables.

zhakatayev2023   inverse-dynamics sensitivities of the 43-joint human, beside numerical ones
anderson2002     sensitivities to lengths and masses: three methods on chains, a double pendulum over time
xiang2008        motion prediction of a two-link arm: the least time, and lifting a load
kudruss2019      derivatives along directions by four modes: their errors, and what they cost
report           what they share: page, folder, summary

>>> sorted(PAPERS)
['anderson2002', 'kudruss2019', 'xiang2008', 'zhakatayev2023']
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["PAPERS", "load"]

PAPERS = {
    "zhakatayev2023": "kinegrad.papers.zhakatayev2023",
    "anderson2002": "kinegrad.papers.anderson2002",
    "kudruss2019": "kinegrad.papers.kudruss2019",
    "xiang2008": "kinegrad.papers.xiang2008",
}


def load(key: str) -> Any:
    """The package of a paper, imported on demand: it has the functions ``reproduce`` and ``summary``.

    >>> load("zhakatayev2023").reproduce.__name__
    'reproduce'
    """
    return import_module(PAPERS[key])
