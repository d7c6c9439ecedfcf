"""The inertial regressor: τ = Y π, against inverse dynamics; its columns against changed models; and by Pinocchio."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, InputError, samples
from tests.conftest import assert_close, random_state, some_now, tree

# Sums of some hundred products, in another order than those of inverse dynamics: 1e-15 is typical.
CLOSE = 1e-12
MODELS = {**{name: make() for name, make in samples.SAMPLES.items()}, **{f"tree{k}": tree(k) for k in range(40)}}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def bare(model):
    """Without springs, dampers and rotors."""
    zero = np.zeros(model.n)
    return model.replace(stiffness=zero, damping=zero, armature=zero)


@models
def test_torques(model):
    state = random_state(model, batch=(5,))
    Y = kg.inverse_dynamics_regressor(model, *state)
    assert Y.shape == (5, model.n, 10 * model.n)
    assert_close(Y @ kg.inertial_parameters(model), kg.inverse_dynamics(bare(model), *state), CLOSE)


@pytest.mark.parametrize("seed", some_now(range(20), 5))
def test_columns(seed):
    """Y does not depend on masses, so every column is a torque: of bodies whose parameters span all ten."""
    model = bare(tree(seed))
    state, rng = random_state(model, seed), np.random.default_rng(seed)
    Y = kg.inverse_dynamics_regressor(model, *state)
    for j in range(model.n):
        link = model.link_names[j]
        for _ in range(12):
            points = rng.normal(size=(6, 3))
            body = sum((Inertia.point(0.5, x) for x in points[1:]), start=Inertia.point(0.5, points[0]))
            other = model.replace(mass={link: body.mass}, com={link: body.com}, inertia={link: body.inertia})
            assert_close(Y @ kg.inertial_parameters(other), kg.inverse_dynamics(other, *state), CLOSE)
            assert_close(kg.inverse_dynamics_regressor(other, *state), Y, CLOSE)


@models
def test_structure(model):
    """Zero, exactly, where joint i does not move link j."""
    Y = kg.inverse_dynamics_regressor(model, *random_state(model)).reshape(model.n, model.n, 10)
    for j in range(model.n):
        moved_by = {j, *model.topology.ancestors(j)}
        for i in set(range(model.n)) - moved_by:
            assert not Y[i, j].any()


@pytest.mark.parametrize("seed", range(10))
def test_columns_are_derivatives_by_masses(seed):
    """∂τ/∂m_j at fixed c and I about c:  Y_m + Y_h c + Y_I (c·c 1 − c cᵀ)."""
    model = tree(seed)
    state = random_state(model, seed)
    Y = kg.inverse_dynamics_regressor(model, *state).reshape(model.n, model.n, 10)
    design = Design(model, [f"{link}.mass" for link in model.link_names])
    unit = [kg.inertial_parameters(_point(model, c)).reshape(-1, 10)[0] for c in model.com]
    assert_close(np.einsum("ijk,jk->ij", Y, unit), kg.inverse_dynamics_design_derivatives(design, *state), CLOSE)


def _point(model, c):
    """A model whose first link is a mass of 1 kg at c."""
    link, body = model.link_names[0], Inertia.point(1.0, c)
    return model.replace(mass={link: body.mass}, com={link: body.com}, inertia={link: body.inertia})


def test_parameters():
    """As the pseudo-inertia has them: of a cloud of points, by its sums."""
    x = np.array([[0.1, 0.2, 0.3], [-0.5, 0.1, 0.2], [0.3, -0.4, 0.6]])
    builder = kg.ModelBuilder("cloud")
    cloud = Inertia.point(1.0, x[0]) + Inertia.point(1.0, x[1]) + Inertia.point(1.0, x[2])
    builder.add("hinge", None, kg.revolute("z"), link="body", inertia=cloud)
    xx, yy, zz = (x**2).sum(axis=0)
    xy, xz, yz = (x[:, 0] @ x[:, 1], x[:, 0] @ x[:, 2], x[:, 1] @ x[:, 2])
    expected = [3, *x.sum(axis=0), yy + zz, -xy, -xz, xx + zz, -yz, xx + yy]
    assert_close(kg.inertial_parameters(builder.build()), expected, 1e-15)


def test_identification():
    """Parameters found by least squares from noiseless motion give the torques of any other motion."""
    model = bare(samples.puma560())
    state = random_state(model, 1, (60,))
    Y, tau = kg.inverse_dynamics_regressor(model, *state), kg.inverse_dynamics(model, *state)
    found = np.linalg.lstsq(Y.reshape(-1, 60), tau.ravel(), rcond=1e-10)[0]
    other = random_state(model, 2, (20,))
    predicted = kg.inverse_dynamics_regressor(model, *other) @ found
    assert_close(predicted, kg.inverse_dynamics(model, *other), 1e-10)  # least squares over a condition of some 1e3


def test_far_from_the_origin():
    """A mechanism a million metres away: the torques do not depend on where it stands."""
    near = samples.puma560()
    placement = near.placement.copy()
    placement[0, :3, 3] += [1e6, -2e6, 3e6]
    state = random_state(near, 3)
    Y = kg.inverse_dynamics_regressor(near, *state)
    # positions are rounded to 1e-10 m or so by their size, whatever is done after
    assert_close(kg.inverse_dynamics_regressor(near.replace(placement=placement), *state), Y, 1e-8)


def test_batches_and_threads():
    model = samples.human43()
    state = random_state(model, batch=(4, 30))
    whole = kg.inverse_dynamics_regressor(model, *state, threads=1)
    assert whole.shape == (4, 30, 43, 430)
    assert kg.inverse_dynamics_regressor(model, *state, threads=2).tobytes() == whole.tobytes()
    one = kg.inverse_dynamics_regressor(model, *(x[2, 7] for x in state))
    assert one.tobytes() == whole[2, 7].tobytes()
    assert kg.inverse_dynamics_regressor(model, *(x[:0] for x in state)).shape == (0, 30, 43, 430)


def test_refusals():
    arm = samples.two_link()
    with pytest.raises(InputError, match="`model` is a str"):
        kg.inertial_parameters("arm")
    with pytest.raises(InputError, match="`model` is a str"):
        kg.inverse_dynamics_regressor("arm", [0, 0], [0, 0], [0, 0])
    with pytest.raises(InputError, match=r"`v` has shape \(3,\)"):
        kg.inverse_dynamics_regressor(arm, [0, 0], [0, 0, 0], [0, 0])
    with pytest.raises(InputError, match=r"`a` at index \(1,\) is nan"):
        kg.inverse_dynamics_regressor(arm, [0, 0], [0, 0], [0, np.nan])
    with pytest.raises(InputError, match="`threads` is 0"):
        kg.inverse_dynamics_regressor(arm, [0, 0], [0, 0], [0, 0], threads=0)
