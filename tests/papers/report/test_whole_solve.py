"""What Ctrl-C leaves of a solve is no result of a paper, and no page of a prediction; of a check, it says so."""

import json
import os
import signal

import pytest

from kinegrad.papers.report.motion_page import UNVERIFIED, predict
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


def test_an_interrupted_check_leaves_the_page_which_says_so(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("not interrupted")

    monkeypatch.setattr("kinegrad.motion.problem.solution.verify", interrupted)
    said = []
    report = predict(
        prediction("two-link-lifting"), tmp_path / "out", stages=lambda what, done, total: said.append(what)
    )
    assert report.verification is None
    assert report.solution.success
    assert UNVERIFIED[1:] in report.page.read_text(encoding="utf-8")
    assert json.loads(report.results.read_text(encoding="utf-8"))["verification"] == UNVERIFIED
    assert said[0] == "simulating the predicted torques"
