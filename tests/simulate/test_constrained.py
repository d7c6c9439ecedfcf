"""Motion under constraints that hold at all times: against minimal coordinates, energy, and what is refused."""

import itertools
import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, samples
from kinegrad.simulate import simulate

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
T = np.linspace(0, 2, 21)
LENGTH, MASS = 0.7, 1.3


def bead():
    """A particle that moves freely in the x-z plane, and the rod that makes a pendulum of it."""
    builder = kg.ModelBuilder("bead")
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"), link="bead", inertia=kg.Inertia.point(MASS, [0, 0, 0]))
    model = builder.build()
    return model, kg.ConstraintSet(model, [kg.Distance("bead", length=LENGTH, name="rod")])


def pendulum():
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("y"), inertia=kg.Inertia.point(MASS, [0, 0, -LENGTH]))
    return builder.build()


def swinging(angle):
    """Where the bead is, of angles of the pendulum, (..., 1)."""
    return LENGTH * np.concatenate([-np.sin(angle), -np.cos(angle)], axis=-1)


@pytest.mark.parametrize("options", [{}, {"method": "RK45"}, {"method": "Radau"}, {"stabilisation": 5.0}])
def test_a_bead_on_a_rod_is_a_pendulum(options):
    """The same motion in one coordinate, which no constraint has to keep; and the rod pulls m (g cos θ + L ω²)."""
    model, rod = bead()
    loose = {"rtol": 1e-8, "atol": 1e-10} if options.get("method") else TIGHT
    motion = simulate(model, swinging(np.array([1.0])), [0, 0], T, constraints=rod, **options, **loose)
    one = simulate(pendulum(), [1.0], [0], T, **TIGHT)
    limit = 1e-6 if options.get("method") else 1e-9  # ten times what its tolerance leaves over these two seconds
    assert np.abs(motion.q - swinging(one.q)).max() < limit
    pull = MASS * (9.81 * np.cos(one.q[:, 0]) + LENGTH * one.v[:, 0] ** 2)
    assert np.abs(motion.forces[:, 0] + pull).max() < 1e3 * limit
    off = 1e-8 if "stabilisation" in options else 1e-14  # drawn onto the rod to rounding, or nearly there
    assert np.abs(rod.error(motion.q)).max() < off
    assert np.abs(rod.velocity(motion.q, motion.v)).max() < 10 * off


@pytest.mark.parametrize(
    ("seconds", "drift"), [(4, 2e-7), pytest.param(60, 1e-6, marks=pytest.mark.slow)], ids=["4 s", "60 s"]
)
def test_a_four_bar_keeps_its_loop_and_its_energy(seconds, drift):
    """Default tolerances; of 60 s, some 60 turns, docs/simulation.md reports the numbers."""
    model, loop = samples.four_bar()
    t = np.linspace(0, seconds, 50 * seconds)
    motion = simulate(model, [0, 0, 0], [0, 0, 0], t, constraints=loop)
    assert motion.success
    assert np.abs(loop.error(motion.q)).max() < 1e-14
    assert np.abs(loop.velocity(motion.q, motion.v)).max() < 1e-13
    energy = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    assert np.ptp(energy) < drift  # J, of 2.8 J that come and go
    for k in (50, 150):  # forces and accelerations are those of constrained dynamics
        found = kg.constrained_dynamics(model, loop, motion.q[k], motion.v[k], motion.tau[k])
        np.testing.assert_array_equal(motion.forces[k], found.forces)
        np.testing.assert_array_equal(motion.a[k], found.a)


def test_quaternions_and_torques():
    """A ball joint whose end is held on a rod, driven by a feedback: constraint, unit length and power balance."""
    builder = kg.ModelBuilder("top")
    body = kg.Inertia(1.0, [0, 0, -0.5], np.diag([0.3, 0.2, 0.1]))
    builder.add("ball", None, kg.spherical(quaternion=True), link="top", inertia=body)
    builder.add("slide", "top", kg.prismatic("z"), link="bob", inertia=kg.Inertia.point(1.0, [0, 0, -0.5]))
    model = builder.build()
    held = kg.ConstraintSet(model, [kg.Distance("bob", [0, 0, -0.5], other_point=[1.0, 0, 0], length=1.2, name="rod")])
    q0 = kg.assemble(model, held, kg.neutral(model))
    v0 = kg.project_velocity(model, held, q0, [0.3, 0.2, 1.0, 0.1])
    loose = {"rtol": 1e-9, "atol": 1e-10}  # where coordinates are not joints, an evaluation takes a millisecond
    motion = simulate(model, q0, v0, T[:3], constraints=held, tau=lambda t, q, v: -0.5 * v, **loose)
    assert np.abs(held.error(motion.q)).max() < 1e-13
    assert np.abs((motion.q[:, :4] ** 2).sum(axis=-1) - 1).max() < 1e-14
    between, weights = motion.quadrature()
    work = (weights * (between.tau * between.v).sum(axis=-1)).sum()
    energy = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    assert abs(energy[-1] - energy[0] - work) < 1e-8


