"""Force elements between links, in dynamics and its derivatives: against the oracle, and in identities."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError, SingularError
from tests.conftest import tree
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.reference import coordinates, elements, oracle

CLOSE = 1e-12  # relative to the largest number: a few hundred roundings in a row


def sprung_tree(seed, largest=9):
    """A random tree with three elements."""
    model = tree(seed, largest=largest)
    return model.replace(elements=elements.random_elements(model, seed))


def away(found, expected):
    """The largest difference, relative to the largest number."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def test_forces_of_50_random_trees():
    """τ, energies, ∂τ/∂q and ∂τ/∂v are those of the oracle; what an element adds is looked at by itself."""
    for seed in range(50):
        model = sprung_tree(seed)
        rows, plain = elements.rows(model), model.without_elements
        q, v, a = np.random.default_rng(seed).normal(size=(3, model.n))
        found, without = (kg.inverse_dynamics_derivatives(m, q, v, a) for m in (model, plain))
        Q = elements.forces(model, rows, q, v)
        by_q = oracle.numerical_derivative(lambda x: elements.forces(model, rows, x, v), q)  # noqa: B023
        by_v = oracle.numerical_derivative(lambda x: elements.forces(model, rows, q, x), v)  # noqa: B023
        assert away(found.tau, without.tau - Q) < CLOSE
        assert away(found.dtau_dq, without.dtau_dq - by_q) < CLOSE
        assert away(found.dtau_dv, without.dtau_dv - by_v) < CLOSE
        assert np.array_equal(found.dtau_da, without.dtau_da)
        energy = kg.potential_energy(plain, q) + elements.energy(model, rows, q)
        assert abs(kg.potential_energy(model, q) - energy) < CLOSE * abs(energy) + 1e-11


def test_forces_are_those_of_the_energy():
    """Without speeds Q is −∂U/∂q, with U of turns by quaternions: another route than that of the kernel."""
    for seed in range(8):
        model = sprung_tree(seed)
        q, zero = np.random.default_rng(seed).normal(size=model.n), np.zeros(model.n)
        slope = oracle.numerical_derivative(lambda x: elements.energy(model, elements.rows(model), x), q)  # noqa: B023
        held = kg.inverse_dynamics(model, q, zero, zero) - kg.inverse_dynamics(model.without_elements, q, zero, zero)
        assert away(held, slope) < 1e-11


def test_coordinates_that_are_not_joints():
    """Couplings and quaternions: τ and its derivatives by complex step of a twin with Euler angles."""
    for seed in range(6):
        model = mixed_tree(seed)
        model = model.replace(elements=elements.random_elements(model, seed))
        rows = elements.rows(model)
        q, v, a = mixed_state(model, seed)
        loads = mixed_loads(model, seed)

        def acting(twin, number, Q, V, rows=rows):
            moved = [(kind, [number[i] if i >= 0 else -1 for i in links], x) for kind, links, x in rows]
            return elements.forces(twin, moved, Q, V)

        given = loads.force, loads.point, loads.torque
        tau = np.real(coordinates.inverse_dynamics(model, q, v, a, *given, acting=acting))
        by_q, by_v, by_a = coordinates.derivatives(model, q, v, a, *given, acting=acting)
        found = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
        assert away(found.tau, tau) < CLOSE
        assert away(found.dtau_dq, by_q) < CLOSE
        assert away(found.dtau_dv, by_v) < CLOSE
        assert away(found.dtau_da, by_a) < CLOSE
        change = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
        assert away(change.a, a) < 1e-10
        assert away(change.da_dq, -np.linalg.solve(by_a, by_q)) < 1e-10
        assert away(change.da_dv, -np.linalg.solve(by_a, by_v)) < 1e-10


