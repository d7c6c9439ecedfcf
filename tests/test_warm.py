"""Kernels compiled before they are needed."""

import pytest

import kinegrad as kg
from kinegrad import simulate
from kinegrad._kernels.compiler import jit
from kinegrad._kernels.compiler.width import NARROW, WIDTH
from kinegrad.warm import CALLS, FUNCTIONS, compile_kernels
from tests.kernels.child import child, output

# public functions that compute nothing with kernels
NONE = {
    "free", "get_threads", "inertial_parameters", "planar", "prismatic", "revolute", "rotate", "screw", "spherical",
    "translate", "universal", "optimize_design", "objective_value", "objective_gradient",
    "difference", "integrate", "neutral", "random_configuration", "load", "save",
}  # fmt: skip


def test_every_public_function_can_be_named():
    public = {name for module in (kg, simulate) for name in module.__all__ if name[0].islower()}
    public = {name for name in public if callable(getattr(simulate, name, None) or getattr(kg, name))}
    assert public - NONE == {name for name in FUNCTIONS if "." not in name}


def test_every_call_runs():
    """The labels are what a progress bar shows; each call is one that its function takes."""
    for label, (function, call) in CALLS.items():
        assert function in FUNCTIONS, label
        call()


@pytest.mark.slow
@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled without the JIT")
def test_what_was_compiled_is_found_by_another_process(tmp_path):
    setting = {"KINEGRAD_CACHE_DIR": str(tmp_path)}
    script = """
from kinegrad.warm import compile_kernels
seen = []
found = compile_kernels(["mass_matrix", "jacobian"], processes=2, progress=lambda *step: seen.append(step))
print(found.labels, sorted(step[0] for step in seen), [step[1:] for step in seen])
"""
    assert output(child(script, **setting)) == "('M', 'Jacobians') ['Jacobians', 'M'] [(1, 2), (2, 2)]\n"
    kept = {path.name.split("-")[0] for path in tmp_path.glob("compiled-*/*.kernel")}
    kernels = {"crba.crba", "kinematics.jacobians"}
    assert kept == (kernels if NARROW == WIDTH else kernels | {f"{kernel}_few" for kernel in kernels})
    script = """
import kinegrad as kg
from kinegrad._kernels.compiler import cache
def missed(self):
    raise AssertionError("compiled again")
cache.Cache.missed = missed
arm = kg.samples.puma560()
print(kg.mass_matrix(arm, [0.1] * 6).shape, kg.mass_matrix(arm, [[0.1] * 6] * 20).shape)
"""
    assert output(child(script, **setting)) == "(6, 6) (20, 6, 6)\n"


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (["mass_matirx"], "function 'mass_matirx' has no kernels; did you mean 'mass_matrix'"),
        ("mass_matrix", "`functions` is 'mass_matrix'; expected names"),
        (3, "`functions` is 3; expected names"),
        ([], "`functions` names none"),
    ],
)
def test_wrong_functions_are_named(functions, message):
    with pytest.raises(kg.InputError, match=message):
        compile_kernels(functions)


@pytest.mark.parametrize("processes", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_processes(processes):
    with pytest.raises(kg.InputError, match=r"`processes` is .*; expected a whole number of at least 1"):
        compile_kernels(["mass_matrix"], processes=processes)
