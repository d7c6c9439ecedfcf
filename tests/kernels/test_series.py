"""Joints that one coordinate moves in series are one joint of the articulated bodies: against the mass matrix, which
knows nothing of series, and where nothing resists."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, ModelBuilder, SingularError, SplineFunction
from tests.conftest import assert_close
from tests.mixed import mixed_loads, mixed_state


def knee(massive: bool, branch: bool):
    """A floating base; a leg whose knee moves five joints, by splines, with links between that have mass or not; a side
    branch within the knee; a foot."""
    rng = np.random.default_rng(8)
    builder = ModelBuilder("leg", gravity=(0.5, -9.81, 1.0))
    numbers = {"damping": 0.3, "stiffness": 2.0, "rest": 0.1, "armature": 0.05}
    base = builder.add("base", None, kg.free(quaternion=True), inertia=Inertia.box(9.0, [0.4, 0.3, 0.2]))
    last = builder.add("hip", base, kg.revolute("z"), placement=[0, -0.1, 0.1], inertia=Inertia.box(5, [0.1, 0.4, 0.1]))
    knots = np.linspace(-2, 2, 7)
    functions = {"k0": 1.0}
    for k, joint in enumerate([kg.revolute("z"), kg.prismatic("x"), kg.prismatic("y"), kg.revolute("x"),
                               kg.screw([1, 2, 3], pitch=0.1)]):  # fmt: skip
        body = Inertia.box(0.5, [0.1, 0.2, 0.3]) if massive or k == 4 else Inertia.zero()
        place = kg.translate(*rng.normal(size=3) * 0.1) @ kg.rotate(rng.normal(size=3), 0.3)
        last = builder.add(f"k{k}", last, joint, placement=place, inertia=body, **numbers)
        functions |= {f"k{k}": SplineFunction(knots, rng.normal(size=7) * 0.2)} if k else {}
        if branch and k == 2:
            builder.add("side", last, kg.revolute("y"), placement=[0.1, 0, 0], inertia=Inertia.box(1, [0.1, 0.1, 0.3]))
    builder.add("foot", last, kg.revolute("z"), placement=[0, -0.4, 0], inertia=Inertia.box(1, [0.3, 0.1, 0.1]))
    builder.couple("knee", functions)
    return builder.build()


def fork():
    """One coordinate moves a joint and both that hang on it: connected, though no chain."""
    builder = ModelBuilder("fork")
    stem = builder.add("stem", None, kg.revolute("x"), inertia=Inertia.box(1, [0.1, 0.2, 0.3]))
    for side in (-1.0, 1.0):
        arm = builder.add(f"arm{side:+.0f}", stem, kg.revolute([1, side, 0]), placement=[side * 0.2, 0, 0.1],
                          inertia=Inertia.box(1, [0.1, 0.2, 0.3]))  # fmt: skip
        builder.add(f"tip{side:+.0f}", arm, kg.revolute("y"), placement=[0, 0.3, 0], inertia=Inertia.box(1, [0.3] * 3))
    builder.couple("q", {"stem": 1.0, "arm-1": -2.0, "arm+1": SplineFunction([-3, 0, 1, 3], [0.1, 0.5, 0.2, 1.0])})
    return builder.build()


MODELS = {
    "massless": knee(False, False),
    "massive": knee(True, False),
    "branch": knee(True, True),
    "fork": fork(),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_it_is_the_mass_matrix(model):
    """Accelerations, and torques of prescribed coordinates, any of them, by both ways; there and back."""
    assert model.layout.in_series
    q, v, a = mixed_state(model, 3, (5,))
    loads = mixed_loads(model, 3)
    tau = kg.inverse_dynamics(model, q, v, a, loads=loads)
    assert_close(kg.forward_dynamics(model, q, v, tau, loads=loads), a, 1e-11)
    assert_close(
        kg.forward_dynamics(model, q, v, tau, loads=loads),
        kg.forward_dynamics(model, q, v, tau, loads=loads, method="crba"),
        1e-11,
    )
    for k in range(model.nv):
        held = [model.speed_names[k], model.speed_names[(k + 2) % model.nv]]
        found = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=held, loads=loads)
        assert_close(found.a, a, 1e-11)
        assert_close(found.tau, tau, 1e-11)


def test_a_chain_of_forty_with_ten_pairs():
    """Rounding grows with the condition of M, which is some 1e7 here; both ways are as far from what was put in."""
    builder = ModelBuilder("chain")
    for i in range(40):
        builder.add(f"j{i}", f"l{i - 1}" if i else None, kg.revolute("xyz"[i % 3]), link=f"l{i}",
                    placement=[0, -0.1, 0], inertia=Inertia.box(1, [0.1, 0.1, 0.2]))  # fmt: skip
    for i in range(0, 40, 4):
        builder.mimic(f"j{i + 1}", f"j{i}", multiplier=0.5)
    model = builder.build()
    assert (model.n, model.nv, model.layout.in_series) == (40, 30, True)
    q, v, a = mixed_state(model, 1, (3,))
    tau = kg.inverse_dynamics(model, q, v, a)
    for method in ("aba", "crba"):
        assert_close(kg.forward_dynamics(model, q, v, tau, method=method), a, 1e-10)


def test_motions_that_cancel_are_named():
    """A turn and the same turn back move nothing: no inertia remains, whatever the size of each."""
    builder = ModelBuilder("idle")
    base = builder.add("base", None, kg.revolute("x"), inertia=Inertia.box(1, [0.1, 0.2, 0.3]))
    there = builder.add("there", base, kg.revolute("z"))
    builder.add("back", there, kg.revolute("z"), inertia=Inertia.box(1, [0.1, 0.2, 0.3]))
    builder.couple("idle", {"there": 1.0, "back": -1.0})
    model = builder.build()
    q = np.array([[0.1, 0.2], [0.3, 0.4]])
    with pytest.raises(SingularError, match="nothing resists coordinate 'idle' of model 'idle' in state 0"):
        kg.forward_dynamics(model, q, q, q)
