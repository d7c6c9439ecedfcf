"""Rows of constraints against complex steps of the oracle; identities; sets by name; what is refused."""

import pickle
import re

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, samples
from kinegrad.constraints import ConstraintSet, Contact, Coupling, Distance, Given, Loop
from tests.conftest import random_state, tree
from tests.constraints.sets import random_constraints
from tests.mixed import mixed_state, mixed_tree
from tests.reference import constraints as reference
from tests.reference import oracle

# A complex step has no truncation error; both sides multiply a dozen transforms of order one, and square speeds.
CLOSE = 1e-12


def assert_near(actual, desired, what):
    """By the largest entry, or by one: a derivative may be zero but for rounding."""
    assert actual.shape == desired.shape, what
    error = np.abs(actual - desired).max(initial=0.0) / max(np.abs(desired).max(initial=0.0), 1.0)
    assert error <= CLOSE, f"{what}: {error:.1e}"


@pytest.mark.parametrize("first", [0, 10, 20])
def test_random_sets_equal_complex_step(first):
    """Every kind of row on random trees: values, Jacobian, all derivatives, curvature."""
    for seed in range(first, first + 10):
        model = tree(seed, largest=7)
        held = ConstraintSet(model, random_constraints(model, seed))
        q, v, a = random_state(model, seed)
        value, (by_q, by_v, by_a) = (
            reference.motion(model, held, q, v, a),
            reference.derivatives(model, held, q, v, a),
        )
        change, second = held.derivatives(q, v, a), reference.jacobian_derivatives(model, held, q)
        f = np.random.default_rng(seed).normal(size=held.m)
        for what, (actual, desired) in {
            "error": (held.error(q), value[0]),
            "velocity": (held.velocity(q, v), value[1]),
            "acceleration": (held.acceleration(q, v, a), value[2]),
            "drift": (held.drift(q, v), -reference.motion(model, held, q, v, 0 * a)[2]),
            "jacobian": (held.jacobian(q), by_q[0]),
            "derror_dq": (change.derror_dq, by_q[0]),
            "dvelocity_dq": (change.dvelocity_dq, by_q[1]),
            "dvelocity_dv": (change.dvelocity_dv, by_v[1]),
            "dacceleration_dq": (change.dacceleration_dq, by_q[2]),
            "dacceleration_dv": (change.dacceleration_dv, by_v[2]),
            "dacceleration_da": (change.dacceleration_da, by_a[2]),
            "jacobian_derivatives": (held.jacobian_derivatives(q), second),
            "curvature": (held.curvature(q, f), np.einsum("m,mij->ij", f, second)),
            "force": (held.force(q, f), f @ by_q[0]),
        }.items():
            assert_near(actual, desired, f"seed {seed}, {what}")


def test_samples_equal_complex_step():
    """Closed mechanisms, also away from closure, and a human on both feet: along random directions of q and v."""
    human = samples.human43(thickness=0.1)
    feet = [Loop(f"{side}_foot", directions="weld", name=side) for side in ("left", "right")]
    for model, held in (*(make() for make in samples.CLOSED.values()), (human, ConstraintSet(human, feet))):
        q, v, a = (0.5 * x for x in random_state(model, 2))
        dq, dv, _ = random_state(model, 3)

        def motion(q, v, model=model, held=held, a=a):
            return reference.motion(model, held, q, v, a)

        value, found = motion(q, v), held.derivatives(q, v, a)
        by_q, by_v = oracle.rate(motion, (q, dq), (v, 0 * v)), oracle.rate(motion, (q, 0 * q), (v, dv))
        for what, actual, desired in [
            ("error", held.error(q), value[0]),
            ("acceleration", held.acceleration(q, v, a), value[2]),
            ("derror_dq", found.derror_dq @ dq, by_q[0]),
            ("dvelocity_dq", found.dvelocity_dq @ dq, by_q[1]),
            ("dacceleration_dq", found.dacceleration_dq @ dq, by_q[2]),
            ("dacceleration_dv", found.dacceleration_dv @ dv, by_v[2]),
        ]:
            assert_near(actual, desired, f"{model.name}, {what}")


