"""What Ctrl-C leaves of a solve is no result of a paper, and no page of a prediction."""

import os
import signal

import pytest

from kinegrad.papers.report.motion_page import predict
from kinegrad.papers.xiang2008 import experiment
from kinegrad.predictions import prediction


def interrupting(iterate):
    if iterate.iteration == 2:
        os.kill(os.getpid(), signal.SIGINT)


def test_a_run_of_an_experiment_is_interrupted():
    with pytest.raises(KeyboardInterrupt):
        experiment.solve(1, segments=6, nodes=1, progress=interrupting)


def test_an_interrupted_prediction_writes_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        predict(prediction("two-link-lifting"), tmp_path / "out", progress=interrupting)
    assert not list(tmp_path.iterdir())
