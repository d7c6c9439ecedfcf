"""Solvers, multi-starts and sweeps with arguments that no one expects: a named error, or an answer."""

import random
import warnings

import numpy as np
import pytest

from kinegrad.errors import KinegradError
from kinegrad.motion.nlp import load_solution, save_solution, solve
from kinegrad.motion.sweeps import multi_start, read_records, sweep
from tests.fuzz.cases import cases
from tests.fuzz.hostile import VALUES
from tests.motion.sweeps.problems import Wells, reach

START = [0.5, 0.5]
ARGUMENTS = {
    "solve": ("program", "x0", "solver", "hessian", "gradient", "tolerance", "max_iterations", "warm_start", "progress",
              "keep_iterates", "options", "checkpoint"),
    "multi_start": ("problem", "count", "seed", "spread", "stretch", "x0", "draw", "retries", "progress",
                    "same_objective", "same_x", "executor", "record", "guess"),
    "sweep": ("make", "vary", "fixed", "starts", "seed", "spread", "stretch", "retries", "progress", "executor",
              "record", "same_x", "guess"),
    "files": ("load", "save", "records"),
}  # fmt: skip
LARGE = ("count", "starts")  # numbers that are right, and take for ever


def one_case(which, seed):
    """One argument of one function is something else."""
    source = random.Random(seed)
    name = source.choice(ARGUMENTS[which])
    value = source.choice(VALUES)
    if name in LARGE and isinstance(value, int | np.integer) and value > 3:
        return
    if name in ("progress", "draw") and callable(value):
        return  # what users' functions raise is raised
    if name in ("checkpoint", "record") and isinstance(value, str):
        return  # a path that can be written to
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if which == "solve":
                solve(**{"program": Wells(), "x0": START} | {name: value})
            elif which == "multi_start":
                multi_start(**{"problem": Wells(), "count": 2, "x0": START} | {name: value})
            elif which == "sweep":
                sweep(**{"make": reach, "vary": {"elbow": [-1.0]}, "fixed": {"segments": 6}} | {name: value})
            else:
                {"load": load_solution, "records": read_records, "save": lambda x: save_solution(x, "none")}[name](
                    value
                )
        except KinegradError:
            pass


@pytest.mark.parametrize("which", ARGUMENTS)
def test_named_errors_or_answers(which):
    few = {"solve": 150, "multi_start": 120, "sweep": 60, "files": 60}[which]
    for seed in range(cases(few, cost=20)):
        try:
            one_case(which, seed)
        except Exception as error:
            raise AssertionError(f"one_case({which!r}, {seed})") from error
