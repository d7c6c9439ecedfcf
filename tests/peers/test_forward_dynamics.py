"""The same accelerations and sensitivities as Pinocchio's `aba` and `computeABADerivatives`, and as MuJoCo.

Differences are compared by what the noise of torques, some 1e-16 of their terms, does to accelerations: M⁻¹
enlarges it by its condition number, in any formulation.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, parts, random_loads, random_state
from tests.test_forward_dynamics import CLOSE, METHODS, conditioned, reach


def assert_same_acceleration(model, q, v, actual, desired, loads=None):
    assert np.abs(actual - desired).max() <= CLOSE * reach(model, q, v, desired, loads)


class TestPinocchio:
    """Without springs and dampers, which it has not, and numbered depth first, as its derivatives silently assume."""

    @pytest.fixture(params=["human43", "puma560", "spatial_chain", "cart_pendulum", *(f"tree{k}" for k in range(30))])
    def peer(self, request):
        """A model, its twin in Pinocchio with data, and a state."""
        pytest.importorskip("pinocchio")
        from tests.peers.pinocchio_model import pinocchio_model
        from tests.peers.test_pinocchio import MODELS

        model = samples.human43(thickness=0.1) if request.param == "human43" else MODELS[request.param]
        assert not model.stiffness.any()
        assert not model.damping.any()
        twin = pinocchio_model(model)
        return model, twin, twin.createData(), random_state(model, 19)

    @pytest.mark.parametrize("method", METHODS)
    def test_accelerations(self, peer, method):
        import pinocchio as pin

        model, twin, data, (q, v, tau) = peer
        desired = pin.aba(twin, data, q, v, tau)
        assert_same_acceleration(model, q, v, kg.forward_dynamics(model, q, v, tau, method=method), desired)

    @pytest.mark.parametrize("method", METHODS)
    def test_accelerations_with_loads(self, peer, method):
        import pinocchio as pin

        from tests.peers.pinocchio_model import external_forces

        model, twin, data, (q, v, tau) = peer
        loads = random_loads(model, 19)
        wrenches = external_forces(model, twin, data, q, *parts(loads))
        desired = pin.aba(twin, data, q, v, tau, wrenches)
        a = kg.forward_dynamics(model, q, v, tau, loads=loads, method=method)
        assert_same_acceleration(model, q, v, a, desired, loads)

    def test_derivatives(self, peer):
        """∂a/∂v by v at least: it is zero but for rounding where M is constant."""
        import pinocchio as pin

        model, twin, data, (q, v, tau) = peer
        self.check_derivatives(pin, model, twin, data, q, v, tau)

    @pytest.mark.parametrize("first", range(0, 200, 20))
    def test_derivatives_of_random_trees(self, first):
        pin = pytest.importorskip("pinocchio")
        from tests.peers.pinocchio_model import pinocchio_model
        from tests.peers.test_pinocchio import peer_tree

        for seed in range(first, first + 20):
            model = peer_tree(seed)
            twin = pinocchio_model(model)
            self.check_derivatives(pin, model, twin, twin.createData(), *random_state(model, seed))

    @staticmethod
    def check_derivatives(pin, model, twin, data, q, v, tau):
        found = pin.computeABADerivatives(twin, data, q, v, tau)
        ddq_dq, ddq_dv, Minv = (np.reshape(x, (model.n, model.n)) for x in found)  # it drops an axis of one joint
        result = kg.forward_dynamics_derivatives(model, q, v, tau)
        close = conditioned(kg.mass_matrix(model, q))
        assert_same_acceleration(model, q, v, result.a, data.ddq)
        assert_close(result.da_dq, ddq_dq, close)
        scale = max(np.abs(ddq_dv).max(), np.abs(v).max())
        assert np.abs(result.da_dv - ddq_dv).max() <= close * scale
        assert_close(result.da_dtau, Minv, close)


class TestMuJoCo:
    """With its own springs, dampers and rotors."""

    @pytest.fixture(params=["human", "puma560", "spatial_chain", *range(20)])
    def peer(self, request):
        """A model, its twin in MuJoCo with q, v and τ set, and these."""
        mujoco = pytest.importorskip("mujoco")
        from tests.peers.mujoco_model import to_mujoco
        from tests.peers.test_mujoco import MODELS

        name = list(MODELS)[3 + request.param] if isinstance(request.param, int) else request.param
        model = MODELS[name]
        twin = to_mujoco(model)
        data = mujoco.MjData(twin)
        state = random_state(model, 19)
        data.qpos, data.qvel, data.qfrc_applied = state
        return model, twin, data, state

    @pytest.mark.parametrize("method", METHODS)
    def test_accelerations(self, peer, method):
        import mujoco

        model, twin, data, (q, v, tau) = peer
        mujoco.mj_forward(twin, data)
        a = kg.forward_dynamics(model, q, v, tau, method=method)
        assert_same_acceleration(model, q, v, a, data.qacc)
