"""Masses from forces, on a synthetic walk whose plates miss a part: positive, as well known as stated, or refused."""

from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.recordings import Analysis, ForcePlate, analyze_recording, fit_masses
from tests.recordings.synthetic_walk import SyntheticWalk, synthetic_walk

# what plates miss is a warning of the analysis
pytestmark = pytest.mark.filterwarnings("ignore:the plates leave more than half:kinegrad.RecordingWarning")


@pytest.fixture(scope="module")
def walk() -> SyntheticWalk:
    return synthetic_walk(count=181)


def heavier(model: kg.Model, **factors: float) -> kg.Model:
    return model.replace(
        mass={name: x * model.mass[model.link_index(name)] for name, x in factors.items()},
        inertia={name: x * model.inertia[model.link_index(name)] for name, x in factors.items()},
    )


def analysed(walk: SyntheticWalk, plates: list[ForcePlate], model: kg.Model | None = None) -> Analysis:
    return analyze_recording(model or walk.model, walk.motion.t, walk.motion.q, plates=plates)


def without(plate: ForcePlate, lost: np.ndarray) -> ForcePlate:
    """The plate, with no force at some instants."""
    return replace(plate, force=np.where(lost[:, None], 0.0, plate.force), torque=np.zeros_like(plate.torque))


def test_a_foot_beside_the_plates_changes_no_mass(walk: SyntheticWalk) -> None:
    """The left foot has no plate.  Without its instants the rest fits; with them a shank weighed less than nothing."""
    found = fit_masses(analysed(walk, walk.plates[:1]))
    alone = np.linalg.norm(walk.plates[1].force, axis=1) < 20.0
    assert not (found.covered & ~alone).any()
    assert found.covered.sum() > 0.5 * alone.sum()
    assert max(abs(x) for x in found.change.values()) < 1e-3
    assert found.force[0] < 1.0
    assert found.success


def test_plates_that_end_early(walk: SyntheticWalk) -> None:
    """Both plates end at 0.7 s, while a foot stands: later instants are left out, and masses found from the rest."""
    t = walk.motion.t
    model = heavier(walk.model, pelvis=1.04)
    found = fit_masses(analysed(walk, [without(plate, t > 0.7) for plate in walk.plates], model))
    assert not found.covered[t > 0.7].any()
    assert found.covered[t < 0.6].all()
    assert found.total[0] == pytest.approx(walk.model.total_mass, abs=3 * found.total[1])
    assert found.total[1] < 0.02 * walk.model.total_mass
    assert found.model.total_mass == pytest.approx(found.total[0])
    by_hand = fit_masses(analysed(walk, [without(plate, t > 0.7) for plate in walk.plates], model), start=0.1, end=0.5)
    assert by_hand.covered.tolist() == ((t > 0.1 - 1e-9) & (t < 0.5 + 1e-9)).tolist()


def test_masses_are_positive_and_near_what_was_known(walk: SyntheticWalk) -> None:
    """Plates that read 15 % less in a part of the walk, which no motion explains: residuals lower their own weight."""
    slow = (walk.motion.t > 0.4) & (walk.motion.t < 1.0)
    weak = [replace(plate, force=np.where(slow[:, None], 0.85, 1.0) * plate.force) for plate in walk.plates]
    found = fit_masses(analysed(walk, weak))
    assert min(found.change.values()) > -0.15
    assert all(mass > 0 for mass in found.model.mass[np.array(walk.model.mass) > 0])
    assert found.total[1] > 0.5


def test_what_known_masses_do_not_explain(walk: SyntheticWalk) -> None:
    """A person who weighs more than a model that is known to 2 %: not a success, and it says why."""
    found = fit_masses(analysed(walk, walk.plates, scaled(walk.model, 0.82)), error=0.02)
    assert not found.success
    assert "N·m remain, which the known masses do not explain" in found.message


def scaled(model: kg.Model, factor: float) -> kg.Model:
    return heavier(model, **{name: factor for name, m in zip(model.link_names, model.mass, strict=True) if m > 0})


def test_a_recording_that_tells_nothing(walk: SyntheticWalk) -> None:
    found = fit_masses(analysed(walk, walk.plates), residual=(1e4, 1e4))
    assert not found.success
    assert "tells no mass" in found.message
    assert max(found.told.values()) < 0.01
    told = fit_masses(analysed(walk, walk.plates))
    assert told.success
    assert told.told["pelvis"] > 0.9
    assert "tells little of the masses of 'femur_r'" in told.message


def test_neighbouring_instants_are_not_independent(walk: SyntheticWalk) -> None:
    """Four times as many instants of the same smooth residuals say no more."""
    errors = []
    for every in (4, 1):
        t = walk.motion.t[::every]
        plates = [plate.at(t) for plate in walk.plates]
        shifted = [replace(p, force=p.force + 30 * np.sin(9 * t + [[0], [1], [2]]).T) for p in plates]
        errors.append(fit_masses(analyze_recording(walk.model, t, walk.motion.q[::every], plates=shifted)).total[1])
    assert errors[1] == pytest.approx(errors[0], rel=0.2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"error": 0.0}, "`error` is 0"),
        ({"residual": 10.0}, "`residual` is 10.0; expected two standard deviations, N and N·m"),
        ({"residual": (10.0, -1.0)}, r"`residual\[1\]` is -1"),
        ({"start": 1.0, "end": 0.5}, "`start` is 1 s and `end` 0.5 s; expected start before end"),
        ({"start": np.nan}, "`start` is nan; expected a time in s, or None"),
        ({"start": 50.0}, "the plates cover hardly any instant: they carry up to"),
    ],
)
def test_refused(walk: SyntheticWalk, change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fit_masses(analysed(walk, walk.plates), **change)  # type: ignore[arg-type]


def test_another_person(walk: SyntheticWalk) -> None:
    """A model of 51 kg for a person of 69 kg: no instant fits within a quarter of its weight."""
    with pytest.raises(InputError, match="scale the model to the person's mass first"):
        fit_masses(analysed(walk, walk.plates, scaled(walk.model, 0.74)))
