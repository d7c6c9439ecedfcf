"""Recordings of another world: turned, or doubted; a walk that is right raises no doubt."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError, RecordingWarning
from kinegrad.io import Markers
from kinegrad.recordings import ForcePlate, analyze_recording, inverse_kinematics, turn_upright
from tests.recordings.synthetic_walk import SyntheticWalk, synthetic_walk


def on_side(x: np.ndarray) -> np.ndarray:
    """The same recording with z upwards: (x, y, z) → (x, −z, y)."""
    return np.stack([x[..., 0], -x[..., 2], x[..., 1]], axis=-1)


def z_up(walk: SyntheticWalk) -> tuple[Markers, list[ForcePlate]]:
    plates = [replace(p, force=on_side(p.force), point=on_side(p.point), torque=on_side(p.torque)) for p in walk.plates]
    return replace(walk.markers, position=on_side(walk.markers.position)), plates


def test_turned_upright() -> None:
    """Of a world with z upwards and of one with y upwards: the same numbers, there and back."""
    walk = synthetic_walk(31)
    markers, plates = z_up(walk)
    assert turn_upright(walk.model, markers, up="z") == walk.markers
    for found, expected in zip(plates, walk.plates, strict=True):
        assert turn_upright(walk.model, found, up="z") == expected
    assert turn_upright(walk.model, walk.markers, up="y") is walk.markers
    standing = walk.model.replace(gravity=(0, 0, -9.81))
    assert turn_upright(standing, walk.markers, up="y") == markers
    with pytest.raises(InputError, match="`up` is 'x'; expected 'y' or 'z'"):
        turn_upright(standing, walk.markers, up="x")
    with pytest.raises(InputError, match=r"has gravity \(0, 0, 0\); expected it along −y or −z"):
        turn_upright(walk.model.replace(gravity=(0, 0, 0)), walk.markers, up="z")
    with pytest.raises(InputError, match="`recording` is a int"):
        turn_upright(standing, 3, up="z")  # type: ignore[type-var]


def test_a_walk_is_not_doubted() -> None:
    """Neither with its plates nor without, nor of markers with errors: warnings would be errors here."""
    walk = synthetic_walk(61)
    found = inverse_kinematics(walk.model, walk.noisy())
    for plates in (walk.plates, []):
        result = analyze_recording(walk.model, found.t, found.q, lowpass=6, plates=plates, kinematics=found)
        assert result.warnings == ()


def moved(plates: list[ForcePlate], change: Callable[[ForcePlate], ForcePlate]) -> list[ForcePlate]:
    return [change(plate) for plate in plates]


DOUBTS = {
    "plates of another world": (
        lambda walk: (walk.motion.q, z_up(walk)[1]),
        r"the mean force of the plates, .* N, is 90° from the vertical of the model; is another axis up",
    ),
    "forces on the plates": (
        lambda walk: (walk.motion.q, moved(walk.plates, lambda p: replace(p, force=-p.force))),
        r"180° from the vertical of the model; are these forces on the plates",
    ),
    "points in mm": (
        lambda walk: (walk.motion.q, moved(walk.plates, lambda p: replace(p, point=1000 * p.point))),
        r"the centre of pressure of plate 'plate_r' is 336 m from 'calcn_r' in the mean; is it in m",
    ),
    "feet exchanged": (
        lambda walk: (
            walk.motion.q,
            [replace(p, link=o.link) for p, o in zip(walk.plates, walk.plates[::-1], strict=True)],
        ),
        r"'plate_r' is 0\.\d+ m from 'calcn_l' in the mean, and 0\.\d+ m from 'calcn_r'; is that the foot on it\?",
    ),
    "a plate is missing": (
        lambda walk: (walk.motion.q, walk.plates[:1]),
        r"the plates leave more than half of the weight unexplained at 5\d % of the instants",
    ),
    "a person who lies": (
        lambda walk: (inverse_kinematics(walk.model, z_up(walk)[0]).q, []),
        r"'pelvis' is turned by 90° from upright, in the mean; does the person lie",
    ),
}


@pytest.mark.filterwarnings("ignore::kinegrad.RecordingWarning")  # some have more than one doubt
@pytest.mark.parametrize("case", DOUBTS)
def test_doubts(case: str) -> None:
    """Each is a warning, is in the result and in the labelled data, and does not change a number."""
    walk = synthetic_walk()
    change, sentence = DOUBTS[case]
    q, plates = change(walk)
    with pytest.warns(RecordingWarning, match=sentence):
        found = analyze_recording(walk.model, walk.motion.t, q, plates=plates)
    assert any(re.search(sentence, text) for text in found.warnings)
    assert found.warnings[0] in found.to_xarray().attrs["warnings"]


@pytest.mark.filterwarnings("ignore::kinegrad.RecordingWarning")
def test_torques_that_nobody_has() -> None:
    """10 N·m per kg of the body: positions in hundredths of the time they took."""
    walk = synthetic_walk(61)
    with pytest.warns(RecordingWarning, match=r"the torque of '.*' is .* N·m at .* s, .* N·m per kg; expected at most"):
        analyze_recording(walk.model, walk.motion.t / 20, walk.motion.q)


def test_models_without_a_root_or_gravity_are_not_doubted() -> None:
    arm = kg.samples.two_link().replace(gravity=(0, 0, 0))
    t = np.arange(100) / 100
    assert analyze_recording(arm, t, np.outer(np.sin(t), [1, 1])).warnings == ()
