"""Derivatives of constrained dynamics and of impacts against complex steps of a dense oracle, and what follows.

Along a random direction of q, v and τ at once, a complex step of the oracle is exact to rounding.  That rounding is
enlarged by the condition of the system; on the cases below results agree to 1e-10 of the largest and better.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad._engine import memory
from kinegrad.constraints import assemble, project_velocity
from tests.constrained.test_dynamics import LAW, loads_of, random_case, relative
from tests.constraints.choice import independent_set
from tests.mixed import mixed_state, mixed_tree
from tests.reference import constrained as reference
from tests.reference.oracle import STEP, numerical_derivative

EXACT = 1e-10


def check_direction(model, held, q, v, tau, *, seed=0, loads=None, rank=None, law=LAW):
    """Derivatives of one state along a random direction, times that direction, against the oracle's."""
    redundant = "error" if rank is None else "least-squares"
    d = kg.constrained_dynamics_derivatives(model, held, q, v, tau, loads=loads, stabilisation=law, redundant=redundant)
    given = [] if loads is None else [loads.force, loads.point, loads.torque]
    dq, dv, dtau = D = np.random.default_rng([seed, 35]).normal(size=(3, model.n))
    moved = [x + 1j * STEP * dx for x, dx in zip((q, v, tau), D, strict=True)]
    a, f = reference.constrained_dynamics(model, held, *moved, *given, stabilisation=law, rank=rank)
    assert relative(d.a, a.real) < EXACT
    assert relative(d.forces, f.real) < EXACT
    assert relative(d.da_dq @ dq + d.da_dv @ dv + d.da_dtau @ dtau, a.imag / STEP) < EXACT
    assert relative(d.dforces_dq @ dq + d.dforces_dv @ dv + d.dforces_dtau @ dtau, f.imag / STEP) < EXACT
    # rows that follow from others contradict them where they are to bounce off differently
    e = 0.3 if rank is None else np.linspace(0.0, 1.0, held.m)
    hit = kg.impact_derivatives(model, held, q, v, restitution=e, redundant=redundant)
    after, impulses = reference.impact(model, held, *moved[:2], e, rank)
    size = np.abs(after.imag / STEP).max() + np.abs(dv).max()
    assert np.abs(hit.v - after.real).max() < EXACT * size
    assert np.abs(hit.dv_dq @ dq + hit.dv_dv @ dv - after.imag / STEP).max() < EXACT * size
    assert relative(hit.dimpulses_dq @ dq + hit.dimpulses_dv @ dv, impulses.imag / STEP) < EXACT


def closed_state(model, held, seed, size=0.3):
    """A configuration in which constraints are met, speeds that agree with them, and torques."""
    dq, v, tau = size * np.random.default_rng([seed, 36]).normal(size=(3, model.n))
    q = assemble(model, held, dq)
    return q, project_velocity(model, held, q, v), 10 * tau


def rod_pendulum():
    model = kg.samples.double_pendulum()
    last = model.link_names[-1]
    return model, kg.ConstraintSet(model, [kg.Distance(last, [0, 0, -0.2], None, [0.5, 0, -0.4], 0.9)])


def standing(feet):
    """The human with feet welded to the floor where they are in a bent posture; limbs 0.1 m thick, for slender ones
    have no inertia about themselves."""
    human = kg.samples.human43(thickness=0.1)
    q, v, tau = 0.3 * np.random.default_rng(37).normal(size=(3, human.n))
    T = kg.forward_kinematics(human, q).transform
    welds = [kg.Loop(foot, other_placement=T[human.link_names.index(foot)]) for foot in feet]
    held = kg.ConstraintSet(human, welds)
    return human, held, q, project_velocity(human, held, q, v), 10 * tau


MECHANISMS = {
    "four_bar": kg.samples.four_bar,
    "slider_crank": kg.samples.slider_crank,
    "stewart_platform": kg.samples.stewart_platform,
    "cart_on_rail": lambda: kg.samples.cart_pendulum(constrained=True),
    "rod_pendulum": rod_pendulum,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name):
    model, held = MECHANISMS[name]()
    for seed in range(3):
        check_direction(model, held, *closed_state(model, held, seed), seed=seed)


@pytest.mark.parametrize("feet", [["left_foot"], ["left_foot", "right_foot"]], ids=len)
def test_human_on_its_feet(feet):
    check_direction(*standing(feet))


def test_a_hundred_random_trees():
    for seed in range(100):
        model, held, q, v, tau = random_case(seed, states=1)
        check_direction(model, held, q[0], v[0], tau[0], seed=seed, law=LAW if seed % 2 else (0.0, 0.0))