def test_mapped_coordinates():
    """Couplings and quaternions: against differences along q ⊕ δ, extrapolated to about 1e-11."""
    for seed in range(6):
        model = mixed_tree(seed)
        held = ConstraintSet(model, random_constraints(model, seed, loops=("weld", "yXZ")))
        q, v, a = mixed_state(model, seed)
        f = np.random.default_rng(seed).normal(size=held.m)
        change = held.derivatives(q, v, a)

        def by_differences(function, q=q, model=model):
            def central(h):
                steps = h * np.eye(model.nv)
                ends = [function(kg.integrate(model, q, sign * steps)) for sign in (1, -1)]
                return np.moveaxis(ends[0] - ends[1], 0, -1) / (2 * h)

            return (4 * central(1e-3) - central(2e-3)) / 3

        for what, actual, function in [
            ("G", held.jacobian(q), held.error),
            ("dvelocity_dq", change.dvelocity_dq, lambda x: held.velocity(x, v)),  # noqa: B023
            ("dacceleration_dq", change.dacceleration_dq, lambda x: held.acceleration(x, v, a)),  # noqa: B023
            ("curvature", held.curvature(q, f), lambda x: held.force(x, f)),  # noqa: B023
        ]:
            expected = by_differences(function)
            np.testing.assert_allclose(actual, expected, atol=2e-9 * max(1, np.abs(expected).max()), err_msg=what)
        np.testing.assert_allclose(held.velocity(q, v), held.jacobian(q) @ v, atol=1e-12)
        np.testing.assert_allclose(held.acceleration(q, v, a), held.jacobian(q) @ a - held.drift(q, v), atol=1e-11)
        np.testing.assert_allclose(change.dacceleration_da, held.jacobian(q), atol=1e-13)


def test_batches_threads_and_forms_of_arrays_have_the_same_bits():
    model, held = samples.stewart_platform()
    q, v, a = random_state(model, 5, (7, 40))
    f = np.random.default_rng(1).normal(size=(7, 40, held.m))
    for whole, one in [
        (lambda **k: held.error(q, **k), lambda i: held.error(q[i])),
        (lambda **k: held.jacobian(q, **k), lambda i: held.jacobian(q[i])),
        (lambda **k: held.drift(q, v, **k), lambda i: held.drift(q[i], v[i])),
        (lambda **k: held.derivatives(q, v, a, **k).dacceleration_dq,
         lambda i: held.derivatives(q[i], v[i], a[i]).dacceleration_dq),
        (lambda **k: held.curvature(q, f, **k), lambda i: held.curvature(q[i], f[i])),
    ]:  # fmt: skip
        single = whole(threads=1)
        assert whole(threads=2).tobytes() == single.tobytes()
        assert one((3, 17)).tobytes() == single[3, 17].tobytes()
    locked = q.copy()
    locked.flags.writeable = False
    for same in (locked, np.asfortranarray(q), q[::-1][::-1], q.astype(np.longdouble)):
        assert held.error(same).tobytes() == held.error(q).tobytes()
    assert held.error(q[:0]).shape == (0, 40, 18)
    assert held.curvature(q[0, 0], f[0]).shape == (40, 24, 24)


def test_zeros_are_exact():
    """Joints that move both ends of a loop or rod, and joints on no path, change nothing."""
    human = samples.human43()
    hands = [Loop("left_hand", other="right_hand", name="clasp"), Distance("left_foot", [0, 0, 0], "right_foot")]
    held = ConstraintSet(human, hands)
    q, v, a = random_state(human, 3)
    moving = [[j for j in range(43) if human.joint_names[j].startswith(("left_", "right_"))]]
    found = held.derivatives(q, v, a)
    for x in (held.jacobian(q), found.dvelocity_dq, found.dacceleration_dq):
        arms = np.abs(x[:6]) > 0
        assert not np.delete(arms, moving, axis=1).any()
        assert not x[:6, human.joint_index("left_knee")].any()
        assert not x[6, human.joint_index("left_elbow.x")].any()


def test_far_from_the_origin_rows_keep_their_digits():
    """Two links close to each other, ten thousand kilometres away."""
    near, far = (closed_pair(x) for x in (0.0, 1e7))
    q = [0.0, 0.3, -0.4]
    np.testing.assert_allclose(far.error(q), near.error(q), atol=1e-14)
    np.testing.assert_allclose(far.jacobian(q), near.jacobian(q), atol=1e-14)