def test_all_functions_agree(rng):
    """Forward, hybrid, both methods, products, packed: what each has to do with inverse dynamics and its matrices."""
    model = sprung_tree(3)
    n = model.n
    q, v, a, dq, dv, da, w = rng.normal(size=(7, 5, n))
    d = kg.inverse_dynamics_derivatives(model, q, v, a)
    tau = d.tau
    assert away(kg.inverse_dynamics(model, q, v, a), tau) < 1e-14
    assert away(kg.inverse_dynamics(model, q, v, a, method="lagrange"), tau) < CLOSE
    assert away(kg.bias_forces(model, q, v) + (d.dtau_da @ a[..., None])[..., 0], tau) < CLOSE
    for method in ("aba", "crba"):
        assert away(kg.forward_dynamics(model, q, v, tau, method=method), a) < 1e-10
    change = kg.forward_dynamics_derivatives(model, q, v, tau)
    assert away(change.da_dq, -np.linalg.solve(d.dtau_da, d.dtau_dq)) < 1e-10
    assert away(change.da_dv, -np.linalg.solve(d.dtau_da, d.dtau_dv)) < 1e-10
    mixed = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=model.joint_names[::2])
    assert away(mixed.a, a) < 1e-10
    assert away(mixed.tau, tau) < 1e-10
    assert np.array_equal(mixed.tau[:, 1::2], tau[:, 1::2])  # given ones are returned as they are
    along = sum((m @ x[..., None])[..., 0] for m, x in ((d.dtau_dq, dq), (d.dtau_dv, dv), (d.dtau_da, da)))
    assert away(kg.inverse_dynamics_jvp(model, q, v, a, dq, dv, da), along) < CLOSE
    gradient = kg.inverse_dynamics_vjp(model, q, v, a, w)
    for field, matrix in (("dq", d.dtau_dq), ("dv", d.dtau_dv), ("da", d.dtau_da)):
        assert away(getattr(gradient, field), (w[:, None] @ matrix)[:, 0]) < CLOSE
    packed = kg.inverse_dynamics_derivatives(model, q, v, a, packed=True)
    for field in ("dtau_dq", "dtau_dv", "dtau_da"):
        assert np.array_equal(getattr(packed, field).to_dense(), getattr(d, field))


def test_gravity_momentum_and_mass_have_no_elements(rng):
    """What no force enters, and what is said to be of gravity alone, is that of the model without."""
    model = sprung_tree(3)
    plain, (q, v, a) = model.without_elements, rng.normal(size=(3, model.n))
    assert np.array_equal(kg.gravity_forces(model, q), kg.gravity_forces(plain, q))
    assert np.array_equal(kg.mass_matrix(model, q), kg.mass_matrix(plain, q))
    assert kg.momentum(model, q, v) == kg.momentum(plain, q, v)
    assert np.array_equal(kg.inverse_dynamics_regressor(model, q, v, a), kg.inverse_dynamics_regressor(plain, q, v, a))
    assert kg.inverse_dynamics_load_derivatives(model, q) == kg.inverse_dynamics_load_derivatives(plain, q)
    assert kg.kinetic_energy(model, q, v) == kg.kinetic_energy(plain, q, v)


def two_arms():
    """A trunk with two arms of two joints each, joined by a strap between the hands."""
    builder = kg.ModelBuilder("two arms")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3], com=[0.1, 0.0, 0.0])
    parent = builder.add("trunk", None, kg.revolute("z"), link="trunk", inertia=body)
    for side, y in (("left", 0.3), ("right", -0.3)):
        upper = builder.add(f"{side}.shoulder", parent, kg.revolute("y"), placement=[0, y, 0], inertia=body)
        builder.add(f"{side}.elbow", upper, kg.revolute("x"), placement=[0.3, 0, 0], inertia=body)
        builder.add_frame(f"{side} hand", f"{side}.elbow", kg.translate(0.2, 0.1, 0) @ kg.rotate("z", 0.3))
    builder.add_element("strap", kg.SpringDamper("left hand", [0, 0, 0.1], "right hand", [0.1, 0, 0], 40, 2, 0.2))
    return builder.build()


def test_zeros_are_exact_and_joints_above_both_links_do_not_count(rng):
    """The strap couples both arms; it does nothing to the trunk, and its row and column get exactly nothing."""
    model = two_arms()
    q, v, a = rng.normal(size=(3, 4, model.n))
    d, plain = (kg.inverse_dynamics_derivatives(m, q, v, a) for m in (model, model.without_elements))
    for field in ("dtau_dq", "dtau_dv"):
        extra = getattr(d, field) - getattr(plain, field)
        assert not extra[:, 0].any()
        assert not extra[:, :, 0].any()
        assert extra[:, 1:, 1:].all()
    assert len(model.without_elements.pattern[0]) == 17
    assert len(model.pattern[0]) == 25
    assert np.array_equal(d.tau[:, 0], plain.tau[:, 0])
    assert not kg.inverse_dynamics_derivatives(model, q, v, a).dtau_da[:, 1, 3].any()


def test_frames_are_places_in_links(rng):
    """An element between frames is one between points of their links."""
    model = two_arms()
    ends = [kg.Frame(f.link, f.placement @ kg.translate(*x)) for f, x in
            ((model.frames["left hand"], (0, 0, 0.1)), (model.frames["right hand"], (0.1, 0, 0)))]  # fmt: skip
    strap = kg.SpringDamper(ends[0].link, ends[0].placement[:3, 3], ends[1].link, ends[1].placement[:3, 3], 40, 2, 0.2)
    q, v, a = rng.normal(size=(3, model.n))
    expected = kg.inverse_dynamics(model.replace(elements={"strap": strap}), q, v, a)
    assert away(kg.inverse_dynamics(model, q, v, a), expected) < 1e-14


