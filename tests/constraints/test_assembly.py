"""Mechanisms closed from rough guesses, coordinates kept bit for bit, speeds projected; what cannot be met is named."""

import dataclasses

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, SolveError, samples
from kinegrad.constraints import ConstraintSet, Contact, Given, Loop, assemble, project_velocity
from tests.conftest import random_state, tree
from tests.constraints.sets import random_constraints
from tests.mixed import mixed_state, mixed_tree

CLOSED = list(samples.CLOSED)


@pytest.mark.parametrize("name", CLOSED)
def test_samples_are_closed_at_zero_and_from_rough_guesses(name):
    model, loops = samples.CLOSED[name]()
    assert np.abs(loops.error(np.zeros(model.n))).max() < 1e-15
    guess = np.random.default_rng(3).normal(size=(20, model.n)) * 0.3
    q = assemble(model, loops, guess)
    assert q.shape == guess.shape
    # Steps end where rounding of transforms of order one ends them
    assert np.abs(loops.error(q)).max() < 1e-13
    assert (np.linalg.matrix_rank(loops.jacobian(q)) == loops.m).all()


def test_a_crank_turns_all_the_way_round():
    model, loops = samples.four_bar()
    angle = np.linspace(0, 2 * np.pi, 73)
    guess, q = np.zeros(3), []
    for x in angle:  # each from the one before, as a mechanism moves
        guess = assemble(model, loops, [x, *guess[1:]], keep=["crank"])
        q.append(guess)
    np.testing.assert_allclose(np.sin(q[-1]), np.sin(q[0]), atol=1e-12)
    assert np.ptp(np.array(q)[:, 2]) < np.pi  # a rocker


def test_kept_coordinates_keep_their_bits():
    """Also minus zero, and a quaternion whose length is one but for rounding."""
    model, loops = samples.four_bar()
    q = assemble(model, loops, [-0.0, 0.3, 0.2], keep=["crank"])
    assert np.signbit(q[0])
    builder = kg.ModelBuilder("ball on an arm")
    builder.add("lift", None, kg.prismatic("z"), link="lift", inertia=kg.Inertia.sphere(1.0, 0.1))
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    builder.add("ball", "lift", kg.spherical(quaternion=True), link="body", inertia=body)
    model = builder.build()
    floor = ConstraintSet(model, [Contact("body", [0.3, 0.1, -0.2], directions="z")])
    guess = np.array([0.1, 0.48, 0.6, -0.64, 0.0])
    guess[1:] /= np.linalg.norm(guess[1:])
    q = assemble(model, floor, guess, keep=["ball"])
    assert q[1:].tobytes() == guess[1:].tobytes()
    q = assemble(model, floor, guess, keep=["lift"])
    assert q[0] == guess[0]
    assert abs(floor.error(q)[0]) < 1e-14
    assert np.linalg.norm(q[1:]) == pytest.approx(1, abs=1e-15)


def test_states_of_a_batch_do_not_meet():
    """Each is closed as it is alone, to the tolerance; an empty batch is empty."""
    model, loops = samples.slider_crank()
    guess = np.random.default_rng(4).normal(size=(2, 3, 3)) * 0.4
    q = assemble(model, loops, guess)
    alone = np.array([[assemble(model, loops, x) for x in row] for row in guess])
    np.testing.assert_allclose(q, alone, atol=1e-12)
    assert assemble(model, loops, np.zeros((0, 3))).shape == (0, 3)


def test_redundant_constraints_do_no_harm():
    model, loops = samples.four_bar()
    twice = ConstraintSet(model, [*loops, Loop("coupler", other="rocker", directions="xyzXZ", name="again")])
    q = assemble(model, twice, [0.1, 0.2, 0.3], keep=["crank"])
    assert np.abs(twice.error(q)).max() < 1e-13


def test_a_straight_arm_bends():
    """At q = 0 no step shortens an arm that is stretched: its Jacobian along the arm is zero."""
    arm = samples.two_link()
    near = ConstraintSet(arm, [Contact("forearm", directions="xy", other_point=[0.5, 0, 0])])
    q = assemble(arm, near, [0.0, 0.0])
    assert np.abs(near.error(q)).max() < 1e-13
    assert (assemble(arm, near, [0.0, 0.0]) == q).all()


def test_a_body_is_moved_any_distance_and_hardly_turned():
    # a step of least length, in metres and radians, would share 10 km with the angles
    builder = kg.ModelBuilder("box")
    box = builder.add("base", None, kg.free(), link="box", inertia=kg.Inertia.box(1.0, [0.2, 0.2, 0.2]))
    builder.add("arm", box, kg.revolute("y"), link="arm", inertia=kg.Inertia.rod(1.0, [0, 0, 0], [0.5, 0, 0]))
    model = builder.build()
    for far in (10.0, 1e4, 1e6):
        hand = kg.ConstraintSet(model, [kg.Contact("arm", [0.5, 0, 0], other_point=[far, -far / 2, far / 3])])
        q = kg.assemble(model, hand, np.zeros(7))
        assert np.abs(hand.error(q)).max() < 1e-10
        assert np.abs(q[3:]).max() < 1.0