def test_every_entry_with_loads():
    model, held, q, v, tau = random_case(11)
    loads = loads_of(model, 5)
    d = kg.constrained_dynamics_derivatives(model, held, q, v, tau, loads=loads, stabilisation=LAW)
    state, given = {"q": q[1], "v": v[1], "tau": tau[1]}, [x[1] for x in (loads.force, loads.point, loads.torque)]
    for name, x in state.items():

        def solution(x, name=name):
            moved = (state | {name: x}).values()
            return np.concatenate(reference.constrained_dynamics(model, held, *moved, *given, stabilisation=LAW))

        wanted = numerical_derivative(solution, x)
        assert relative(getattr(d, f"da_d{name}")[1], wanted[: model.n]) < EXACT
        assert relative(getattr(d, f"dforces_d{name}")[1], wanted[model.n :]) < EXACT


class TestRedundant:
    """Forces of least norm, where the rank of the constraints stays what it is near the state."""

    def test_a_planar_mechanism_hinged_in_space(self):
        # a hinge locks five directions, of which the plane leaves two to lock
        model, held = kg.samples.four_bar()
        pin = held["pin"]
        hinge = kg.ConstraintSet(model, [kg.Loop(pin.link, other=pin.other, directions="xyzXZ")])
        q, v, tau = closed_state(model, held, 1)
        check_direction(model, hinge, q, v, tau, rank=2)

    def test_a_constraint_said_three_times(self):
        for seed in range(5):
            model, held, q, v, tau = random_case(seed, states=1)
            again = [kg.Loop(one.link, one.placement, one.other, one.other_placement, one.directions)
                     for one in held if isinstance(one, kg.Loop)]  # fmt: skip
            more = kg.ConstraintSet(model, [*held, *again, *again])
            check_direction(model, more, q[0], v[0], tau[0], seed=seed, rank=held.m)

    def test_rows_that_contradict_each_other(self):
        # two points of an arm cannot both be held while it moves: φ̈ has the least squares, in directions that turn
        arm = kg.samples.two_link()
        pins = [kg.Contact("forearm", directions="xyz"), kg.Contact("upper_arm", [0.1, 0.2, 0], directions="xy")]
        held = kg.ConstraintSet(arm, pins)
        for seed in range(3):
            q, v, tau = np.random.default_rng([seed, 39]).normal(size=(3, 2))
            found = kg.constrained_dynamics(arm, held, q, v, tau, redundant="least-squares")
            assert np.abs(held.acceleration(q, v, found.a)).max() > 0.01
            for law in ((0.0, 0.0), LAW):
                check_direction(arm, held, q, v, tau, seed=seed, rank=2, law=law)


class TestCoordinates:
    """Couplings and quaternions: by dense matrices, checked against differences of sixth order along a direction."""

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_mixed_trees(self, seed):
        model = mixed_tree(seed)
        q, v, tau = mixed_state(model, seed)
        held = independent_set(model, q, seed)
        assert held.m
        d = kg.constrained_dynamics_derivatives(model, held, q, v, tau, stabilisation=LAW)
        hit = kg.impact_derivatives(model, held, q, v, restitution=0.3)
        dq, dv, dtau = np.random.default_rng([seed, 38]).normal(size=(3, model.nv))

        def at(h):
            moved = kg.integrate(model, q, h * dq), v + h * dv, tau + h * dtau
            found = kg.constrained_dynamics(model, held, *moved, stabilisation=LAW)
            after = kg.impact(model, held, *moved[:2], restitution=0.3)
            return [found.a, found.forces, after.v, after.impulses]

        # the difference of sixth order is good to 6e-11 of the largest
        h = 1e-3
        far, near, wide = (
            [(x - y) / (2 * k * h) for x, y in zip(at(k * h), at(-k * h), strict=True)] for k in (1, 2, 3)
        )
        slope = [1.5 * x - 0.6 * y + 0.1 * z for x, y, z in zip(far, near, wide, strict=True)]
        along = [
            d.da_dq @ dq + d.da_dv @ dv + d.da_dtau @ dtau,
            d.dforces_dq @ dq + d.dforces_dv @ dv + d.dforces_dtau @ dtau,
            hit.dv_dq @ dq + hit.dv_dv @ dv,
            hit.dimpulses_dq @ dq + hit.dimpulses_dv @ dv,
        ]
        for x, y in zip(along, slope, strict=True):
            assert relative(x, y) < 1e-9

    def test_the_dense_way_is_the_kernels(self):
        # least squares go the same dense way, on models that kernels take
        model, held, q, v, tau = random_case(12)
        kernel = kg.constrained_dynamics_derivatives(model, held, q, v, tau, stabilisation=LAW)
        dense = kg.constrained_dynamics_derivatives(
            model, held, q, v, tau, stabilisation=LAW, redundant="least-squares"
        )
        for name, x in vars(kernel).items():
            assert relative(getattr(dense, name), x) < EXACT


