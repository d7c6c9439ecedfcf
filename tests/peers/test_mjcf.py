"""Files of MJCF: the same M, τ and ∂τ as MuJoCo finds with its own reading of the file.

Coordinates and speeds are MuJoCo's own, so numbers are compared as they are.  MuJoCo has no exact derivatives; those of
its τ by differences of sixth order are good to 1e-9.
"""

import importlib.metadata
from pathlib import Path

import mujoco
import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_model
from tests.io.toml.test_round_trip import bits
from tests.published import HOW, published

CLOSE = 1e-9  # of the largest entry; observed is 1e-13, of derivatives 1e-10
ASSETS = "gymnasium/envs/mujoco/assets/"


def names():
    try:
        files = importlib.metadata.files("gymnasium") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(f).name for f in files if str(f).startswith(ASSETS) and f.suffix == ".xml")


def place(name):
    return next(Path(f.locate()) for f in importlib.metadata.files("gymnasium") if str(f) == ASSETS + name)


def alone(path):
    """MuJoCo's model without what kinegrad's has not: contacts, limits, friction, fluids, tendons' forces."""
    mujoco.set_mju_user_warning(lambda text: None)  # or it writes a log into the current folder
    try:
        twin = mujoco.MjModel.from_xml_path(str(path))
    finally:
        mujoco.set_mju_user_warning(None)
    twin.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    twin.opt.density = twin.opt.viscosity = 0.0
    for what in ("stiffness", "damping", "armature"):
        getattr(twin, f"tendon_{what}")[:] = 0
    return twin


def random_state(model, seed=0):
    rng = np.random.default_rng(seed)
    return kg.random_configuration(model, rng), *rng.uniform(-1, 1, (2, model.nv))


def torques(twin, data, q, v, a):
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_inverse(twin, data)
    return data.qfrc_inverse.copy()


def difference(f, h=0.02):
    """df/ds at 0, of sixth order."""
    return sum(c * (f(k * h) - f(-k * h)) for k, c in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / h


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * np.abs(expected).max())


def compare(path):
    found = read_model(path)
    model, twin = found.model, alone(path)
    data = mujoco.MjData(twin)
    assert (model.nq, model.nv) == (twin.nq, twin.nv)
    for seed in range(2):
        q, v, a = random_state(model, seed)
        agree(kg.inverse_dynamics(model, q, v, a), torques(twin, data, q, v, a))
        M = np.zeros((twin.nv, twin.nv))
        mujoco.mj_fullM(twin, M, data.qM) if hasattr(data, "qM") else mujoco.mj_fullM(twin, data, M)
        agree(kg.mass_matrix(model, q), M)
    exact = kg.inverse_dynamics_derivatives(model, q, v, a)
    steps = np.eye(model.nv)
    moved = [difference(lambda s, e=e: torques(twin, data, kg.integrate(model, q, s * e), v, a)) for e in steps]
    faster = [difference(lambda s, e=e: torques(twin, data, q, v + s * e, a)) for e in steps]
    agree(exact.dtau_dq, np.transpose(moved))
    agree(exact.dtau_dv, np.transpose(faster))
    return found, twin, data


@pytest.mark.parametrize("name", names())
def test_same_as_mujoco(name, tmp_path):
    found, *_ = compare(place(name))
    kg.save(found, tmp_path / "a.toml")
    assert bits(read_model(tmp_path / "a.toml").model) == bits(found.model)


def test_humanoids_are_among_them():
    assert {"humanoid.xml", "humanoidstandup.xml"} <= set(names())


SUITE = [path for path in published("dm_control", ".xml") if path.parent.name == "suite"]


@pytest.mark.slow  # as what fetches them is
@pytest.mark.skipif(not SUITE, reason=HOW)
@pytest.mark.parametrize("path", SUITE, ids=lambda path: path.stem)
def test_same_as_mujoco_of_dm_control(path):
    """Bodies of up to 85 degrees of freedom; one is filled by a program, and empty before."""
    if path.stem == "lqr":
        with pytest.raises(kg.FileError, match="has no joint, so that nothing moves; expected at least one"):
            read_model(path)
        return
    compare(path)


@pytest.mark.slow  # as what fetches them is
@pytest.mark.skipif(not SUITE, reason=HOW)
def test_bodies_of_dm_control_are_among_them():
    assert {"humanoid.xml", "humanoid_CMU.xml", "dog.xml", "quadruped.xml"} <= {path.name for path in SUITE}
