"""The tree on which mass matrices of coordinates are factored holds every entry, those that fill in too."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad._engine.reduction import _elimination
from kinegrad.model import Topology
from tests.conftest import assert_close
from tests.mixed import mixed_state, mixed_tree


def coupled_across(seed):
    """A random tree with three couplings of joints anywhere in it."""
    tree = kg.samples.random_tree(14, seed, passive=False)
    rng = np.random.default_rng(seed)
    joints = rng.permutation(14)[:7]
    functions = [kg.LinearFunction(x) for x in rng.uniform(0.5, 2, 7)]
    entries = [kg.model.coordinates.CoupledCoordinate(f"c{k}", tuple(int(j) for j in joints[at]), tuple(functions[at]))
               for k, at in enumerate((slice(0, 3), slice(3, 5), slice(5, 7)))]  # fmt: skip
    return tree.replace(coordinates=entries, armature=np.full(14, 0.1))


@pytest.mark.parametrize("seed", range(5))
def test_factors_stay_on_the_paths_of_the_tree(seed):
    model = coupled_across(seed)
    nv = model.nv
    topology = Topology(_elimination(model.layout, np.arange(nv)))
    M = kg.mass_matrix(model, np.random.default_rng(seed).normal(size=nv))
    for k in reversed(range(nv)):  # LᵀDL, dense
        M[:k, :k] -= np.outer(M[k, :k], M[k, :k]) / M[k, k]
        ancestors = topology.ancestors(k)
        others = np.setdiff1d(np.arange(k), ancestors)
        assert not M[k, others].any()


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_and_derivatives(seed):
    """There and back, with some prescribed too; derivatives are −M⁻¹ times those of torques, by LAPACK."""
    model = coupled_across(seed) if seed else mixed_tree(1)
    assert not model.layout.in_series
    q, v, a = mixed_state(model, seed, (3,))
    d = kg.inverse_dynamics_derivatives(model, q, v, a)
    assert_close(kg.forward_dynamics(model, q, v, d.tau), a, 1e-11)
    found = kg.hybrid_dynamics(model, q, v, d.tau, a, prescribed=model.speed_names[::2])
    assert_close(found.a, a, 1e-11)
    assert_close(found.tau, d.tau, 1e-11)
    f = kg.forward_dynamics_derivatives(model, q, v, d.tau)
    assert_close(f.da_dq, -np.linalg.solve(d.dtau_da, d.dtau_dq), 1e-10)
    assert_close(f.da_dv, -np.linalg.solve(d.dtau_da, d.dtau_dv), 1e-10)
    assert_close(f.da_dtau, np.linalg.inv(d.dtau_da), 1e-10)
    everything = kg.hybrid_dynamics(model, q, v, d.tau, a, prescribed=model.speed_names)
    assert_close(everything.tau, d.tau, 1e-12)
