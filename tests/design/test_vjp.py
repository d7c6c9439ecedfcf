"""yᵀ ∂τ/∂p in one backward sweep: against ∂τ/∂p of dual numbers, a formulation that shares nothing with it."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import DH, Design, Inertia, InputError, Model, samples
from tests.conftest import assert_close, random_loads, random_state, some_now, tree
from tests.design.test_function import VALUES, machine

# Both are sums of products of about 40 n numbers; 1e-15 of the largest is the worst seen.
CLOSE = 1e-13
LINK = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{m}" for m in ("xx", "yy", "zz", "xy", "xz", "yz")))
JOINT = ("stiffness", "rest", "damping", "armature")
ROW = ("theta", "d", "a", "alpha")
PLACED = [f"{what}.{x}" for what in ("placement", "tip") for x in "xyz"]


def everything(model, loads=None):
    """All constants of a model by name; where rows place joints, every other's row and the others' placement."""
    names = [f"{link}.{what}" for link in model.link_names for what in LINK]
    for i, joint in enumerate(model.joint_names):
        by_row = model.dh is not None and i % 2
        screw = model.joints[i].kind == "screw"
        names += [f"{joint}.{what}" for what in (*JOINT, *(ROW if by_row else PLACED), *(["pitch"] if screw else []))]
    if loads is not None:
        parts = [f"load.{what}.{x}" for what in ("force", "point", "torque") for x in "xyz"]
        names += [f"{link}.{what}" for link in model.link_names[::3] for what in parts]
    return Design(model, [*names, "gravity.x", "gravity.y", "gravity.z"], loads)


def check(design, seed, batch=(3,)):
    q, v, a = random_state(design.model, seed, batch)
    y = random_state(design.model, seed + 1000, batch)[0]
    found = kg.inverse_dynamics_design_vjp(design, q, v, a, y)
    derivatives = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    assert_close(found, np.einsum("...i,...ip->...p", y, derivatives), CLOSE)


@pytest.mark.parametrize("seed", some_now(range(60), 15))
def test_random_trees(seed):
    model = tree(seed)
    check(everything(model, random_loads(model, seed) if seed % 3 else None), seed)


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_samples(name):
    model = samples.SAMPLES[name]()
    check(everything(model, random_loads(model, 1)), 1, (2,))


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_rows(convention):
    rng = np.random.default_rng(3)
    rows = [DH(*rng.normal(size=4), variable=("theta", "d", "-theta", "-d")[k % 4]) for k in range(6)]
    bodies = [Inertia.box(1.0, [0.1, 0.2, 0.3], com=rng.normal(size=3)) for _ in rows]
    model = Model.from_dh(rows, convention=convention, inertias=bodies, parents=[-1, 0, 1, 1, 3, 0])
    design = everything(model, random_loads(model, 3))
    assert {"joint5.alpha", "joint1.theta"} <= set(design.names)
    check(design, 3)


def test_functions():
    """Placements that turn and shift together, pitches, inertias, springs."""
    check(Design.from_function(machine, VALUES), 4, (9,))


def test_massless_link_that_gets_mass():
    model = samples.human43()
    massless = next(i for i in range(model.n) if not model.mass[i])
    design = Design(model, [f"{model.link_names[massless]}.mass"])
    check(design, 5)
    assert kg.inverse_dynamics_design_vjp(design, *np.ones((4, model.n))).any()


def test_batches_broadcast_and_threads_give_the_same_bits():
    model = samples.puma560()
    design = everything(model)
    q, v, a = random_state(model, 6, (400,))
    y = np.ones(model.n)
    one, two = (kg.inverse_dynamics_design_vjp(design, q, v, a, y, threads=k) for k in (1, 2))
    assert one.shape == (400, design.p)
    assert np.array_equal(one, two)
    assert np.array_equal(one[7], kg.inverse_dynamics_design_vjp(design, q[7], v[7], a[7], y))
    assert kg.inverse_dynamics_design_vjp(design, np.zeros((0, 6)), q[0], q[0], y).shape == (0, design.p)


def test_refused():
    design = Design(samples.two_link(), ["forearm.mass"])
    with pytest.raises(InputError, match="`w` has shape"):
        kg.inverse_dynamics_design_vjp(design, [0, 0], [0, 0], [0, 0], [1, 0, 0])
    with pytest.raises(InputError, match="`w` at index"):
        kg.inverse_dynamics_design_vjp(design, [0, 0], [0, 0], [0, 0], [1, np.nan])
    with pytest.raises(InputError, match="`design` is a Model"):
        kg.inverse_dynamics_design_vjp(samples.two_link(), [0, 0], [0, 0], [0, 0], [1, 0])
