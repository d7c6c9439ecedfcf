"""Models to start from: those of the papers, and small classics.

==========================  =========================================================================
:func:`human43`             the 43-degree-of-freedom human of [zhakatayev2023]
:func:`human_sagittal`      a human in the sagittal plane, 8 degrees of freedom
:func:`two_link`            the planar arm of [xiang2008]
:func:`double_pendulum`     the two particles of [anderson2002]
:func:`spatial_chain`       bars hinged about x, y, z in turn, after [anderson2002]
:func:`multi_pendulum`      rods hinged in a row, in a plane
:func:`cart_pendulum`       a rod hinged to a sliding cart
:func:`puma560`             the Unimation PUMA 560, with its motors
:func:`four_bar`            a closed linkage; with its constraints, as the next three
:func:`five_bar`            two driven arms that hold one point
:func:`slider_crank`        crank, connecting rod and piston
:func:`stewart_platform`    a plate on six legs
:func:`random_tree`         any number of joints, for tests and timings
==========================  =========================================================================

Both humans have a low back that bends, L5/S1, with ``lumbar_flexion=True``; ``SAMPLES`` has these, too, as
``human43_lumbar`` and ``human_sagittal_lumbar``.

``SAMPLES`` names open mechanisms that need no argument, ``CLOSED`` those that come with constraints:

>>> SAMPLES["human43"]().n
43
>>> model, constraints = CLOSED["four_bar"]()
>>> model.n, constraints.m
(3, 2)
"""

from collections.abc import Callable
from functools import partial

from kinegrad.constraints import ConstraintSet
from kinegrad.model import Model
from kinegrad.samples.arms import puma560, two_link
from kinegrad.samples.human import human43
from kinegrad.samples.human_sagittal import human_sagittal
from kinegrad.samples.mechanisms import five_bar, four_bar, slider_crank, stewart_platform
from kinegrad.samples.motions import sample_motion
from kinegrad.samples.pendulums import cart_pendulum, double_pendulum, multi_pendulum, spatial_chain
from kinegrad.samples.random import random_tree

__all__ = [
    "CLOSED",
    "SAMPLES",
    "cart_pendulum",
    "double_pendulum",
    "five_bar",
    "four_bar",
    "human43",
    "human_sagittal",
    "multi_pendulum",
    "puma560",
    "random_tree",
    "sample_motion",
    "slider_crank",
    "spatial_chain",
    "stewart_platform",
    "two_link",
]

SAMPLES: dict[str, Callable[[], Model]] = {
    "human43": human43,
    "human43_lumbar": partial(human43, lumbar_flexion=True),
    "human_sagittal": human_sagittal,
    "human_sagittal_lumbar": partial(human_sagittal, lumbar_flexion=True),
    "two_link": two_link,
    "puma560": puma560,
    "double_pendulum": double_pendulum,
    "multi_pendulum": multi_pendulum,
    "spatial_chain": spatial_chain,
    "cart_pendulum": cart_pendulum,
}
CLOSED: dict[str, Callable[[], tuple[Model, ConstraintSet]]] = {
    "four_bar": four_bar,
    "five_bar": five_bar,
    "slider_crank": slider_crank,
    "stewart_platform": stewart_platform,
    "cart_pendulum": lambda: cart_pendulum(constrained=True),
}