def test_a_long_chain_closed_into_a_ring():
    # tables of a set once took time that grew with n³ in Python: minutes for this chain
    n, builder, last = 400, kg.ModelBuilder("ring"), None
    rod = kg.Inertia.rod(0.1, [0, 0, 0], [0.1, 0, 0])
    for k in range(n):
        place = [0.1 if k else 0.0, 0, 0]
        last = builder.add(f"j{k}", last, kg.revolute("y"), link=f"l{k}", placement=place, inertia=rod, armature=1.0)
    ring = builder.build()
    held = kg.ConstraintSet(ring, [kg.Loop(f"l{n - 1}", [0.1, 0, 0], directions="xz")])
    q, v, tau = np.random.default_rng(40).normal(size=(3, n))
    kernel, dense = (
        kg.constrained_dynamics_derivatives(ring, held, q, v, tau, redundant=way) for way in ("error", "least-squares")
    )
    for name, x in vars(kernel).items():
        assert relative(getattr(dense, name), x) < EXACT


def test_symmetry_and_what_constraints_leave():
    # da/dτ is symmetric and moves nothing that is held; dforces/dτ is what constraints take of a torque
    model, held, q, v, tau = random_case(13)
    d = kg.constrained_dynamics_derivatives(model, held, q, v, tau)
    G, M = held.jacobian(q), kg.mass_matrix(model, q)
    assert np.array_equal(d.da_dtau, np.swapaxes(d.da_dtau, -1, -2))
    np.testing.assert_allclose(G @ d.da_dtau, 0, atol=1e-11 * np.abs(d.da_dtau).max())
    balance = M @ d.da_dtau - np.swapaxes(G, -1, -2) @ d.dforces_dtau
    np.testing.assert_allclose(balance, np.broadcast_to(np.eye(model.n), M.shape), atol=1e-10)


def test_zeros_are_exact():
    # two arms, one held: nothing of the other matters to the constraint, nor the other way round
    def arm(builder, name):
        bar = kg.Inertia.cylinder(1.0, 0.05, [0, 0, 0], [0.4, 0, 0])
        parent = None
        for k, axis in enumerate("zyzx"):
            parent = builder.add(f"{name}{k}", parent, kg.revolute(axis), placement=[0.4, 0, 0], inertia=bar)

    builder = kg.ModelBuilder("two arms")
    arm(builder, "left")
    arm(builder, "right")
    model = builder.build()
    held = kg.ConstraintSet(model, [kg.Contact(model.link_names[3], directions="xy")])
    q, v, tau = np.random.default_rng(3).normal(size=(3, 6, model.n))
    d = kg.constrained_dynamics_derivatives(model, held, q, v, tau, stabilisation=LAW)
    hit = kg.impact_derivatives(model, held, q, v)
    for x in (d.da_dq, d.da_dv, d.da_dtau, hit.dv_dq, hit.dv_dv):
        assert not x[:, :4, 4:].any()
        assert not x[:, 4:, :4].any()
    for x in (d.dforces_dq, d.dforces_dv, d.dforces_dtau, hit.dimpulses_dq, hit.dimpulses_dv):
        assert not x[:, :, 4:].any()
        assert x[:, :, :4].any()
    assert np.array_equal(hit.dv_dv[:, 4:, 4:], np.broadcast_to(np.eye(4), (6, 4, 4)))


def test_loads():
    # accelerations and forces are linear in forces and torques of loads; points by complex step
    model, held, q, v, tau = random_case(14, states=1)
    loads = kg.Loads(*np.random.default_rng(4).normal(size=(3, model.n, 3)))
    d = kg.constrained_dynamics_load_derivatives(model, held, q[0], loads=loads)
    given = {"force": loads.force, "point": loads.point, "torque": loads.torque}
    for name in given:

        def solution(x, name=name):
            moved = (given | {name: x}).values()
            return np.concatenate(reference.constrained_dynamics(model, held, q[0], v[0], tau[0], *moved))

        wanted = numerical_derivative(solution, given[name])
        assert relative(getattr(d, f"da_d{name}"), wanted[: model.n]) < EXACT
        assert relative(getattr(d, f"dforces_d{name}"), wanted[model.n :]) < EXACT