def test_a_hinge_is_not_closed_upside_down():
    """Rows of turns are zero at half a turn, too; that is no closure."""
    builder = kg.ModelBuilder("spinner")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    builder.add("spin", None, kg.revolute("x"), link="wheel", inertia=body)
    model = builder.build()
    weld = ConstraintSet(model, [Loop("wheel", directions="weld", name="weld")])
    assert abs(assemble(model, weld, [2.5])[0] % (2 * np.pi)) == pytest.approx(0, abs=1e-12)
    over = ConstraintSet(model, [Loop("wheel", kg.rotate("y", np.pi), directions="XY", name="over")])
    with pytest.raises(SolveError, match="constraint 'over' is met with its two frames half a turn apart"):
        assemble(model, over, [0.0], keep=["spin"])


def test_what_cannot_be_met_is_named_with_its_error():
    arm = samples.two_link()
    far = ConstraintSet(
        arm, [Given("elbow", 0.0, name="straight"), Contact("forearm", other_point=[2.0, 0, 0], name="far")]
    )
    with pytest.raises(SolveError, match=r"constraint 'far' cannot be met .* row 'far.x' is off by 1\.2"):
        assemble(arm, far, [0.1, 0.0], keep=["elbow"])
    held = ConstraintSet(arm, [Given("shoulder", 0.1)])
    with pytest.raises(SolveError, match=r"constraint 'given_shoulder' cannot be met in state \(1, 0\) from .* by 0.1"):
        assemble(arm, held, [[[0.1, 0.0]], [[0.2, 0.0]]], keep=["shoulder"])


def test_mapped_coordinates_close():
    """Couplings and quaternions: a point of a mixed tree is brought where it is in another configuration."""
    for seed in range(6):
        model = mixed_tree(seed)
        q0, _, _ = mixed_state(model, seed)
        link = model.link_names[-1]
        held = ConstraintSet(model, [Contact(link, [0.1, 0.2, 0.3], name="held")]).held_at(q0)
        assert np.abs(held.error(q0)).max() < 1e-14
        guess = kg.integrate(model, q0, 0.2 * np.random.default_rng(seed).normal(size=model.nv))
        q = assemble(model, held, guess)
        assert np.abs(held.error(q)).max() < 1e-12


def test_projected_speeds_change_the_least_kinetic_energy():
    """G v′ = 0, and M (v′ − v) is a combination of rows of G; redundant rows change nothing."""
    for seed in range(6):
        model = tree(seed, largest=9)
        model = model.replace(armature=model.armature + 0.3)
        rows = ConstraintSet(model, random_constraints(model, seed)[: 1 + seed % 3])
        q, v, _ = random_state(model, seed, (2,))
        found = project_velocity(model, rows, q, v)
        G, M = rows.jacobian(q), kg.mass_matrix(model, q)
        assert np.abs(G @ found[..., None]).max() < 1e-12
        impulse = (M @ (found - v)[..., None])[..., 0]
        f = (np.linalg.pinv(np.swapaxes(G, -1, -2)) @ impulse[..., None])[..., 0]
        np.testing.assert_allclose((np.swapaxes(G, -1, -2) @ f[..., None])[..., 0], impulse, atol=1e-9)
        twice = ConstraintSet(model, [*rows, dataclasses.replace(rows.constraints[0], name="again")])
        np.testing.assert_allclose(project_velocity(model, twice, q, v), found, atol=1e-10)


def test_what_is_refused():
    model, loops = samples.four_bar()
    other = samples.two_link()
    q = np.zeros(3)
    for call, error, message in [
        (
            lambda: assemble(model, loops, q, keep="crank"),
            InputError,
            "`keep` is 'crank'; expected names of coordinates",
        ),
        (lambda: assemble(model, loops, q, keep=["cranc"]), InputError, "coordinate 'cranc' does not exist.*'crank'"),
        (lambda: assemble(model, loops, np.zeros(2)), InputError, r"`q_guess` has shape \(2,\)"),
        (lambda: assemble(model, loops, [0, 0, np.nan]), InputError, "`q_guess` at index"),
        (lambda: assemble(model, loops, q, tolerance=0), InputError, "`tolerance` is 0"),
        (lambda: assemble(model, list(loops), q), InputError, "`constraints` is .*expected a ConstraintSet"),
        (
            lambda: assemble(other, loops, q),
            InputError,
            "`constraints` are of model 'four_bar', and `model` is 'two_link'",
        ),
        (lambda: assemble("arm", loops, q), InputError, "`model` is a str"),
        (lambda: project_velocity(model, loops, q, [0, 0]), InputError, r"`v` has shape \(2,\)"),
        (lambda: project_velocity(model, loops, q, [0, None, 0]), InputError, "`v` holds"),
    ]:
        with pytest.raises(error, match=message):
            call()
    human = samples.human43()
    foot = ConstraintSet(human, [Contact("right_foot")])
    with pytest.raises(SingularError, match=r"nothing resists joint '.*' of model 'human43'"):
        project_velocity(human, foot, np.zeros(43), np.ones(43))


def test_guesses_that_are_out_of_this_world_are_refused():
    """|φ|² overflows there; it once was an error of linear algebra."""
    arm = samples.two_link()
    builder = kg.ModelBuilder("rail")
    builder.add("slide", None, kg.prismatic("x"), link="car", inertia=kg.Inertia.sphere(1.0, 0.1))
    rail = builder.build()
    held = ConstraintSet(rail, [kg.Contact("car", directions="x")])
    with pytest.raises(kg.SolveError, match=r"constraint 'contact_car' cannot be met .* is off by 1e\+155"):
        assemble(rail, held, [1e155])
    assert abs(assemble(rail, held, [1e40])[0]) < 1e-10
    turned = assemble(arm, ConstraintSet(arm, [kg.Contact("forearm", directions="x")]), [1e15, 0.3])
    assert turned.shape == (2,)
