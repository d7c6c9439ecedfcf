"""Constrained dynamics and impacts against a dense oracle, identities that they have to fulfil, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from tests.constraints.choice import independent_set
from tests.reference import constrained as reference

LAW = (3.0, 5.0)
METHODS = ("range-space", "null-space", "direct")


def relative(x, y):
    return np.abs(x - y).max() / np.abs(y).max()


def random_case(seed, states=5):
    rng = np.random.default_rng([seed, 33])
    model = kg.samples.random_tree(int(rng.integers(4, 10)), seed=seed)
    q, v, tau = rng.normal(size=(3, states, model.n))
    return model, independent_set(model, q, seed), q, v, tau


def loads_of(model, states, seed=0):
    return kg.Loads(*np.random.default_rng([seed, 34]).normal(size=(3, states, model.n, 3)))


@pytest.fixture(scope="module")
def held_arm():
    arm = kg.samples.puma560()
    return arm, kg.ConstraintSet(arm, [kg.Contact(arm.link_names[-1], [0.1, 0, 0.2], directions="xy", name="tip")])


def test_random_trees_against_the_oracle():
    # condition numbers of the chosen sets are below 100, those of M below 1e4: 1e-11 leaves them some digits
    rows = 0
    for seed in range(25):
        model, held, q, v, tau = random_case(seed)
        loads = loads_of(model, 5, seed) if seed % 2 else None
        found = kg.constrained_dynamics(model, held, q, v, tau, loads=loads, stabilisation=LAW)
        rows += held.m
        for k in (0, 4):
            given = [] if loads is None else [x[k] for x in (loads.force, loads.point, loads.torque)]
            a, f = reference.constrained_dynamics(model, held, q[k], v[k], tau[k], *given, stabilisation=LAW)
            assert relative(found.a[k], a) < 1e-11
            assert relative(found.forces[k], f) < 1e-11
    assert rows > 80


def test_methods_agree():
    for seed in range(8):
        model, held, q, v, tau = random_case(seed)
        loads = loads_of(model, 5, seed)
        for redundant in ("error", "least-squares"):
            every = [
                kg.constrained_dynamics(
                    model, held, q, v, tau, loads=loads, method=method, stabilisation=LAW, redundant=redundant
                )
                for method in METHODS
            ]
            for one in every[1:]:
                assert relative(one.a, every[0].a) < 1e-10
                assert relative(one.forces, every[0].forces) < 1e-10


def boat(mass):
    """A ship of so many kg with a crane of two booms of a gram each, whose tip is held twice over."""
    builder, rod = kg.ModelBuilder("boat"), kg.Inertia.rod(1e-3, [0, 0, 0], [0.1, 0, 0])
    builder.add("sea", None, kg.prismatic("x"), link="hull", inertia=kg.Inertia.box(mass, [10, 10, 10]))
    builder.add("boom", "hull", kg.revolute("z"), link="boom", inertia=rod)
    builder.add("jib", "boom", kg.revolute("z"), link="jib", placement=[0.1, 0, 0], inertia=rod)
    model = builder.build()
    tip = [kg.Contact("jib", [0.1, 0, 0], "y", "hull", [0, 0.05, 0], name=name) for name in ("rope", "again")]
    return model, kg.ConstraintSet(model, tip)


def test_methods_agree_where_masses_are_far_apart():
    # singular values of grams beside those of a thousand tons are no rounding
    for mass in (1.0, 1e6, 1e9):
        model, twice = boat(mass)
        state = [0.0, 1.0, -1.2], [1.0, 0.5, 0.3], [1.0, 1e-6, 2e-6]
        one = kg.constrained_dynamics(model, kg.ConstraintSet(model, [twice["rope"]]), *state)
        for method in METHODS:
            found = kg.constrained_dynamics(model, twice, *state, method=method, redundant="least-squares")
            assert relative(found.a, one.a) < 1e-12
            assert relative(found.forces, np.repeat(one.forces / 2, 2)) < 1e-12


@pytest.mark.parametrize("lever", [1e3, 1e6, 1e9, 1e60])
def test_least_squares_judge_rows_of_any_size(lever):
    """A row is no rounding because another one has a long lever; what follows from others does so at any size."""
    arm = kg.samples.puma560()
    q, v, tau = np.random.default_rng(1).normal(size=(3, arm.n))
    rows = [
        kg.Contact(arm.link_names[-1], [lever, 0, 0], "y", name="far"),
        kg.Given(arm.joint_names[1], name="given"),
        kg.Contact(arm.link_names[2], [0.1, 0.2, 0.3], "x", name="near"),
    ]
    held = kg.ConstraintSet(arm, rows)
    twice = kg.ConstraintSet(arm, [*rows, *(replace(one, name=f"{one.name} again") for one in rows)])
    plain = kg.constrained_dynamics_derivatives(arm, held, q, v, tau)
    for method in METHODS:
        found = kg.constrained_dynamics(arm, held, q, v, tau, method=method, redundant="least-squares")
        again = kg.constrained_dynamics(arm, twice, q, v, tau, method=method, redundant="least-squares")
        for x in (found, again):
            assert relative(x.a, plain.a) < 1e-12
        np.testing.assert_allclose(found.forces, plain.forces, rtol=1e-11)
        np.testing.assert_allclose(again.forces, np.tile(plain.forces / 2, 2), rtol=1e-6)
    d = kg.constrained_dynamics_derivatives(arm, twice, q, v, tau, redundant="least-squares")
    for by in ("q", "v", "tau"):
        assert relative(getattr(d, f"da_d{by}"), getattr(plain, f"da_d{by}")) < 1e-11
    speeds = kg.project_velocity(arm, twice, q, v)
    after = kg.impact(arm, held, q, v).v
    assert relative(speeds, after) < 1e-12


def test_equations_of_motion_and_of_constraints_hold():
    model, held, q, v, tau = random_case(3)
    found = kg.constrained_dynamics(model, held, q, v, tau)
    balance = kg.inverse_dynamics(model, q, v, found.a) - held.force(q, found.forces)
    np.testing.assert_allclose(balance, tau, atol=1e-11 * np.abs(found.forces).max())
    np.testing.assert_allclose(held.acceleration(q, v, found.a), 0, atol=1e-11 * np.abs(found.a).max())


def test_an_empty_set_is_forward_dynamics_bit_for_bit():
    model, _, q, v, tau = random_case(1)
    none, loads = kg.ConstraintSet(model, []), loads_of(model, 5)
    found = kg.constrained_dynamics(model, none, q, v, tau, loads=loads)
    assert found.a.tobytes() == kg.forward_dynamics(model, q, v, tau, loads=loads).tobytes()
    assert found.forces.shape == (5, 0)
    after = kg.impact(model, none, q, v)
    assert after.v.tobytes() == v.tobytes()
    assert after.impulses.shape == (5, 0)


def test_stabilisation_draws_errors_back(held_arm):
    # φ̈ + 2αφ̇ + β²φ = 0, by the set's own φ and rates
    model, held = held_arm
    q, v, tau = np.random.default_rng(5).normal(size=(3, 4, model.n))
    for given, (alpha, beta) in {2.0: (2.0, 2.0), LAW: LAW}.items():
        a = kg.constrained_dynamics(model, held, q, v, tau, stabilisation=given).a
        law = held.acceleration(q, v, a) + 2 * alpha * held.velocity(q, v) + beta**2 * held.error(q)
        np.testing.assert_allclose(law, 0, atol=1e-10 * np.abs(a).max())


def test_a_given_joint_is_a_prescribed_one():
    # hybrid dynamics knows nothing of constraints
    model = kg.samples.puma560()
    q, v, tau = np.random.default_rng(6).normal(size=(3, 3, model.n))
    names = [model.joint_names[k] for k in (1, 4)]
    held = kg.ConstraintSet(model, [kg.Given(name) for name in names])
    found = kg.constrained_dynamics(model, held, q, v, tau)
    other = kg.hybrid_dynamics(model, q, v, tau, np.zeros(model.n), prescribed=names)
    np.testing.assert_allclose(found.a, other.a, atol=1e-11 * np.abs(found.a).max())
    np.testing.assert_allclose(found.forces + tau[:, [1, 4]], other.tau[:, [1, 4]], rtol=1e-10)


def test_a_coupling_is_a_coupled_coordinate():
    # the same mechanism with a coordinate less knows nothing of constraints
    def arm():
        builder = kg.ModelBuilder("geared")
        bar = kg.Inertia.cylinder(1.5, 0.05, [0, 0, 0], [0.4, 0, 0])
        builder.add("upper", None, kg.revolute("z"), inertia=bar)
        builder.add("lower", "upper", kg.revolute("y"), placement=[0.4, 0, 0], inertia=bar)
        return builder

    model, builder = arm().build(), arm()
    builder.mimic("lower", "upper", multiplier=0.5, offset=0.1)
    geared = kg.ConstraintSet(model, [kg.Coupling("lower", "upper", 0.5, 0.1)])
    found = kg.constrained_dynamics(model, geared, [0.3, 0.25], [2.0, 1.0], [1.0, 4.0])
    less = kg.forward_dynamics(builder.build(), [0.3], [2.0], [1.0 + 0.5 * 4.0])
    np.testing.assert_allclose(found.a, less[0] * np.array([1.0, 0.5]), rtol=1e-12)


class TestImpact:
    def test_against_the_oracle(self):
        for seed in range(10):
            model, held, q, v, _ = random_case(seed)
            found = kg.impact(model, held, q, v, restitution=0.3)
            after, impulses = reference.impact(model, held, q[2], v[2], 0.3)
            assert relative(found.v[2], after) < 1e-11
            assert relative(found.impulses[2], impulses) < 1e-11

    def test_elastic_impacts_keep_energy_and_plastic_ones_lose_it(self):
        model, held, q, v, _ = random_case(4)
        before = kg.kinetic_energy(model, q, v)
        elastic = kg.impact(model, held, q, v, restitution=1.0)
        np.testing.assert_allclose(kg.kinetic_energy(model, q, elastic.v), before, rtol=1e-11)
        plastic = kg.impact(model, held, q, v)
        lost = before - kg.kinetic_energy(model, q, plastic.v)
        np.testing.assert_allclose(lost, kg.kinetic_energy(model, q, v - plastic.v), rtol=1e-10)  # Carnot
        np.testing.assert_allclose(held.velocity(q, plastic.v), 0, atol=1e-11)

    def test_restitution_of_each_row(self):
        model, held, q, v, _ = random_case(5)
        e = np.linspace(0, 1, held.m)
        after = kg.impact(model, held, q, v, restitution=e)
        np.testing.assert_allclose(held.velocity(q, after.v), -e * held.velocity(q, v), atol=1e-11)

    def test_momentum_along_a_wall_is_kept(self):
        # a free body that hits a smooth wall: the impulse has the wall's normal alone
        builder = kg.ModelBuilder("box")
        builder.add("root", None, kg.free(), link="box", inertia=kg.Inertia.box(2.0, [0.1, 0.2, 0.3]))
        model = builder.build()
        q, v = np.random.default_rng(8).normal(size=(2, model.nv))
        wall = kg.ConstraintSet(model, [kg.Contact("box", [0.1, 0.2, 0.3], [[0.6, 0, 0.8]])])
        after = kg.impact(model, wall, q, v, restitution=0.5)
        change = kg.momentum(model, q, after.v).linear - kg.momentum(model, q, v).linear
        np.testing.assert_allclose(change, after.impulses[0] * np.array([0.6, 0, 0.8]), atol=1e-12)


class TestRedundant:
    """Rows that follow from others: named, or forces of least norm."""

    def planar(self):
        """A planar arm whose tip is pinned in space: the row of z moves nothing, and two pins are one too many."""
        arm = kg.samples.two_link(gravity=(0, -9.81, 0))
        return arm, np.array([0.4, -1.1]), np.array([0.3, 0.2]), np.array([1.0, -2.0])

    def test_rows_are_named(self):
        arm, q, v, tau = self.planar()
        tip = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="xyz", name="tip")])
        message = "row 'tip.z' of the constraints is singular: no joint moves"
        for method in METHODS:
            with pytest.raises(kg.SingularError, match=re.escape(message)):
                kg.constrained_dynamics(arm, tip, q, v, tau, method=method)
        twice = [kg.Contact("forearm", directions="y", name=name) for name in ("tip", "again")]
        message = "row 'again.y' of the constraints is redundant in state 0: it follows from 'tip.y'"
        states = np.stack([q, q, q])
        straight = kg.ConstraintSet(arm, twice)
        for method in METHODS:
            with pytest.raises(kg.SingularError, match=message):
                kg.constrained_dynamics(arm, straight, states, v, tau, method=method)
        # stretched along x, x and the two joints: singular in one state of a batch only
        pin = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="xy", name="tip")])
        states[2] = 0.0
        with pytest.raises(kg.SingularError, match="in state 2"):
            kg.constrained_dynamics(arm, pin, states, v, tau)
        with pytest.raises(kg.SingularError, match="in state 2"):
            kg.impact(arm, pin, states, v)

    def test_least_norm(self):
        arm, q, v, tau = self.planar()
        one = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y", name="tip")])
        two = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y", name=name) for name in ("tip", "again")])
        alone = kg.constrained_dynamics(arm, one, q, v, tau)
        for method in METHODS:
            shared = kg.constrained_dynamics(arm, two, q, v, tau, method=method, redundant="least-squares")
            np.testing.assert_allclose(shared.a, alone.a, rtol=1e-10)
            np.testing.assert_allclose(shared.forces, np.repeat(alone.forces / 2, 2), rtol=1e-10)

    def test_a_constraint_that_nothing_resists_needs_the_whole_system(self):
        # M is singular, the whole system is not: a massless slider that is held
        builder = kg.ModelBuilder("gear")
        builder.add("wheel", None, kg.revolute("z"), inertia=kg.Inertia.point(1.0, [0.5, 0, 0]))
        builder.add("idler", None, kg.revolute("z"))
        model = builder.build()
        held = kg.ConstraintSet(model, [kg.Coupling("idler", "wheel", 0.3)])
        state = [0.3, 0.09], [1.0, 0.3], [1.0, 2.0]
        with pytest.raises(kg.SingularError, match="nothing resists joint 'idler'"):
            kg.constrained_dynamics(model, held, *state)
        direct = kg.constrained_dynamics(model, held, *state, method="direct")
        null = kg.constrained_dynamics(model, held, *state, method="null-space")
        np.testing.assert_allclose(direct.a, null.a, rtol=1e-12)
        np.testing.assert_allclose(direct.a, np.array([1.0, 0.3]) * (1.0 + 0.3 * 2.0) / 0.25, rtol=1e-12)
        np.testing.assert_allclose(direct.forces, -2.0, rtol=1e-12)  # the idler's own torque, passed on


def test_long_chains():
    # the condition number of M is 3e7, and that of the whole system not less: two formulations differ by 1e-11
    chain = kg.samples.spatial_chain(40)
    q, v, tau = 0.3 * np.random.default_rng(1).normal(size=(3, chain.n))
    held = kg.ConstraintSet(chain, [kg.Contact(chain.link_names[-1], [0, 0, -1.0])]).held_at(q)
    found, other = (kg.constrained_dynamics(chain, held, q, v, tau, method=method) for method in METHODS[:2])
    assert relative(found.a, other.a) < 1e-10
    assert relative(found.forces, other.forces) < 1e-11
    np.testing.assert_allclose(held.acceleration(q, v, found.a), 0, atol=1e-12 * np.abs(found.a).max())


def test_far_from_the_origin():
    # what ties links to each other, or to a place near them, does not notice that all is 4000 km away
    near = kg.samples.puma560()
    q, v, tau = np.random.default_rng(2).normal(size=(3, near.n))
    placement = near.placement.copy()
    placement[0] = kg.translate(1e6, -2e6, 3e6) @ placement[0]
    first, *_, third, wrist, hand = near.link_names

    def found(model):
        tip, turn = kg.Contact(hand, [0.1, 0, 0.2], "xz"), kg.Loop(wrist, [0, 0.1, 0], first, [0.3, 0, 0], "X")
        held = kg.ConstraintSet(model, [tip, turn, kg.Distance(third, [0.1, 0, 0], first, [2, 0, 0], 1.7)])
        return kg.constrained_dynamics_derivatives(model, held.held_at(q), q, v, tau)

    here, there = found(near), found(near.replace(placement=placement))
    for name, x in vars(here).items():
        assert relative(getattr(there, name), x) < 1e-9


class TestCalls:
    """The same bits however it is called."""

    def test_batches_threads_and_single_states(self, held_arm):
        model, held = held_arm
        q, v, tau = np.random.default_rng(7).normal(size=(3, 2, 400, model.n))
        whole = kg.constrained_dynamics(model, held, q, v, tau, threads=1)
        again = kg.constrained_dynamics(model, held, q, v, tau, threads=2)
        assert whole == again
        one = kg.constrained_dynamics(model, held, q[1, 7], v[1, 7], tau[1, 7])
        assert one.a.tobytes() == whole.a[1, 7].tobytes()
        assert one.forces.tobytes() == whole.forces[1, 7].tobytes()
        spread = kg.constrained_dynamics(model, held, q[0, 0], v[:, :3], tau[1, 7])
        assert spread.a.shape == (2, 3, model.n)
        read_only = q[::2, ::3]
        read_only.flags.writeable = False
        strided = kg.constrained_dynamics(model, held, read_only, v[::2, ::3], tau[::2, ::3])
        assert strided.a.tobytes() == whole.a[::2, ::3].tobytes()
        empty = kg.constrained_dynamics(model, held, q[:0], v[:0], tau[:0])
        assert empty.a.shape == (0, 400, model.n)
        assert empty.forces.shape == (0, 400, held.m)

    def test_two_sets_of_one_model_interleaved(self, held_arm):
        model, held = held_arm
        other = kg.ConstraintSet(model, [kg.Given(model.joint_names[0])])
        state = np.random.default_rng(8).normal(size=(3, model.n))
        first = kg.constrained_dynamics(model, held, *state)
        assert kg.constrained_dynamics(model, other, *state).forces.shape == (1,)
        assert kg.constrained_dynamics(model, held, *state) == first
        law = kg.constrained_dynamics(model, held, *state, stabilisation=2.0)
        assert kg.constrained_dynamics(model, held, *state) == first
        assert law != first


class TestRefused:
    def test_arguments(self, held_arm):
        model, held = held_arm
        zero = np.zeros(model.n)

        def refused(message, *state, model=model, constraints=held, error=kg.InputError, **options):
            with pytest.raises(error, match=re.escape(message)):
                kg.constrained_dynamics(model, constraints, *(state or (zero, zero, zero)), **options)

        refused("`model` is a str", model="arm")
        refused("`constraints` is [Contact(", constraints=[kg.Contact("hand")])
        refused("`constraints` are of model", model=kg.samples.two_link())
        refused("`q` has shape (5,)", np.zeros(5), zero, zero)
        refused("`v` at index (0,) is nan", zero, [np.nan, *zero[1:]], zero)
        refused("`tau` holds", zero, zero, "none")
        refused("`method` is 'fast'", method="fast")
        refused("`redundant` is None", redundant=None)
        refused("`stabilisation` is -1", stabilisation=-1)
        refused("`stabilisation` is (1, 2, 3)", stabilisation=(1, 2, 3))
        refused("`stabilisation` is nan", stabilisation=np.nan)
        refused("`loads` is a dict", loads={})
        refused("`threads` is 0", threads=0)
        for method in METHODS[1:]:
            refused("`v` at index (0,) is nan", zero, [np.nan, *zero[1:]], zero, method=method)

    def test_restitution(self, held_arm):
        model, held = held_arm
        zero = np.zeros(model.n)
        for wrong in (-0.1, 1.5, np.nan, [0.1], "much", None):
            with pytest.raises(kg.InputError, match="`restitution`"):
                kg.impact(model, held, zero, zero, restitution=wrong)

    def test_overflow_is_named(self, held_arm):
        model, held = held_arm
        zero = np.zeros(model.n)
        with pytest.raises(kg.InputError, match="overflow"):
            kg.constrained_dynamics(model, held, zero + 0.3, np.full(model.n, 1e200), zero)

    def test_a_joint_that_nothing_resists_is_named(self):
        human = kg.samples.human43()
        held = kg.ConstraintSet(human, [kg.Contact("left_foot")])
        with pytest.raises(kg.SingularError, match=r"nothing resists joint 'neck\.z'"):
            kg.constrained_dynamics(human, held, *np.zeros((3, 43)))