def test_far_from_the_origin(rng):
    """A mechanism 10 km away has the same forces: nothing is measured from the world's origin."""
    model = two_arms()
    far = model.replace(placement={"trunk": kg.translate(1e4, -2e4, 3e4)})
    state = rng.normal(size=(3, model.n))
    one, two = (kg.inverse_dynamics_derivatives(m, *state) for m in (model, far))
    assert away(two.tau, one.tau) < 1e-14
    assert away(two.dtau_dq, one.dtau_dq) < 1e-14


def test_a_long_chain_with_a_spring_from_end_to_end(rng):
    """300 joints on the way, against the oracle's Jacobians in the world."""
    model = kg.samples.multi_pendulum(300)
    model = model.replace(elements={"s": kg.SpringDamper(model.link_names[-1], [0, 0, 0], None, [1, 2, 3], 5, 1, 1)})
    q, v = rng.normal(size=(2, model.n)) * 0.1
    found = kg.bias_forces(model, q, v) - kg.bias_forces(model.without_elements, q, v)
    assert away(found, -elements.forces(model, elements.rows(model), q, v)) < 1e-10  # bias of 300 links cancels


def test_springs_whose_ends_meet():
    """Without rest length and damper a spring is linear, there too; others have no direction, and the error says so."""
    ball = kg.ModelBuilder("ball", gravity=(0, 0, 0))
    ball.add("at", None, kg.free()[:3], link="bob", inertia=kg.Inertia.point(2.0, [0, 0, 0]), damping=0.0)
    bob = ball.build()
    zero = np.zeros(3)
    linear = bob.replace(elements={"s": kg.SpringDamper("bob", stiffness=50.0)})
    d = kg.inverse_dynamics_derivatives(linear, zero, zero, zero)
    assert np.array_equal(d.tau, zero)
    assert np.array_equal(d.dtau_dq, 50.0 * np.eye(3))
    design = kg.Design(linear, ["s.stiffness", "s.point.x"])
    assert np.array_equal(kg.inverse_dynamics_design_derivatives(design, zero, zero, zero)[:, 1], [50.0, 0, 0])
    for numbers in ({"rest_length": 0.1}, {"damping": 1.0}):
        model = bob.replace(elements={"s": kg.SpringDamper("bob", stiffness=50.0, **numbers)})
        q = np.array([[1.0, 0, 0], zero])
        with pytest.raises(SingularError, match="ends of element 's' of model 'ball' coincide in state 1"):
            kg.forward_dynamics(model, q, zero, zero)
    with pytest.raises(SingularError, match="coincide"):
        kg.inverse_dynamics_design_derivatives(kg.Design(linear, ["s.rest_length"]), zero, zero, zero)


def test_a_bushing_at_half_a_turn():
    """κ sin θ of a turn by θ, all the way round; −κ at three quarters of a turn."""
    top = kg.ModelBuilder("top", gravity=(0, 0, 0))
    top.add("hinge", None, kg.revolute("z"), link="disc", inertia=kg.Inertia.box(1, [1, 1, 1]))
    top.add_element("spring", kg.Bushing("disc", stiffness=[0, 0, 0, 1, 2, 3.0], damping=[0, 0, 0, 1, 1, 0.5]))
    model, angles = top.build(), np.linspace(-4, 4, 33)[:, None]
    tau = kg.inverse_dynamics(model, angles, [0.2], [0.0])
    assert np.allclose(tau, 3 * np.sin(angles) + 0.1, atol=1e-14)
    assert np.allclose(kg.potential_energy(model, angles), 6 * np.sin(angles[:, 0] / 2) ** 2, atol=1e-14)