def closed_pair(x):
    builder = kg.ModelBuilder("pair")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    base = builder.add("base", None, kg.prismatic("z"), link="base", placement=[x, 0, 0], inertia=body)
    for name in ("one", "two"):
        builder.add(name, base, kg.revolute("y"), link=name, placement=[0.1, 0, 0], inertia=body)
    points = {"point": [0.3, 0, 0], "other_point": [0.0, 0, 0.2]}
    rods = [Distance("one", other="two", length=0.3, **points), Contact("one", other="two", name="touch", **points)]
    return ConstraintSet(builder.build(), [*rods, Loop("one", other="two")])


def test_a_hinge_turns_through_all_angles():
    """Rows of a hinge are zero, and their rank is full, whatever its free axis does."""
    for free, letters in (("z", "XY"), ("x", "YZ"), ("y", "XZ")):
        builder = kg.ModelBuilder("wheel")
        body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
        builder.add("carrier", None, kg.free(), link="carrier", inertia=body)
        builder.add("wheel", "carrier", kg.revolute(free), link="wheel", inertia=body)
        model = builder.build()
        held = ConstraintSet(model, [Loop("wheel", directions="xyz" + letters)])
        for angle in np.linspace(-np.pi, np.pi, 9):
            q = np.zeros(7)
            q[6] = angle
            assert np.abs(held.error(q)).max() < 1e-15
            assert np.linalg.svd(held.jacobian(q))[1].min() > 0.5


def test_rows_of_turns_are_relative_angular_velocities_at_closure():
    """About the axes of the other frame; so multipliers are moments about them."""
    builder = kg.ModelBuilder("bodies")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    for name in ("one", "two"):
        builder.add(name, None, kg.free(quaternion=True), link=name, inertia=body)
    model = builder.build()
    rng = np.random.default_rng(0)
    turn = rng.normal(size=4)
    pose = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn)])
    q, v = np.concatenate([pose, pose]), rng.normal(size=12)
    motion = kg.forward_kinematics(model, q, v)
    one, two = model.link_index("one"), model.link_index("two")
    relative = motion.angular_velocity[one] - motion.angular_velocity[two]
    expected = motion.transform[two, :3, :3].T @ relative
    for turns in ("X", "Y", "Z", "XY", "XZ", "YZ", "XYZ"):
        held = ConstraintSet(model, [Loop("one", other="two", directions=turns)])
        np.testing.assert_allclose(held.velocity(q, v), expected[["XYZ".index(t) for t in turns]], atol=1e-14)


# --- sets by name -----------------------------------------------------------------------------------------------


def test_sets_are_introspected_by_name():
    model = samples.two_link()
    held = ConstraintSet(model, [Contact("forearm"), Contact("forearm", directions="x"), Given("elbow", name="stop")])
    assert held.names == ("contact_forearm", "contact_forearm_2", "stop")
    assert held.row_names == (
        "contact_forearm.x",
        "contact_forearm.y",
        "contact_forearm.z",
        "contact_forearm_2.x",
        "stop",
    )
    assert (held.m, len(held), [one.name for one in held]) == (5, 3, list(held.names))
    assert held.rows("contact_forearm_2") == slice(3, 4)
    assert [held.constraint_of(k) for k in range(5)] == ["contact_forearm"] * 3 + ["contact_forearm_2", "stop"]
    assert held["stop"] == Given("elbow", name="stop")
    assert "stop" in held
    assert "start" not in held
    assert str(held).splitlines() == [
        "ConstraintSet of 5 rows for model 'two_link'",
        "  0–2  contact_forearm    contact xyz of forearm (0, 0, 0) with the world (0, 0, 0)",
        "  3    contact_forearm_2  contact x of forearm (0, 0, 0) with the world (0, 0, 0)",
        "  4    stop               elbow = 0",
    ]
    with pytest.raises(
        InputError, match=r"constraint 'stopp' does not exist for model 'two_link'; did you mean 'stop'"
    ):
        held.rows("stopp")


def test_sets_compare_by_value_pickle_and_do_not_change():
    for make in samples.CLOSED.values():
        _, held = make()
        again = pickle.loads(pickle.dumps(held))
        assert again == held
        assert hash(again) == hash(held)
        assert (again.error(np.zeros(held.model.n)) == held.error(np.zeros(held.model.n))).all()
    model, held = samples.four_bar()
    assert held != ConstraintSet(model, [])
    assert held != ConstraintSet(model, [Loop("coupler", other="rocker", directions="xz", name="other")])
    with pytest.raises(AttributeError, match="immutable"):
        held.names = ()


