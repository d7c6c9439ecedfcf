"""Motions to predict: problems by name, as ``kinegrad predict`` solves them, and short functions to start from.

two_link    the time-optimal arm and the lifting of [xiang2008]; chains
sagittal    bend and lift in the sagittal plane, after [kudruss2019]
human       the human of 43 degrees of freedom lifts a box, ahead or to one side, and walks
five_bar    a closed loop
catalogue   all of them by name, with what a page says and draws

>>> sorted(PREDICTIONS)[:3]
['five-bar', 'human43-lift', 'human43-lift-aside']
"""

from kinegrad.predictions.catalogue import PREDICTIONS, Drawing, Prediction, prediction
from kinegrad.predictions.five_bar import five_bar_reach
from kinegrad.predictions.human import human43_lift, human43_step
from kinegrad.predictions.sagittal import sagittal_lift
from kinegrad.predictions.two_link import chain, lifting, time_optimal

__all__ = [
    "PREDICTIONS",
    "Drawing",
    "Prediction",
    "chain",
    "five_bar_reach",
    "human43_lift",
    "human43_step",
    "lifting",
    "prediction",
    "sagittal_lift",
    "time_optimal",
]
