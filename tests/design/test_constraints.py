"""Derivatives of constraints with respect to design parameters, against complex steps of the oracle."""

from types import SimpleNamespace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, samples
from kinegrad.constraints import ConstraintSet, Contact, Distance, Loop
from tests.conftest import random_state, tree
from tests.constraints.sets import random_constraints
from tests.mixed import mixed_state, mixed_tree
from tests.reference import constraints as reference
from tests.reference import oracle
from tests.reference.elements import random_elements

CLOSE = 1e-12  # complex steps of the same products; a dozen transforms of order one


def moved(design, k):
    """The oracle's model with its constants a complex step along parameter k."""
    model, h = design.model, 1j * oracle.STEP
    fields = {
        name: getattr(model, name) + h * x[k] for name, x in design._variation.items() if name in oracle.CONSTANTS
    }
    varied = oracle.with_constants(model, **fields)
    frames = {name: SimpleNamespace(link=x.link, placement=x.placement) for name, x in model.frames.items()}
    for name, slope in design._frame_slopes.items():
        frames[name].placement = frames[name].placement + h * slope[k]
    varied.link_names, varied.joint_names, varied.frames = model.link_names, model.joint_names, frames
    return varied


def by_complex_step(design, held, q, v, a):
    """∂(φ, φ̇, φ̈)/∂p, (3, m, p), and ∂G/∂p, (m, n, p)."""
    n, zero = design.model.n, np.zeros(design.model.n)
    models = [moved(design, k) for k in range(design.p)]
    motion = [reference.motion(model, held, q, v, a).imag / oracle.STEP for model in models]
    G = [[reference.motion(model, held, q, e, zero)[1].imag / oracle.STEP for e in np.eye(n)] for model in models]
    return np.stack(motion, axis=-1), np.transpose(G, (2, 1, 0))


def assert_equal_to_complex_step(design, held, q, v, a):
    found = kg.constraint_design_derivatives(design, held, q, v, a)
    motion, G = by_complex_step(design, held, q, v, a)
    actual = np.stack([found.derror_dp, found.dvelocity_dp, found.dacceleration_dp])
    for x, y in ((actual, motion), (kg.constraint_jacobian_design_derivatives(design, held, q), G)):
        assert x.shape == y.shape
        assert np.abs(x - y).max() <= CLOSE * max(1.0, np.abs(y).max())
        assert np.abs(y).max() > 0


def test_random_sets_by_placements():
    """Every kind of row, by where joints are placed and how they are turned."""
    for seed in range(8):
        model = tree(seed, largest=6)
        names = [
            f"{joint}.placement.{axis}" for joint in (model.joint_names[0], model.joint_names[-1]) for axis in "xz"
        ]
        design = Design(model, list(dict.fromkeys(names)))
        held = ConstraintSet(model, random_constraints(model, seed))
        assert_equal_to_complex_step(design, held, *random_state(model, seed))


def hooked(reach, turn):
    """An arm with frames that move and turn in their links."""
    placed = kg.translate(reach, 0.1, 0.0) @ kg.rotate("y", turn)
    frames = {"tool": kg.Frame("forearm", placed), "hook": kg.Frame("upper_arm", kg.rotate("x", 2 * turn))}
    return samples.two_link().replace(frames=frames)


def hooked_rows(design):
    return ConstraintSet(
        design.model,
        [
            Loop("tool", kg.rotate("z", 0.4), "hook", [0.1, 0.2, 0.3], directions="weld"),
            Loop("hook", directions="hinge"),
            Contact("tool", [0.1, 0.0, 0.2], other="hook"),
            Distance("tool", [0.2, 0.1, 0.0], "hook", [1.0, 0.0, 0.0], 0.5),
        ],
    )


