"""Fits and error bars of recordings do not depend on how a mechanism, its parameters or its markers are described.

Random chains in two descriptions, with link frames at the joints and anywhere else in the links: lengths, marker errors
and their bars are the same.  A parameter as a constant and as a combination is fitted to the same model.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import Markers
from kinegrad.recordings import analyze_recording, fit_design, inverse_kinematics
from tests.fuzz.cases import cases

NAMES = ("m0", "m1", "m2", "m3", "m4", "m5")


def chain(seed: int, *, moved: bool) -> kg.Model:
    """Three hinges and six markers; `moved`: every link frame shifted within its link, which changes nothing else."""
    rng = np.random.default_rng(seed)
    builder, last, before = kg.ModelBuilder("chain"), None, np.zeros(3)
    for k in range(3):
        place, com, shift = rng.uniform(-0.4, 0.4, (3, 3))
        shift = shift if moved else np.zeros(3)
        body = kg.Inertia.box(rng.uniform(0.5, 2.0), [0.1, 0.2, 0.3], com - shift)
        joint = kg.revolute(rng.normal(size=3))
        last = builder.add(f"j{k}", last, joint, link=f"l{k}", placement=place - before, tip=shift, inertia=body)
        before = shift
        for i in range(2):
            builder.add_frame(NAMES[2 * k + i], last, rng.uniform(-0.3, 0.3, 3) - shift)
    return builder.build()


def swing(seed: int, count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng, t = np.random.default_rng([seed, 1]), np.arange(count) / 100
    return t, np.sin(np.outer(t, rng.uniform(0.5, 2.0, 3)) + rng.uniform(0, 6, 3))


def recording(model: kg.Model, seed: int, error: float = 0.001) -> Markers:
    t, q = swing(seed)
    x = kg.point_motion(model, q, link=list(NAMES)).position
    return Markers(t, NAMES, x + error * np.random.default_rng([seed, 2]).normal(size=x.shape))


@pytest.mark.parametrize("seed", range(cases(3, cost=50)))
def test_bars_do_not_depend_on_link_frames(seed: int) -> None:
    (one, other), (t, q) = (chain(seed, moved=moved) for moved in (False, True)), swing(seed)
    bars = [analyze_recording(model, t, q, lowpass=6, coordinate_error=0.01).errors for model in (one, other)]
    size = max(1.0, np.abs(bars[0].dtau_dlength).max())
    assert bars[0].bone_names == bars[1].bone_names
    np.testing.assert_allclose(bars[0].dtau_dlength, bars[1].dtau_dlength, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(bars[0].total, bars[1].total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(cases(3, cost=50)))
def test_a_combination_is_fitted_like_its_constant(seed: int) -> None:
    model, rng = chain(seed, moved=False), np.random.default_rng([seed, 3])
    constant = f"j{rng.integers(1, 3)}.placement.{rng.choice(list('xyz'))}"
    factor, known = float(rng.uniform(0.2, 3.0)), bool(rng.integers(2))
    alone, both = kg.Design(model, [constant]), kg.Design(model, {"scale": {constant: factor}})
    seen = recording(alone.at(alone.values + rng.uniform(-0.05, 0.05)).model, seed)
    start = float(alone.values[0])
    before = {constant: (start + 0.01, 0.002)} if known else None
    first = fit_design(alone, seen, known=before)
    second = fit_design(both, seen, known={"scale": (0.01 / factor, 0.002 / factor)} if known else None)
    assert start + factor * second.values["scale"] == pytest.approx(first.values[constant], abs=1e-6)
    assert factor * second.errors["scale"] == pytest.approx(first.errors[constant], rel=1e-3)


@pytest.mark.parametrize("seed", range(cases(3, cost=50)))
def test_marker_errors_do_not_depend_on_weights(seed: int) -> None:
    """1 mm is known to 3 %, from 40 frames of 18 components and 3 coordinates."""
    model, rng = chain(seed, moved=True), np.random.default_rng([seed, 4])
    weights = dict(zip(NAMES, (10.0 ** rng.uniform(-2, 2, 6)).tolist(), strict=True))
    found = inverse_kinematics(model, recording(model, seed), weights=weights, start=swing(seed)[1][0])
    assert found.marker_error == pytest.approx(0.001, rel=0.2)