def test_results_have_forces_with_names():
    model, loop = samples.four_bar()
    motion = simulate(model, [0, 0, 0], [0, 0, 0], T[:5], constraints=loop)
    assert motion.forces.shape == (5, 2)
    labelled = motion.to_xarray()["forces"]
    assert labelled.dims == ("time", "row")
    assert labelled.sel(row="pin.z").values.tolist() == motion.forces[:, 1].tolist()
    np.testing.assert_array_equal(motion[1:3].forces, motion.forces[1:3])
    np.testing.assert_array_equal(motion(T[:5]).forces, motion.forces)
    assert pickle.loads(pickle.dumps(motion)) == motion
    assert simulate(model, [0, 0, 0], [0, 0, 0], T[:5]).forces is None


def test_an_empty_set_changes_nothing():
    model = samples.double_pendulum()
    none = simulate(model, [1, 0.5], [0, 0], T, constraints=kg.ConstraintSet(model, []))
    np.testing.assert_array_equal(none.q, simulate(model, [1, 0.5], [0, 0], T).q)
    assert none.forces.shape == (21, 0)


def test_initial_states_are_refused_or_projected():
    model, rod = bead()
    with pytest.raises(InputError, match=r"`q0` .* row 'rod' is off by 0\.3 .*project=True"):
        simulate(model, [1.0, 0.0], [0, 0], T, constraints=rod)
    with pytest.raises(InputError, match=r"`v0` .* row 'rod' moves at 2 m or rad per s.*project_velocity"):
        simulate(model, [LENGTH, 0.0], [2.0, 1.0], T, constraints=rod)
    motion = simulate(model, [1.0, 0.0], [2.0, 1.0], T[:3], constraints=rod, project=True)
    np.testing.assert_allclose(motion.q[0], [LENGTH, 0], atol=1e-15)
    np.testing.assert_allclose(motion.v[0], [0, 1], atol=1e-15)


def test_what_does_not_go_together_is_refused():
    model, rod = bead()
    start = ([LENGTH, 0.0], [0, 0], T)
    with pytest.raises(
        SingularError, match=r"row 'rod' .* singular, with the prescribed motion of 'x': .* dead points"
    ):
        simulate(model, *start, constraints=rod, prescribed={"x": lambda t: (LENGTH, 0, 0)})
    for method in ("BDF", "LSODA"):
        with pytest.raises(InputError, match=r"`method` is .* drawn onto constraints"):
            simulate(model, *start, constraints=rod, method=method)
        assert simulate(model, *start, constraints=rod, method=method, stabilisation=10.0).success
    with pytest.raises(InputError, match="expected a ConstraintSet"):
        simulate(model, *start, constraints=[kg.Distance("bead")])
    with pytest.raises(InputError, match="are of model 'pendulum', and `model` is 'bead'"):
        simulate(model, *start, constraints=kg.ConstraintSet(pendulum(), []))
    with pytest.raises(InputError, match="`stabilisation` is -1"):
        simulate(model, *start, constraints=rod, stabilisation=-1)
    for name in ("stabilisation", "project"):
        with pytest.raises(InputError, match=f"`{name}` .* without `constraints`"):
            simulate(model, *start, **{name: True})
    with pytest.raises(InputError, match=r"`redundant` .* without `constraints`"):
        simulate(model, *start, redundant="least-squares")
    with pytest.raises(InputError, match="`redundant` is 'some'; expected 'error' or 'least-squares'"):
        simulate(model, *start, constraints=rod, redundant="some")
    twice = kg.ConstraintSet(model, [*rod, kg.Distance("bead", length=LENGTH, name="again")])
    with pytest.raises(SingularError, match="'again' of the constraints is redundant"):
        simulate(model, *start, constraints=twice)


def test_redundant_rows_share_their_forces():
    """A planar four-bar linkage with a hinge in space moves as with a pin; so does a rod that is there twice."""
    model, loop = samples.four_bar()
    pin, t = loop["pin"], np.linspace(0, 1, 11)
    hinge = kg.ConstraintSet(model, [kg.Loop(pin.link, other=pin.other, directions="xyzXZ", name="hinge")])
    start = [0, 0, 0], [0, 0, 0], t
    one = simulate(model, *start, constraints=loop)
    motion = simulate(model, *start, constraints=hinge, redundant="least-squares")
    assert np.abs(motion.q - one.q).max() < 1e-11
    assert np.abs(motion.forces[:, [0, 2]] - one.forces).max() < 1e-9  # the rest of the hinge has nothing to carry
    assert np.abs(motion.forces[:, [1, 3, 4]]).max() < 1e-9
    with pytest.raises(SingularError, match=r"row 'hinge\.y' of the constraints"):
        simulate(model, *start, constraints=hinge)
    model, rod = bead()
    twice = kg.ConstraintSet(model, [*rod, kg.Distance("bead", length=LENGTH, name="again")])
    start = [LENGTH, 0.0], [0, 0.3], T
    one = simulate(model, *start, constraints=rod)
    motion = simulate(model, *start, constraints=twice, redundant="least-squares")
    assert np.abs(motion.q - one.q).max() < 1e-10
    assert np.abs(motion.forces - one.forces / 2).max() < 1e-8


