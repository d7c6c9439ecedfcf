"""A load on the ground is carried by the ground until it is lifted."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import (
    Above,
    Acceleration,
    Boundary,
    Effort,
    Foot,
    Limits,
    MotionProblem,
    Phase,
    Posture,
    Reach,
    Rests,
    Time,
)
from kinegrad.motion.problem.upright import axes_with_z
from tests.motion.problem.turned import turned

PERSON = kg.samples.human_sagittal()
BOX = (0.42, 0.0, 0.30)


def lifting(mass, segments=8):
    """A person bent over a box takes its weight and lifts it."""
    load = {"grip": mass}
    phases = [
        Phase("take", duration=(0.1, 1.0), segments=4, attached=load),
        Phase("lift", duration=(0.3, 2.0), segments=segments, attached=load),
    ]
    requirements = [
        Rests("grip", BOX, "take"),
        Foot("foot", sole=(0.0665, 0.0, 0.0), size=(0.266, 0.2)),
        Boundary("start", v=0.0, a=0.0),
        Reach("grip", (0.40, 0.0, 1.10), "end", directions="xz"),
        Boundary("end", v=0.0, a=0.0),
        Above("grip", 0.15, normal=(1, 0, 0), other="shank"),
        Limits(q={"trunk.ry": (-0.4, 1.6)}),
    ]
    objective = [Effort(relative=True), Time(0.3), Acceleration(1e-3), Posture(1e-3)]
    return MotionProblem(PERSON, phases, requirements, objective)


@pytest.mark.slow
@pytest.mark.parametrize("mass", [35.0, 40.0])
def test_heavy_boxes_neither_fall_nor_drag_the_hands(mass):
    """At pick-up a box of 35 kg moved the hands with 9.6 m/s²; one of 40 kg fell with 9.8 m/s²."""
    found = lifting(mass).solve(refine=True)
    assert found.success, found.message
    take, lift = found.phases
    force = take.forces[:, [take.row_names.index(f"rests grip.{k}") for k in (0, 2)]]
    along, normal = force.T
    assert normal.min() > -1e-3  # N: the ground pushes
    assert (np.abs(along) <= 0.6 * np.cos(np.pi / 4) * normal + 1e-2).all()
    assert normal[0] > 0.9 * mass * 9.81  # a person at rest can lean on the box, and does not carry it yet
    np.testing.assert_array_equal(force[-1], 0.0)  # lift-off
    assert not any("rests" in name for name in lift.row_names)
    at = [kg.point_motion(PERSON, x.q, x.v, x.a, link="grip") for x in (take, lift)]
    gap = at[0].position[:, 2] - BOX[2]
    assert np.abs(normal * gap).max() < 1e-4 * mass * 9.81  # N·m: one of force and height is zero
    assert np.abs(at[0].position - BOX)[:, [0, 2]].max() < 2e-4
    fine = lift(np.linspace(0, lift.t[-1], 301))
    assert kg.point_motion(PERSON, fine.q, link="grip").position[:, 2].min() > BOX[2] - 1e-5
    assert np.linalg.norm(at[1].acceleration[0]) < 0.5  # m/s², where the box leaves the ground
    _newton(mass, take, at[0], force)
    _newton(mass, lift, at[1], np.zeros((len(lift.t), 2)))


def _newton(mass, motion, grip, ground):
    """Independent of attached masses and constraints: the box is a load on the bare person; feet push for the rest."""
    of_box = -mass * (grip.acceleration - PERSON.gravity)
    of_box[:, [0, 2]] += ground
    loads = kg.Loads(force={"grip": of_box})
    tau = kg.inverse_dynamics(PERSON, motion.q, motion.v, motion.a, loads=loads)
    for axis in "xz":
        foot = motion.forces[:, motion.row_names.index(f"foot foot.{axis}")]
        np.testing.assert_allclose(tau[:, PERSON.speed_index(f"trunk.t{axis}")], foot, atol=0.3)  # N


def test_derivatives_of_resting_loads():
    check = lifting(20.0, segments=4).check_derivatives()
    assert max(check.gradient, check.jacobian, check.hessian) < 1e-6


def test_a_load_that_nothing_carried_before_is_among_the_notes():
    """Silent, it falls or drags the hands where they are."""
    phases = [Phase("bend", segments=4), Phase("lift", segments=4, attached={"grip": 35.0}, continuity=1)]
    notes = MotionProblem(PERSON, phases, [Boundary("start", v=0)], [Effort(relative=True)]).notes
    assert "phase 'lift' begins with 35 kg on grip, which nothing carried before" in notes[0]
    phases = [phases[0], Phase("take", segments=4, attached={"grip": 35.0}), phases[1]]
    rests = MotionProblem(PERSON, phases, [Rests("grip", BOX, "take")], [Effort(relative=True)])
    assert not [note for note in rests.notes if "carried before" in note]


def test_the_ground_is_across_gravity_and_the_load_stays_above_it():
    R = axes_with_z(np.array([0.0, 1.0, 0.0]))
    place = R @ np.array(BOX)
    rests = [Rests("grip", place, "take")]
    parts = MotionProblem(turned(PERSON, R), lifting(5.0).phases, rests, [Effort(relative=True)]).parts
    assert parts.requirements[0].normal == (0, 1, 0)
    floor = parts.requirements[1]
    assert (floor.link, floor.phase, floor.normal) == ("grip", "lift", (0, 1, 0))
    assert floor.height == pytest.approx(BOX[2])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"phase": "pull"}, "the phases are 'bend', 'take'"),
        ({"phase": "bend"}, "in which that link carries nothing"),
        ({"faces": 2}, "whole number from 3 to 64"),
        ({"friction": 0.0}, "above 0"),
        ({"link": 3}, "the name of a link or frame"),
    ],
)
def test_what_cannot_rest_is_refused(given, says):
    phases = [Phase("bend", segments=4), Phase("take", segments=4, attached={"grip": 5.0})]
    with pytest.raises(kg.InputError, match=says):
        MotionProblem(PERSON, phases, [Rests(**{"link": "grip", "at": BOX, "phase": "take"} | given)])