def test_frames_that_move():
    """A rod and a loop at frames that are parameters, turned and shifted, on both sides."""
    design = Design.from_function(hooked, {"reach": 0.1, "turn": 0.3})
    assert_equal_to_complex_step(design, hooked_rows(design), *random_state(design.model, 3))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("four_bar", {"ground": 0.5, "crank": 0.2, "coupler": 0.45, "rocker": 0.4}),
        ("slider_crank", {"crank": 0.1, "rod": 0.3}),
        ("stewart_platform", {"base": 1.0, "top": 0.6, "height": 1.0}),
    ],
)
def test_samples_are_closed_at_zero_whatever_their_lengths(name, values):
    """Functions of their lengths, they can be designs; placements and frames follow so that nothing opens."""
    make = getattr(samples, name)
    design = Design.from_function(lambda **lengths: make(**lengths)[0], values)
    found = kg.constraint_design_derivatives(design, make()[1], np.zeros(design.model.n)).derror_dp
    assert np.abs(found).max() < 1e-14
    moved = kg.constraint_design_derivatives(design, make()[1], np.full(design.model.n, 0.1)).derror_dp
    assert np.abs(moved).max() > 1e-3


def test_batches_and_many_parameters_share_their_values():
    """Lanes over states or over directions: the same numbers as one state and one parameter at a time."""
    model, held = samples.stewart_platform()
    names = [f"foot{k}.x.placement.{axis}" for k in (1, 2) for axis in "xyz"]
    design = Design(model, names)
    q, v, a = random_state(model, 1, (5,))
    whole = kg.constraint_design_derivatives(design, held, q, v, a)
    one = kg.constraint_design_derivatives(Design(model, names[4:5]), held, q[2], v[2], a[2])
    np.testing.assert_allclose(whole.dacceleration_dp[2, :, 4], one.dacceleration_dp[:, 0], rtol=0, atol=1e-13)
    assert whole.derror_dp.shape == (5, 18, 6)
    assert kg.constraint_design_derivatives(design, held, q[:0]).derror_dp.shape == (0, 18, 6)
    assert kg.constraint_design_derivatives(design, held, q).dvelocity_dp is None


def test_mapped_coordinates():
    """Couplings and quaternions: against differences of sets of changed models, extrapolated."""
    for seed in (1, 2):
        model = mixed_tree(seed)
        joint = model.joint_names[-1]
        design = Design(model, [f"{joint}.tip.y"])
        held = ConstraintSet(model, random_constraints(model, seed, loops=("weld",)))
        q, v, a = mixed_state(model, seed)
        found = kg.constraint_design_derivatives(design, held, q, v, a)
        by_p = kg.constraint_jacobian_design_derivatives(design, held, q)

        def values(x, design=design, held=held, state=(q, v, a)):
            changed = ConstraintSet(design.at([x]).model, held.constraints)
            parts = [changed.error(state[0]), changed.velocity(*state[:2]), changed.acceleration(*state)]
            return np.concatenate([np.stack(parts), changed.jacobian(state[0]).T])

        x, h = design.values[0], 1e-3
        once, half = ((values(x + s) - values(x - s)) / (2 * s) for s in (h, h / 2))
        expected = (4 * half - once) / 3
        actual = np.stack([found.derror_dp, found.dvelocity_dp, found.dacceleration_dp])[..., 0]
        np.testing.assert_allclose(np.concatenate([actual, by_p[..., 0].T]), expected, atol=1e-9)


@pytest.mark.parametrize("model", [tree(5, largest=6), mixed_tree(1)], ids=["joints", "coordinates"])
def test_force_elements_change_nothing(model):
    """Springs between links push, but no constraint depends on a force."""
    sprung = model.replace(elements=random_elements(model, 3))
    rows = random_constraints(model, 3, loops=("weld",))
    q, v, a = mixed_state(model, 3)
    joint = model.joint_names[-1]
    found = []
    for each in (model, sprung):
        held, design = ConstraintSet(each, rows), Design(each, [f"{joint}.placement.x"])
        change = held.derivatives(q, v, a)
        by_p = kg.constraint_design_derivatives(design, held, q, v, a)
        parts = [held.error(q), held.drift(q, v), change.dacceleration_dq, held.curvature(q, np.ones(held.m))]
        parts += [by_p.dacceleration_dp, kg.constraint_jacobian_design_derivatives(design, held, q)]
        found.append([*parts, kg.project_velocity(each, held, q, v)])
    for plain, with_elements in zip(*found, strict=True):
        assert plain.tobytes() == with_elements.tobytes()


