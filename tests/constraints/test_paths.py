"""Postures of a path are on one branch, however coarse the path and in whatever order; where they cannot be is said."""

import warnings

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import BranchWarning, InputError, SolveError, samples
from kinegrad.constraints import assemble, assemble_path, project_velocity
from tests.constraints.linkages import four_bar_postures, parallelogram, turned

TURN = np.linspace(0, 2 * np.pi, 73)
CLOSE = 1e-9  # closure to 1e-10 m or better, by lengths of 0.2 m and angles between rods


def guesses(angle, *others):
    """Crank angles, and one guess of the other coordinates for all."""
    q = np.zeros((len(angle), 3))
    q[:, 0] = angle
    q[:, 1:] = others or 0.0
    return q


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("count", [73, 7])
def test_a_turn_of_the_crank_stays_on_its_branch(side, count):
    """Without continuation 18 of 73 postures were on the other branch, without a word."""
    model, loop = samples.four_bar()
    angle = np.linspace(0, 2 * np.pi, count)
    expected = four_bar_postures(angle, side)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = assemble(model, loop, guesses(angle, *expected[0, 1:]), keep=["crank"])
    assert q[:, 0].tobytes() == angle.tobytes()
    assert turned(q, expected) < CLOSE
    assert np.abs(loop.error(q)).max() < 1e-13
    if count == 73:
        assert np.abs(np.diff(q, axis=0)).max() < 0.5, "angles do not jump by whole turns either"


def test_postures_in_random_order():
    model, loop = samples.four_bar()
    order = np.random.default_rng(3).permutation(73)
    path = assemble_path(model, loop, guesses(TURN[order]), keep=["crank"])
    assert path.success
    assert path.followed.all()
    assert turned(path.q, four_bar_postures(TURN[order])) < CLOSE


def test_each_by_itself_if_asked_or_if_each_has_its_own_guess():
    model, loop = samples.four_bar()
    q = assemble(model, loop, guesses(TURN), keep=["crank"], continuation=False)
    alone = np.array([assemble(model, loop, x, keep=["crank"]) for x in guesses(TURN)])
    np.testing.assert_allclose(q, alone, atol=1e-12)
    assert turned(q, four_bar_postures(TURN)) > 0.5, "some are on the other branch"
    both = np.where(np.arange(73)[:, None] % 2, four_bar_postures(TURN), four_bar_postures(TURN, -1.0))
    assert turned(assemble(model, loop, both + np.array([0, 0.01, 0]), keep=["crank"]), both) < CLOSE