def test_force_elements():
    # compiled: at torques τ + Q; the dense way knows elements only through inverse dynamics and its derivatives
    model, held, q, v, tau = random_case(16)
    links = model.link_names
    strap = kg.SpringDamper(links[-1], [0.1, 0, 0], links[0], [0, 0.5, 3], stiffness=40.0, damping=3.0, rest_length=0.3)
    sprung = model.replace(elements={"strap": strap})
    held = kg.ConstraintSet(sprung, held)
    found = kg.constrained_dynamics_derivatives(sprung, held, q, v, tau, stabilisation=LAW)
    value = kg.constrained_dynamics(sprung, held, q, v, tau, stabilisation=LAW)
    assert value.a.tobytes() == found.a.tobytes()
    force = kg.bias_forces(model, q, v) - kg.bias_forces(sprung, q, v)
    plain = kg.constrained_dynamics(model, kg.ConstraintSet(model, held), q, v, tau + force, stabilisation=LAW)
    assert relative(found.a, plain.a) < EXACT
    dense = kg.constrained_dynamics_derivatives(sprung, held, q, v, tau, stabilisation=LAW, redundant="least-squares")
    for name, x in vars(found).items():
        assert relative(getattr(dense, name), x) < EXACT
    after = kg.impact(sprung, held, q, v)
    assert after == kg.impact(model, kg.ConstraintSet(model, held), q, v)


class TestMethods:
    """Derivatives by the dense formulations: the same, and where constraints alone resist a joint."""

    def every(self, model, held, q, v, tau, **how):
        """All results of all functions that take a method."""
        links = [name for name, mass in zip(model.link_names, model.mass, strict=True) if mass]
        design = kg.Design(model, [f"{links[0]}.mass", f"{model.joint_names[0]}.placement.x"])
        weights = {"w_a": np.cos(np.arange(model.nv)), "w_forces": np.sin(np.arange(1.0, held.m + 1))}
        found = [
            kg.constrained_dynamics_derivatives(model, held, q, v, tau, stabilisation=LAW, **how),
            kg.constrained_dynamics_load_derivatives(model, held, q, **how),
            kg.constrained_dynamics_design_derivatives(design, held, q, v, tau, stabilisation=LAW, **how),
            kg.impact(model, held, q, v, restitution=0.3, **how),
            kg.impact_derivatives(model, held, q, v, restitution=0.3, **how),
            kg.impact_design_derivatives(design, held, q, v, restitution=0.3, **how),
            kg.constrained_dynamics_hessian(model, held, q, v, tau, **weights, stabilisation=LAW, **how),
        ]
        return [(f"{type(x).__name__}.{name}", y) for x in found for name, y in vars(x).items()]

    @pytest.mark.parametrize("method", ["null-space", "direct"])
    def test_the_same(self, method):
        model, held, *state = random_case(17, states=2)
        for how in ({}, {"redundant": "least-squares"}):
            plain, other = self.every(model, held, *state, **how), self.every(model, held, *state, method=method, **how)
            for (name, x), (_, y) in zip(plain, other, strict=True):
                assert np.abs(x - y).max() <= EXACT * max(np.abs(x).max(), 1e-3), name

    def geared(self, mass):
        """An arm with a wheel of little or no mass, which a gear turns with the arm."""
        builder = kg.ModelBuilder("geared")
        bar = kg.Inertia.cylinder(1.5, 0.05, [0, 0, 0], [0.4, 0, 0])
        builder.add("upper", None, kg.revolute("z"), inertia=bar)
        builder.add("lower", "upper", kg.revolute("y"), placement=[0.4, 0, 0], inertia=bar)
        wheel = kg.Inertia.sphere(mass, 0.1) if mass else kg.Inertia.point(0.0, [0, 0, 0])
        builder.add("idler", "upper", kg.revolute("x"), placement=[0.1, 0, 0], inertia=wheel)
        model = builder.build()
        rows = [kg.Coupling("idler", "lower", 0.3, 0.1), kg.Contact("lower", [0.4, 0, 0], "y", other_point=[0, 0.2, 0])]
        return model, kg.ConstraintSet(model, rows)

    @pytest.mark.parametrize("method", ["null-space", "direct"])
    def test_a_joint_that_constraints_alone_resist(self, method):
        # nearly as with a wheel of a milligram, by the sparse factors, which would lose digits of a lighter one
        state = [0.3, 0.25, 0.175], [2.0, 1.0, 0.3], [1.0, 4.0, 0.2]
        model, held = self.geared(0.0)
        with pytest.raises(kg.SingularError, match="nothing resists joint 'idler'"):
            kg.constrained_dynamics_derivatives(model, held, *state)
        light, tied = self.geared(1e-6)
        for (name, x), (_, y) in zip(
            self.every(model, held, *state, method=method), self.every(light, tied, *state), strict=True
        ):
            assert np.abs(x - y).max() <= 1e-6 * max(np.abs(y).max(), 1e-3), name

    def test_what_nothing_resists_is_named_by_all(self):
        # it once gave accelerations of 1e17 without a word
        human = kg.samples.human43()
        held = kg.ConstraintSet(human, [kg.Contact("left_foot")])
        state = 0.3 * np.random.default_rng(0).normal(size=(3, human.n))
        for method in ("range-space", "null-space", "direct"):
            for redundant in ("error", "least-squares"):
                how = {"method": method, "redundant": redundant}
                with pytest.raises(kg.SingularError, match=r"nothing resists joint 'neck\."):
                    kg.constrained_dynamics(human, held, *state, **how)
                with pytest.raises(kg.SingularError, match=r"nothing resists joint 'neck\."):
                    kg.constrained_dynamics_derivatives(human, held, *state, **how)

    def test_methods_that_are_none(self):
        model, held, q, v, tau = random_case(17, states=1)
        for call in (
            lambda how: kg.constrained_dynamics_derivatives(model, held, q, v, tau, method=how),
            lambda how: kg.constrained_dynamics_load_derivatives(model, held, q, method=how),
            lambda how: kg.impact(model, held, q, v, method=how),
            lambda how: kg.impact_derivatives(model, held, q, v, method=how),
            lambda how: kg.constrained_dynamics_hessian(model, held, q, v, tau, method=how),
        ):
            for wrong in ("fast", None, 1):
                with pytest.raises(kg.InputError, match="`method`"):
                    call(wrong)