def test_another_model_is_refused():
    _, held = samples.four_bar()
    design = Design(samples.two_link(), ["forearm.mass"])
    with pytest.raises(kg.InputError, match="`constraints` are of model 'four_bar', and `model` is 'two_link'"):
        kg.constraint_design_derivatives(design, held, [0, 0, 0])


SIXTH, STEPS = np.array([-1, 9, -45, 45, -9, 1]) / 60, (-3, -2, -1, 1, 2, 3)


@pytest.mark.parametrize("seed", range(6))
def test_second_derivatives_by_differences(seed):
    """Every kind of row, coordinates that are joints and others: differences of exact slopes along q, v and p."""
    mixed = seed % 2 == 1
    model = mixed_tree(seed) if mixed else tree(seed, largest=6)
    rng = np.random.default_rng(seed)
    held = kg.ConstraintSet(model, random_constraints(model, seed))
    inner = {k for first, _, _ in model.layout.balls for k in range(first, first + 6)} if model.coordinates else set()
    free = [joint for k, joint in enumerate(model.joint_names) if k not in inner]
    names = [f"{free[0]}.placement.{x}" for x in ("x", "rx", "ry")] + [f"{free[-1]}.{x}" for x in ("tip.z", "tip.rx")]
    names = [*dict.fromkeys(names)]
    base = Design(model, names)
    design = base.at(base.values + 0.2)
    q = mixed_state(model, seed)[0] if mixed else rng.normal(size=model.n)
    check_second_derivatives(design, kg.ConstraintSet(design.model, held.constraints), q, rng)


def test_second_derivatives_by_frames():
    """Rows at frames that move and turn in their links, by a function."""
    design = Design.from_function(hooked, {"reach": 0.1, "turn": 0.3})
    check_second_derivatives(design, hooked_rows(design), np.array([0.4, -0.7]), np.random.default_rng(4))


def check_second_derivatives(design, held, q, rng):
    model = design.model
    v, y, u = rng.normal(size=model.nv), rng.normal(size=held.m), rng.normal(size=held.m)
    found = kg.constraint_design_hessian(design, held, q, v, y, u)

    def gradient(design, q, v):
        """Of yᵀφ + uᵀφ̇, by p."""
        rows = kg.ConstraintSet(design.model, held.constraints)
        by_p = kg.constraint_design_derivatives(design, rows, q, v)
        return y @ by_p.derror_dp + u @ by_p.dvelocity_dp

    size = max(np.abs(gradient(design, q, v)).max(), np.abs(found.d2_dqdp).max(), np.abs(found.d2_dpdp).max())
    h = 3e-3
    for k, e in enumerate(h * np.eye(model.nv)):
        along = SIXTH @ [gradient(design, kg.integrate(model, q, s * e), v) for s in STEPS] / h
        assert np.abs(along - found.d2_dqdp[k]).max() <= 1e-9 * size
        along = SIXTH @ [gradient(design, q, v + s * e) for s in STEPS] / h
        assert np.abs(along - found.d2_dvdp[k]).max() <= 1e-9 * size
    for k, e in enumerate(h * np.eye(design.p)):
        along = SIXTH @ [gradient(design.at(design.values + s * e), q, v) for s in STEPS] / h
        assert np.abs(along - found.d2_dpdp[k]).max() <= 1e-9 * size
    several = kg.constraint_design_hessian(design, held, q, v, np.stack([0 * y, y]), u)
    for field in ("d2_dqdp", "d2_dvdp", "d2_dpdp"):
        np.testing.assert_array_equal(getattr(several, field)[1], getattr(found, field))
