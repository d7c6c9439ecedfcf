"""Derivatives by design parameters in batches: shapes, lanes over states or directions, broadcasting, threads."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, InputError, samples
from kinegrad._engine import threads
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import parts, random_loads, random_state, tree
from tests.design.stepped import all_constants, same_bits


def everything(design, q, v, x, loads=None, **options):
    """All derivatives."""
    energies = kg.energy_design_derivatives(design, q, v, **options)
    return [
        kg.inverse_dynamics_design_derivatives(design, q, v, x, loads=loads, **options),
        kg.forward_dynamics_design_derivatives(design, q, v, x, loads=loads, **options),
        kg.mass_matrix_design_derivatives(design, q, **options),
        kg.transform_design_derivatives(design, q, **options),
        energies.dkinetic_dp,
        energies.dpotential_dp,
    ]


@pytest.mark.parametrize("p", [1, WIDTH, 11])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (10,), (11,), (23,), (0,), (2, 0)])
def test_shapes(p, batch):
    model = samples.puma560()
    design, n = Design(model, all_constants(model)[:p]), model.n
    found = everything(design, *random_state(model, batch=batch), random_loads(model, batch=batch))
    shapes = [(n, p), (n, p), (n, n, p), (n, 4, 4, p), (p,), (p,)]
    assert [x.shape for x in found] == [(*batch, *shape) for shape in shapes]
    assert all(x.dtype == np.float64 and x.flags.c_contiguous and x.flags.writeable for x in found)


@pytest.mark.parametrize("loaded", [True, False])
def test_lanes_over_states_or_over_directions(loaded):
    """More states than parameters, or fewer: each state's numbers are those it has alone, to the bit."""
    model = tree(6)
    design = Design(model, all_constants(model)[::7])
    for states in (2, design.p - 1, design.p, 3 * design.p + 1):
        state, loads = random_state(model, batch=(states,)), random_loads(model, batch=(states,)) if loaded else None
        whole = everything(design, *state, loads)
        for k in (0, 1, states - 1):
            own = None if loads is None else kg.Loads(*(x[k] for x in parts(loads)))
            for x, y in zip(everything(design, *(x[k] for x in state), own), whole, strict=True):
                same_bits(x, y[k])


def test_parameters_do_not_see_each_other():
    model = tree(6)
    names = all_constants(model)[::5]
    state = random_state(model, batch=(3,))
    whole = everything(Design(model, names), *state)
    for k in (0, len(names) // 2, len(names) - 1):
        for x, y in zip(everything(Design(model, [names[k]]), *state), whole, strict=True):
            same_bits(x[..., 0], np.ascontiguousarray(y[..., k]))


def test_following_states_in_batches():
    """Lanes over states or directions, with derivatives of the state that broadcast."""
    model = samples.puma560()
    design = Design(model, all_constants(model)[:7])
    rng = np.random.default_rng(3)
    for states in (3, 20):
        q, v, tau = random_state(model, batch=(states,))
        follow = {name: rng.normal(size=(states, model.n, 7)) for name in ("dq_dp", "dv_dp", "dtau_dp")}
        follow["dv_dp"] = follow["dv_dp"][:1]
        whole = kg.forward_dynamics_design_derivatives(design, q, v, tau, **follow)
        for k in range(states):
            own = {name: x[min(k, len(x) - 1)] for name, x in follow.items()}
            same_bits(kg.forward_dynamics_design_derivatives(design, q[k], v[k], tau[k], **own), whole[k])


def test_broadcasting_and_read_only_inputs():
    model = tree(3)
    design = Design(model, all_constants(model)[:5])
    q, v, a = random_state(model, batch=(7,))
    full = everything(design, q, np.broadcast_to(v[0], q.shape), a[:1].repeat(7, axis=0))
    for x in (q, v, a):
        x.flags.writeable = False
    for x, y in zip(everything(design, q, v[0], a[:1]), full, strict=True):
        same_bits(x, y)
    one = samples.multi_pendulum(1)
    following = np.broadcast_to(1.0, (1, 1))
    single = Design(one, [f"{one.link_names[0]}.mass"])
    found = kg.forward_dynamics_design_derivatives(single, [0.3], [0.0], [1.0], dtau_dp=following, dq_dp=following)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("states", [5, 90])
def test_threads_give_the_same_bits(states):
    model = samples.human43(thickness=0.1)
    design = Design(model, [f"{link}.mass" for link in model.link_names])
    state, loads = random_state(model, batch=(states,)), random_loads(model)
    assert states * design.p * model.n > 2 * threads._GRAIN, "otherwise threads are not used"
    one, two = (everything(design, *state, loads, threads=count) for count in (1, 2))
    for x, y in zip(one, two, strict=True):
        same_bits(x, y)
    with pytest.raises(InputError, match="`threads` is 0"):
        everything(design, *state, threads=0)