def test_what_a_set_is_asked_of_it():
    """Foreign objects are not in a set, rows that it has not are refused, and nothing of it can be deleted."""
    model = samples.two_link()
    held = ConstraintSet(model, [Contact("forearm", directions="xy", name="tip")])
    assert "tip" in held
    assert held["tip"] in held
    assert 0 not in held
    assert np.zeros(3) not in held
    for row in (2, -1, "tip.x", None):
        with pytest.raises(InputError, match=r"`row` is .*; expected the number of a row, from 0 to 1"):
            held.constraint_of(row)
    with pytest.raises(AttributeError, match="immutable"):
        del held.model
    with pytest.raises(InputError, match=r"`q` has shape \(\)"):
        held.jacobian_derivatives(1.0)
    with pytest.raises(InputError, match=r"`q` at index \(1, 0\) is nan"):
        held.jacobian_derivatives([[0, 0], [np.nan, 0]])


def test_an_empty_set_has_no_rows():
    model = samples.two_link()
    none = ConstraintSet(model, [])
    q, v, a = random_state(model, 0, (3,))
    assert none.m == 0
    assert none.error(q).shape == (3, 0)
    assert none.jacobian(q).shape == (3, 0, 2)
    assert none.drift(q, v).shape == (3, 0)
    assert none.derivatives(q, v, a).dacceleration_dq.shape == (3, 0, 2)
    assert not none.curvature(q, np.zeros((3, 0))).any()
    assert kg.assemble(model, none, q).tobytes() == q.tobytes()
    assert kg.project_velocity(model, none, q, v).tobytes() == v.tobytes()
    assert str(none) == "ConstraintSet of 0 rows for model 'two_link'"


def test_lengths_and_places_that_are_left_open():
    model = samples.two_link().replace(frames={"grip": kg.Frame("forearm", [0.1, 0, 0])})
    held = ConstraintSet(model, [Distance("grip", other_point=[0, 0, 1.2]), Contact("grip", other="upper_arm")])
    assert held.constraints[0].length == pytest.approx(1.5, abs=1e-15)
    q = np.array([0.4, 0.9])
    assert np.abs(held.held_at(q).error(q)[1:]).max() < 1e-15
    assert held.held_at(q).constraints[0] == held.constraints[0]
    welds = ConstraintSet(model, [Loop("grip", [0.1, 0, 0]), Loop("grip", other="upper_arm", name="between")])
    assert np.abs(welds.held_at(q).error(q)[:6]).max() < 1e-15
    assert welds.held_at(q)["between"] == welds["between"]


# --- what is refused --------------------------------------------------------------------------------------------