def test_an_empty_set():
    model, _, q, v, tau = random_case(1)
    none = kg.ConstraintSet(model, [])
    d, free = (
        kg.constrained_dynamics_derivatives(model, none, q, v, tau),
        kg.forward_dynamics_derivatives(model, q, v, tau),
    )
    assert all(getattr(d, name).tobytes() == x.tobytes() for name, x in vars(free).items())
    assert d.dforces_dq.shape == (5, 0, model.n)
    hit = kg.impact_derivatives(model, none, q, v)
    assert np.array_equal(hit.dv_dv, np.broadcast_to(np.eye(model.n), (5, model.n, model.n)))
    assert not hit.dv_dq.any()


def test_the_same_bits_however_it_is_called(monkeypatch):
    model, held, q, v, tau = random_case(15, states=150)
    whole = kg.constrained_dynamics_derivatives(model, held, q, v, tau, threads=1)
    value = kg.constrained_dynamics(model, held, q, v, tau)
    assert whole.a.tobytes() == value.a.tobytes()
    assert whole.forces.tobytes() == value.forces.tobytes()
    assert kg.constrained_dynamics_derivatives(model, held, q, v, tau, threads=2) == whole
    for stream in ("1", "0"):  # past the caches, and not
        monkeypatch.setattr(memory, "_STREAM", stream)
        assert kg.constrained_dynamics_derivatives(model, held, q, v, tau) == whole
    one = kg.constrained_dynamics_derivatives(model, held, q[7], v[7], tau[7])
    assert all(getattr(one, name).tobytes() == x[7].tobytes() for name, x in vars(whole).items())
    for e in (0.0, 0.5):  # without restitution, one state goes straight to the kernel
        hit = kg.impact_derivatives(model, held, q, v, restitution=e)
        one = kg.impact_derivatives(model, held, q[7], v[7], restitution=e)
        assert all(getattr(one, name).tobytes() == x[7].tobytes() for name, x in vars(hit).items())
        after = kg.impact(model, held, q, v, restitution=e)
        assert hit.v.tobytes() == after.v.tobytes()
        assert kg.impact(model, held, q[7], v[7], restitution=e).v.tobytes() == after.v[7].tobytes()


def test_singular_states_are_named():
    arm = kg.samples.two_link()
    pin = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="xy", name="tip")])
    q = np.array([[0.3, 0.4], [0.3, 0.4], [0.0, 0.0]])
    for call in (
        lambda: kg.constrained_dynamics_derivatives(arm, pin, q, [0, 0], [0, 0]),
        lambda: kg.impact_derivatives(arm, pin, q, [0, 0]),
        lambda: kg.constrained_dynamics_load_derivatives(arm, pin, q),
    ):
        with pytest.raises(kg.SingularError, match=r"of the constraints is .* in state 2"):
            call()
