"""What the engine keeps with a model: its constants, and that nothing forgets force elements."""

import importlib
import pkgutil

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError
from kinegrad import _engine as engine
from tests.engine.batches import MODEL, N, same_bits, states


def test_constants_are_computed_once_and_are_not_part_of_the_model():
    model = kg.samples.random_tree(4, seed=2)
    same = kg.samples.random_tree(4, seed=2)
    assert engine.mechanism(model) is engine.mechanism(model)
    assert model == same
    heavier = model.replace(mass=2 * model.mass)
    assert (engine.mechanism(heavier)[5][:, 0] == 2 * engine.mechanism(model)[5][:, 0]).all()


def test_slack_springs_leave_the_model_alone():
    stiffness = MODEL.stiffness.copy()
    assert stiffness.any()
    slack = engine.without_springs(MODEL)
    assert not slack.stiffness.any()
    assert engine.without_springs(MODEL) is slack
    same_bits(MODEL.stiffness, stiffness)
    assert engine.without_springs(slack) is slack


def test_an_interrupt_while_constants_are_made_leaves_none_half_made(monkeypatch):
    """Found by the fuzzer of signals: of two attributes kept with a model only one was there."""
    model = kg.samples.two_link()

    def interrupted(constants):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.kernel_constants, "_ordinary", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kg.mass_matrix(model, [0.0, 0.0])
    monkeypatch.undo()
    assert kg.mass_matrix(model, [0.0, 0.0]).shape == (2, 2)
    assert engine.tame(model) is not None


# called only with models whose elements have been taken off, by functions that add what these do
BARE = {
    "_engine.elements": {"ELEMENTS", "ELEMENTS_DERIVATIVES"},
    "_engine.element_hessian": {"GRADIENTS"},
    "design.dynamics": {"_TORQUES", "_ACCELERATIONS", "_GRADIENT"},
    "design.elements": {"_FORCES"},
    "design.hessian": {"_TORQUES", "_ELEMENTS", "_SECOND", "_SECOND_ELEMENTS"},
    "dynamics": {"SERIES"},
}


def all_kernels():
    """Every kernel that a module names, alone or in dicts, with the modules' names for it."""
    found = {}
    for info in pkgutil.walk_packages(kg.__path__, "kinegrad."):
        if info.name.startswith(("kinegrad.bridges", "kinegrad.__main__")):  # which need packages, or run
            continue
        stack = list(vars(importlib.import_module(info.name)).items())
        while stack:
            name, x = stack.pop()
            if isinstance(x, engine.Kernel):
                found.setdefault(x, set()).add((info.name.removeprefix("kinegrad."), name))
            elif type(x) is dict:
                stack += [(name, y) for y in x.values()]
    return found


def test_kernels_that_do_not_know_force_elements_refuse_them():
    """A kernel says what elements do to its results, or that they do nothing; of any other, silence would be wrong."""
    strap = kg.SpringDamper(MODEL.link_names[-1], other_point=[0, 0, 3], stiffness=1.0)
    sprung = MODEL.replace(elements={"strap": strap})
    kernels = all_kernels()
    assert len(kernels) > 40
    bare = {(module, name) for module, names in BARE.items() for name in names}
    for kernel, names in kernels.items():
        assert (kernel.with_elements is None) == bool(names & bare), names
        if kernel.with_elements is None:
            with pytest.raises(InputError, match="has force elements, which are not part of"):
                engine.evaluate_with(kernel, sprung, [np.zeros(N)] * len(kernel.state))


def test_what_is_indifferent_to_forces_is_so():
    """The functions of kinematics, masses and impacts, with a strap and without: the same bits."""
    strap = kg.SpringDamper(MODEL.link_names[-1], other_point=[0, 0, 3], stiffness=10.0, damping=1.0)
    q, v, a = states()
    tip = [kg.Contact(MODEL.link_names[-1], directions="x")]

    def everything(model):
        held, link = kg.ConstraintSet(model, tip), MODEL.link_names[-1]
        return [
            kg.mass_matrix(model, q), kg.forward_kinematics(model, q, v, a), kg.point_motion(model, q, v, a, link=link),
            kg.jacobian(model, q, link=link), kg.momentum(model, q, v), kg.momentum_derivatives(model, q, v),
            kg.forward_kinematics_derivatives(model, q, v, a), kg.inverse_dynamics_regressor(model, q, v, a),
            kg.inverse_dynamics_load_derivatives(model, q), kg.impact(model, held, q, v),
            kg.impact_derivatives(model, held, q, v), held.derivatives(q, v, a), held.curvature(q, [2.0]),
        ]  # fmt: skip

    for x, y in zip(everything(MODEL), everything(MODEL.replace(elements={"strap": strap})), strict=True):
        assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y