HUMAN = samples.human43()
REFUSED = [
    (lambda: Contact(3), "`link` of Contact(3) is 3; expected text"),
    (lambda: Contact("foot", [0, 0]), r"`point` of Contact('foot') has shape (2,); expected three numbers"),
    (lambda: Contact("foot", [0, 0, np.nan]), "`point` of Contact('foot') is [0.0, 0.0, nan]; expected finite"),
    (lambda: Contact("foot", "abc"), "`point` of Contact('foot') is a str; expected three numbers"),
    (lambda: Contact("foot", None), "`point` of Contact('foot') is a NoneType; expected three numbers"),
    (lambda: Contact("foot", directions=""), "`directions` of Contact('foot') is ''; expected some of 'xyz'"),
    (lambda: Contact("foot", directions="xx"), "`directions` of Contact('foot') is 'xx'"),
    (lambda: Contact("foot", directions="XY"), "`directions` of Contact('foot') is 'XY'"),
    (lambda: Contact("foot", directions=[[0, 0, 0]]), "at 0 is [0.0, 0.0, 0.0]; expected a finite vector that is not"),
    (lambda: Contact("foot", directions=[1, 0, 0]), "`directions` of Contact('foot') have shape (3,)"),
    (lambda: Contact("foot", directions=np.zeros((0, 3))), "have shape (0, 3)"),
    (lambda: Contact("foot", name=" x"), "`name` of Contact('foot') is ' x'; expected no blanks"),
    (lambda: Loop("foot", directions="w"), "`directions` of Loop('foot') is 'w'; expected 'weld', 'hinge', 'pin', or"),
    (lambda: Loop("foot", np.ones((4, 4))), "`placement` of Loop('foot') has last row"),
    (lambda: Loop("foot", [1j, 0, 0]), "`placement` of Loop('foot') is a list; expected a 4×4"),
    (lambda: Distance("foot", length=0.0), "`length` of Distance('foot') is 0; expected more than zero"),
    (lambda: Distance("foot", length=-1), "`length` of Distance('foot') is -1"),
    (lambda: Distance("foot", length=np.inf), "`length` of Distance('foot') is"),
    (lambda: Coupling("a", "a"), "Coupling('a') couples joint 'a' with itself"),
    (lambda: Coupling("a", "b", np.nan), "`ratio` of Coupling('a') is nan"),
    (lambda: Coupling("a", None), "`other` of Coupling('a') is None"),
    (lambda: Given("a", "b"), "`value` of Given('a') is a str; expected a finite number"),
    (lambda: ConstraintSet("m", []), "`model` is a str"),
    (lambda: ConstraintSet(HUMAN, Contact("head")), "`constraints` is Contact("),
    (lambda: ConstraintSet(HUMAN, "head"), "`constraints` is 'head'; expected a list of Contact, Loop"),
    (lambda: ConstraintSet(HUMAN, [None]), "`constraints` holds None"),
    (lambda: ConstraintSet(HUMAN, [Contact("hed")]), "constraint 'contact_hed': link 'hed' does not exist"),
    (lambda: ConstraintSet(HUMAN, [Distance("head", other="hed")]), "constraint 'distance_head': link 'hed' does not"),
    (lambda: ConstraintSet(HUMAN, [Given("nee", name="k")]), "constraint 'k': joint 'nee' does not exist"),
    (lambda: ConstraintSet(HUMAN, [Loop("head", other="head")]), "ties link 'head' to itself, which never moves"),
    (lambda: ConstraintSet(HUMAN, [Given("lumbar", name="a"), Contact("head", name="a")]), "two constraints are"),
    (lambda: ConstraintSet(HUMAN, []).error(np.zeros(42)), "`q` has shape (42,)"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).error(np.full(43, np.nan)), "`q` at index (0,) is nan"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).curvature(np.zeros(43), [1, 2]), "`f` has shape (2,)"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).curvature(np.zeros(43), [1, 2, np.inf]), "`f` at index (2,)"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).held_at(np.zeros((2, 43))), "`q` has shape (2, 43)"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).derivatives(np.zeros(43), a=np.zeros(43)), "`a` is given"),
    (lambda: ConstraintSet(HUMAN, [Contact("head")]).velocity(np.zeros(43), np.full(43, 1e308)), "overflow float64"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def test_hinges_inside_a_ball_are_no_links_and_no_joints():
    builder = kg.ModelBuilder("top")
    builder.add("tip", None, kg.spherical(quaternion=True), link="top", inertia=kg.Inertia.sphere(1.0, 0.1))
    model = builder.build()
    with pytest.raises(InputError, match="is inside a ball joint and not a body"):
        ConstraintSet(model, [Contact(model.link_names[1])])
    with pytest.raises(InputError, match="a hinge inside a ball joint"):
        ConstraintSet(model, [Given(model.joint_names[4])])


def test_a_rod_of_no_length_has_no_direction():
    model = samples.two_link()
    rod = ConstraintSet(model, [Distance("forearm", other_point=[0.8, 0, 0], length=0.5, name="rod")])
    for call in (rod.jacobian, lambda q: rod.velocity(q, [1, 0]), lambda q: rod.curvature(q, [1.0])):
        with pytest.raises(SingularError, match="the two points of constraint 'rod' are at one place"):
            call([0.0, 0.0])
    states = np.array([[[0.3, 0.2]], [[0.0, 0.0]]])
    for call in (
        rod.jacobian,
        lambda q: kg.assemble(model, rod, q),
        lambda q: kg.constrained_dynamics(model, rod, q, [0, 0], [0, 0]),
    ):
        with pytest.raises(SingularError, match=r"'rod' are at one place in state \(1, 0\)"):
            call(states)
    with pytest.raises(InputError, match="at one place in the neutral configuration; expected `length`"):
        ConstraintSet(model, [Distance("forearm", other_point=[0.8, 0, 0])])