@pytest.mark.parametrize("kind", ["noise", "swing", "two axes"])
def test_branches_that_change_are_never_silent(kind):
    """Guesses that are almost one, that vary, or in two axes: each is closed by itself, and the jump is named."""
    model, loop = samples.four_bar()
    q = guesses(TURN)
    if kind == "noise":
        q[:, 1:] += 1e-9 * np.random.default_rng(0).normal(size=(73, 2))
    elif kind == "swing":
        q[:, 1] = 0.1 * np.sin(TURN)
    else:
        q = np.stack([q, q])
    with pytest.warns(BranchWarning, match=r"postures .* differ by .*they may be on two branches"):
        assemble(model, loop, q, keep=["crank"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assemble(model, loop, q, keep=["crank"], continuation=False)
        along = np.moveaxis(q, 0, 1) if q.ndim == 3 else q
        followed = assemble(model, loop, along, keep=["crank"], continuation=True)
    assert np.abs(np.diff(followed, axis=0)).max() < 0.5


def test_paths_side_by_side():
    """The first axis is the path; each other batch axis has paths of its own."""
    model, loop = samples.four_bar()
    both = np.stack([four_bar_postures(TURN[::6]), four_bar_postures(TURN[::6], -1.0)], axis=1)
    start = np.broadcast_to(both[:1], both.shape).copy()
    start[..., 0] = TURN[::6, None]
    path = assemble_path(model, loop, start, keep=["crank"])
    assert path.q.shape == both.shape
    assert path.followed.shape == both.shape[:-1]
    assert turned(path.q, both) < CLOSE
    assert turned(assemble(model, loop, start, keep=["crank"], continuation=True), both) < CLOSE


def test_where_branches_meet_the_path_goes_straight_on_and_says_so():
    """A parallelogram laid flat could leave as an antiparallelogram: at ±90°, also where that is a posture itself."""
    model, loop = parallelogram()
    for count in (4, 19):
        angle = np.linspace(0, 2 * np.pi, count)
        path = assemble_path(model, loop, guesses(angle), keep=["crank"])
        assert turned(path.q, np.stack([angle, -angle, angle], axis=-1)) < 1e-4  # at singular postures √1e-10 or so
        assert not path.success
        met = [k for k, one in enumerate(path.followed) if not one]
        assert len(met) == len(path.messages) >= 2
        for k, text in zip(met, path.messages, strict=True):
            assert text.startswith(f"posture {k}: branches meet at crank = ")
            assert angle[k - 1] - 1e-6 <= float(text.split(" = ")[1].split(",")[0]) <= angle[k] + 1e-6
    with pytest.warns(BranchWarning, match=r"not followed at posture 1: branches meet .*assemble_path lists them"):
        assemble(model, loop, guesses(angle[::6]), keep=["crank"])


def test_where_the_branch_ends_the_posture_is_closed_by_itself_and_named():
    """This crank swings and cannot turn: from one side to the other it would have to pass where nothing closes."""
    model, loop = samples.four_bar(ground=0.5, crank=0.3, coupler=0.25, rocker=0.3)
    angle = np.array([0.0, 0.4, 0.8, 2 * np.pi - 0.8, 2 * np.pi - 0.4])
    path = assemble_path(model, loop, guesses(angle), keep=["crank"])
    assert path.followed.tolist() == [True, True, True, False, True]
    (text,) = path.messages
    assert text.startswith("posture 3: the branch ends at crank = 1.")
    assert np.abs(loop.error(path.q)).max() < 1e-12
    with pytest.raises(SolveError, match=r"constraint 'pin' cannot be met in state 2 from this guess"):
        assemble(model, loop, guesses([0.0, 0.8, 2.0, 0.4]), keep=["crank"])


def test_what_is_no_path_is_refused():
    model, loop = samples.four_bar()
    with pytest.raises(InputError, match=r"`q_guess` has shape \(3,\); expected the postures of a path"):
        assemble(model, loop, np.zeros(3), keep=["crank"], continuation=True)
    with pytest.raises(InputError, match=r"`keep` is empty; expected the coordinates that lead"):
        assemble_path(model, loop, np.zeros((4, 3)), keep=[])
    with pytest.raises(InputError, match="`continuation` is 'yes'; expected True or False"):
        assemble(model, loop, np.zeros((4, 3)), keep=["crank"], continuation="yes")
    assert assemble_path(model, loop, np.zeros((0, 3)), keep=["crank"]).q.shape == (0, 3)


def test_a_ball_leads_along_a_path_and_redundant_rows_do_no_harm():
    """A body on a lift whose tilted corner stays on the floor: the lift follows a turn about an oblique axis."""
    builder = kg.ModelBuilder("ball on a lift")
    builder.add("lift", None, kg.prismatic("z"), link="lift", inertia=kg.Inertia.sphere(1.0, 0.1))
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    builder.add("ball", "lift", kg.spherical(quaternion=True), link="body", inertia=body)
    model = builder.build()
    corner = np.array([0.3, 0.1, -0.2])
    twice = [kg.Contact("body", corner, directions="z", name=name) for name in ("floor", "again")]
    floor = kg.ConstraintSet(model, twice)
    angle, axis = np.linspace(0, 3, 4), np.array([2.0, -1.0, 2.0]) / 3
    q = np.zeros((4, 5))
    q[:, 1], q[:, 2:] = np.cos(angle / 2), np.sin(angle / 2)[:, None] * axis
    path = assemble_path(model, floor, q, keep=["ball"])
    assert path.success
    height = [-(kg.rotate(axis, x)[:3, :3] @ corner)[2] for x in angle]
    np.testing.assert_allclose(path.q[:, 0], height, atol=1e-12)
    assert path.q[:, 1:].tobytes() == np.ascontiguousarray(q[:, 1:]).tobytes()


# --- speeds that are kept -------------------------------------------------------------------------------------------


def test_a_crank_keeps_its_speed():
    """Against slopes of the closed form; without `keep`, 10 rad/s became 1.1 to 21.6."""
    model, loop = samples.four_bar()
    q = assemble(model, loop, guesses(TURN), keep=["crank"])
    v = project_velocity(model, loop, q, [10.0, 0.0, 0.0], keep=["crank"])
    assert np.array_equal(v[:, 0], np.full(73, 10.0))
    h = 1e-5  # central differences: error h²
    slope = (four_bar_postures(TURN + h) - four_bar_postures(TURN - h)) / (2 * h)
    np.testing.assert_allclose(v, 10.0 * slope, atol=1e-7)
    assert np.abs(loop.velocity(q, v)).max() < 1e-13
    loose = project_velocity(model, loop, q, [10.0, 0, 0])[:, 0]
    assert loose.min() < 2.0
    assert loose.max() > 20.0


def test_kept_speeds_are_kept_with_the_least_change_of_the_others():
    """Of a mechanism with freedom left: M_ff (v′ − v)_f is a combination of rows of G_f."""
    model, rows = samples.stewart_platform()
    q = np.zeros(model.nq)
    v = np.random.default_rng(2).normal(size=model.nv)
    names = model.speed_names[:2]
    found = project_velocity(model, rows, q, v, keep=names)
    free = np.arange(model.nv) > 1
    assert np.array_equal(found[:2], v[:2])
    assert np.abs(rows.velocity(q, found)).max() < 1e-12
    impulse = (kg.mass_matrix(model, q) @ (found - v))[free]
    G = rows.jacobian(q)[:, free]
    np.testing.assert_allclose(G.T @ np.linalg.lstsq(G.T, impulse, rcond=None)[0], impulse, atol=1e-10)


def test_speeds_that_contradict_the_constraints_are_refused():
    model, loop = samples.four_bar()
    q = assemble(model, loop, guesses(TURN[:3]), keep=["crank"])
    with pytest.raises(
        InputError, match=r"`keep` contradicts the constraints in state 0: .* row 'pin.z' moves at 1\.33"
    ):
        project_velocity(model, loop, q, [10, 0, 0], keep=["crank", "rocker"])
    consistent = project_velocity(model, loop, q, [10.0, 0, 0], keep=["crank"])
    np.testing.assert_array_equal(project_velocity(model, loop, q, consistent, keep=["crank", "rocker"])[:, 2],
                                  consistent[:, 2])  # fmt: skip
    with pytest.raises(InputError, match="coordinate 'cranc' does not exist"):
        project_velocity(model, loop, q, [10, 0, 0], keep=["cranc"])
