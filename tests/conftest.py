"""What the tests share: models to try everything on, random states and loads, one way to compare."""

import functools
import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from kinegrad import Loads, Model
from kinegrad import _engine as engine
from kinegrad.samples import SAMPLES, random_tree

# A shared machine takes the time it takes, so examples have no deadline; in CI they are the same each time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# What a shell starts in the background ignores Ctrl-C, and so do its children: tests of interrupts would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SCREWS = ("screw",)
SLIDERS_AND_HINGES = ("revolute", "prismatic")
ANY = ("revolute", "prismatic", "screw")


def some_now(cases, few: int) -> list:
    """The first few of many cases for ``make test``, and the others, as slow, for ``make test-slow``."""
    return [*cases[:few], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[few:])]


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(20240229)


@pytest.fixture
def small_grain(monkeypatch):
    """Threads are woken for any work at all."""
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)


@pytest.fixture(params=SAMPLES)
def sample(request) -> Model:
    """Each sample model in turn."""
    return SAMPLES[request.param]()


@functools.cache  # models are immutable, and many tests take the same ones
def tree(seed: int, *, largest: int = 15, **options) -> Model:
    """A tree of 1 to `largest` joints, any kinds, one to three roots, springs, dampers, rotors, oblique gravity."""
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(1, largest + 1))
    options = {
        "kinds": (ANY, ANY, SLIDERS_AND_HINGES, SCREWS)[seed % 4],
        "roots": int(rng.integers(1, min(n, 3) + 1)),
        "depth_first": bool(seed % 2),
    } | options
    return random_tree(n, seed, **options).replace(gravity=rng.normal(size=3) * 5)


def random_state(model: Model, seed: int = 0, batch: tuple[int, ...] = ()):
    """q, v, a of order one."""
    return tuple(np.random.default_rng([seed, 1]).normal(size=(3, *batch, model.n)))


def random_loads(model: Model, seed: int = 0, batch: tuple[int, ...] = ()) -> Loads:
    """Forces of tens of newtons at points all over the links, and torques."""
    force, point, torque = np.random.default_rng([seed, 2]).normal(size=(3, *batch, model.n, 3))
    return Loads(force=20 * force, point=0.3 * point, torque=5 * torque)


def parts(loads: Loads):
    """Force, point and torque, as the oracle takes them."""
    return loads.force, loads.point, loads.torque


def difference(actual, desired) -> float:
    """The largest error, by the largest entry of what was expected.

    Not entry by entry: the wrenches of all links meet in sums, so that a small entry carries the rounding of
    the large ones it was subtracted from, in any formulation.
    """
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape, f"shape {actual.shape}; expected {desired.shape}"
    assert np.isfinite(desired).all()
    scale = np.abs(desired).max(initial=0.0)
    error = np.abs(actual - desired).max(initial=0.0)
    return float(error / scale) if scale else float(error)


def assert_close(actual, desired, tolerance: float) -> None:
    error = difference(actual, desired)
    assert error <= tolerance, f"relative difference {error:.2e}; expected at most {tolerance:.0e}"