def bennett():
    """Four hinges in space whose axes are neither parallel nor meet; it moves since a sin β = b sin α."""
    alpha, beta, a = np.pi / 3, np.pi / 5, 1.0
    b = a * np.sin(beta) / np.sin(alpha)

    def along(length, twist):
        T = np.eye(4)
        T[1:3, 1:3] = [[np.cos(twist), -np.sin(twist)], [np.sin(twist), np.cos(twist)]]
        T[0, 3] = length
        return T

    builder, parent, place = kg.ModelBuilder("bennett"), None, np.eye(4)
    for name, length, twist in (("A", a, alpha), ("B", b, beta), ("C", a, alpha)):
        bar = kg.Inertia.cylinder(1.0, 0.05, [0, 0, 0], [length, 0, 0])
        parent = builder.add(name, parent, kg.revolute("z"), link=name.lower(), placement=place, inertia=bar)
        place = along(length, twist)
    model = builder.build()
    last = kg.Loop("c", place, None, np.linalg.inv(along(b, beta)), directions="xyzXY", name="D")
    ratio = np.sin((alpha + beta) / 2) / np.sin((alpha - beta) / 2)
    q = np.array([0.9, 2 * np.arctan(-ratio / np.tan(0.45)) % (2 * np.pi), -0.9])
    return model, last, q


def test_a_bennett_linkage_moves_by_two_of_its_five_rows():
    """Two are independent where the loop is closed, and three a little beside it: all five cannot be simulated, and two
    imply the others."""
    model, last, q = bennett()
    whole = kg.ConstraintSet(model, [last])
    assert np.abs(whole.error(q)).max() < 1e-14
    with pytest.raises(SingularError, match=r"of 5 rows of the constraints 2 are independent at `q0`, but 3 nearby"):
        simulate(model, q, [0, 0, 0], T, constraints=whole, redundant="least-squares")
    two = kg.ConstraintSet(model, [kg.Loop("c", last.placement, None, last.other_placement, directions="xy", name="D")])
    v = kg.project_velocity(model, two, q, [1.0, 0, 0])
    motion = simulate(model, q, v, T[:11], constraints=two)
    assert np.abs(motion.q[-1] - q).max() > 0.3
    assert np.abs(whole.error(motion.q)).max() < 1e-13
    found = kg.constrained_dynamics(model, whole, motion.q, motion.v, motion.tau, redundant="least-squares")
    assert np.abs(found.a - motion.a).max() < 1e-9 * np.abs(motion.a).max()


def test_a_mechanism_that_flies_apart_says_so():
    """Forces beyond reason: the part before is returned, and the sentence has the time."""
    model, rod = bead()
    motion = simulate(model, [LENGTH, 0.0], [0, 0], T, constraints=rod, tau=[0.0, 1e14])
    assert motion.status == -1
    assert "diverged at t =" in motion.message


def converged(run, x, k, step):
    """dy/dx_k of arrays that `run` gives, by Richardson's extrapolation of three central differences."""

    def difference(h):
        e = np.zeros(len(x))
        e[k] = h
        return [(a - b) / (2 * h) for a, b in zip(run(x + e), run(x - e), strict=True)]

    d = [difference(step / 2**i) for i in range(3)]
    once = [[(4 * fine - coarse) / 3 for coarse, fine in zip(*pair, strict=True)] for pair in itertools.pairwise(d)]
    return [(16 * fine - coarse) / 15 for coarse, fine in zip(*once, strict=True)]


def test_sensitivities_follow_the_projected_start_and_the_loop():
    """Of a mass, and of a length that opens the loop at the start; against converged differences of simulations."""
    model, loop = samples.four_bar()
    design = kg.Design(model, ["rocker.mass", "coupler.placement.x"])
    t = np.array([0, 0.1, 0.2])

    def motion(x, **options):
        at = design.at(x).model
        held = kg.ConstraintSet(at, loop.constraints)
        return simulate(at, [0, 0, 0], [1, 0, 0], t, constraints=held, project=True, rtol=1e-11, atol=1e-12, **options)

    found = motion(design.values, design=design)
    for k, step in enumerate([1e-2, 1e-3]):
        runs = converged(lambda x: [getattr(motion(x), name) for name in "qva"], design.values, k, step)
        for name, x in zip("qva", runs, strict=True):
            slope = getattr(found, f"d{name}_dp")[..., k]
            assert np.abs(slope - x).max() < 1e-8 * np.abs(x).max()  # what rounding and tolerance leave in differences
    with pytest.raises(InputError, match=r"`dq0_dp` .* row 'pin\.z' follows parameter 'coupler\.placement\.x' by .*"):
        simulate(model, [0, 0, 0], [0, 0, 0], t, constraints=loop, design=design)
