"""Models to start from: those of the papers, and small classics.

==========================  =========================================================================
:func:`human43`             the 43-degree-of-freedom human of [zhakatayev2023]
:func:`two_link`            the planar arm of [xiang2008]
:func:`double_pendulum`     the two particles of [anderson2002]
:func:`spatial_chain`       bars hinged about x, y, z in turn, after [anderson2002]
:func:`multi_pendulum`      rods hinged in a row, in a plane
:func:`cart_pendulum`       a rod hinged to a sliding cart
:func:`puma560`             the Unimation PUMA 560, with its motors
:func:`random_tree`         any number of joints, for tests and timings
==========================  =========================================================================

``SAMPLES`` names those that need no argument:

>>> SAMPLES["human43"]().n
43
"""

from collections.abc import Callable

from kinegrad.model import Model
from kinegrad.samples.arms import puma560, two_link
from kinegrad.samples.human import human43
from kinegrad.samples.pendulums import cart_pendulum, double_pendulum, multi_pendulum, spatial_chain
from kinegrad.samples.random import random_tree

__all__ = [
    "SAMPLES",
    "cart_pendulum",
    "double_pendulum",
    "human43",
    "multi_pendulum",
    "puma560",
    "random_tree",
    "spatial_chain",
    "two_link",
]

SAMPLES: dict[str, Callable[[], Model]] = {
    "human43": human43,
    "two_link": two_link,
    "puma560": puma560,
    "double_pendulum": double_pendulum,
    "multi_pendulum": multi_pendulum,
    "spatial_chain": spatial_chain,
    "cart_pendulum": cart_pendulum,
}