def test_arguments_of_all_sorts(rng):
    """Batches, threads, `out` that overlaps the state, strided arrays, no states, and what is no number."""
    model = two_arms()
    q, v, a = rng.normal(size=(3, 70, model.n))
    tau = kg.inverse_dynamics(model, q, v, a)
    assert np.array_equal(kg.inverse_dynamics(model, q, v, a, threads=2), tau)
    assert np.array_equal([kg.inverse_dynamics(model, *x) for x in zip(q, v, a, strict=True)], tau)
    assert np.array_equal(kg.inverse_dynamics(model, q[::-1], np.asfortranarray(v[::-1]), a[::-1]), tau[::-1])
    assert np.array_equal(kg.inverse_dynamics(model, q[0], v, a[0])[0], tau[0])
    assert kg.inverse_dynamics(model, q[:0], v[:0], a[:0]).shape == (0, model.n)
    own = q.copy()
    assert kg.inverse_dynamics(model, own, v, a, out=own) is own
    assert np.array_equal(own, tau)
    force = tau.copy()
    found = kg.forward_dynamics(model, q, v, force, out=force)
    assert found is force
    assert np.array_equal(found, kg.forward_dynamics(model, q, v, tau))
    for packed in (False, True):
        d = kg.inverse_dynamics_derivatives(model, q, v, a, packed=packed)
        again = kg.inverse_dynamics_derivatives(model, q, v, a, packed=packed)
        assert kg.inverse_dynamics_derivatives(model, v, q, a, packed=packed, out=again) is again
        assert kg.inverse_dynamics_derivatives(model, q, v, a, packed=packed, out=again) == d
    for bad in (None, "1", [np.nan] * model.n, [1.0], np.ma.array(np.ones(model.n), mask=[1, 0, 0, 0, 0])):
        for call in (kg.inverse_dynamics, kg.forward_dynamics, kg.forward_dynamics_derivatives):
            for k in range(3):
                state = [q[0], v[0], a[0]]
                state[k] = bad
                with pytest.raises(InputError, match=r"`(q|v|a|tau)`"):
                    call(model, *state)
    with pytest.raises(InputError, match="overflow"):
        kg.inverse_dynamics(model, q, 1e308 * np.ones(model.n), a)


def test_constrained_dynamics(rng):
    """Elements push what constraints hold: the equations of motion, matrices from public functions, and design."""
    model = two_arms()
    held = kg.ConstraintSet(model, [kg.Contact("left hand", directions="xz")])
    q, v, tau = rng.normal(size=(3, 4, model.n))
    found = kg.constrained_dynamics_derivatives(model, held, q, v, tau)
    G, M = held.jacobian(q), kg.mass_matrix(model, q)
    pushed = tau + (G.swapaxes(-1, -2) @ found.forces[..., None])[..., 0] - kg.bias_forces(model, q, v)
    assert away((M @ found.a[..., None])[..., 0], pushed) < CLOSE
    assert away(kg.constrained_dynamics(model, held, q, v, tau).a, found.a) < 1e-13
    assert away(kg.constrained_dynamics(model, held, q, v, tau, method="direct").forces, found.forces) < 1e-11
    dense = kg.constrained_dynamics_derivatives(model, held, q, v, tau, redundant="least-squares")
    for field, x in vars(found).items():
        assert away(x, getattr(dense, field)) < 1e-10
    plain = kg.ConstraintSet(model.without_elements, held.constraints)
    assert kg.impact(model, held, q, v) == kg.impact(model.without_elements, plain, q, v)
    design = kg.Design(model, ["strap.stiffness", "left hand.placement.x"])
    change = kg.constrained_dynamics_design_derivatives(design, held, q, v, tau)
    for k, h in enumerate((1e-3, 1e-5)):
        moved = [design.at(design.values + x * np.eye(2)[k]).model for x in (-h, h)]
        ends = [kg.constrained_dynamics(m, kg.ConstraintSet(m, held.constraints), q, v, tau) for m in moved]
        assert away(change.da_dp[..., k], (ends[1].a - ends[0].a) / (2 * h)) < 1e-7
        assert away(change.dforces_dp[..., k], (ends[1].forces - ends[0].forces) / (2 * h)) < 1e-7
    driven = model.replace(actuation=model.joint_names[:3])
    same = kg.ConstraintSet(driven, held.constraints)
    a = kg.constrained_dynamics(driven, same, q, v, driven.torques(tau[:, :3])).a
    needed = kg.constrained_inverse_dynamics(driven, same, q, v, a)
    assert away(driven.torques(needed.actuators), needed.tau) < 1e-12


def test_casadi_sees_that_branches_are_coupled(rng):
    """The bridge's sparsity has the entries that the strap adds."""
    pytest.importorskip("casadi")
    from kinegrad.bridges import to_casadi

    model, state = two_arms(), rng.normal(size=(3, 5))
    exact = kg.inverse_dynamics_derivatives(model, *state)
    by_q, _, _ = to_casadi(model).jacobian()(*state, 0)
    assert by_q.nnz() == 25
    assert np.array_equal(by_q.full(), exact.dtau_dq)


def test_pinocchio_has_no_elements():
    """A twin without them would be another mechanism."""
    from kinegrad.compare.pinocchio_model import pinocchio_model

    with pytest.raises(InputError, match="has force elements, which Pinocchio has not"):
        pinocchio_model(two_arms())


def test_kernels_refuse_what_would_lose_elements():
    """Whatever takes a mechanism's constants straight must not take a model with elements for one without."""
    from kinegrad import _engine as engine

    with pytest.raises(InputError, match=r"has force elements.*expected model\.without_elements"):
        engine.mechanism(two_arms())
