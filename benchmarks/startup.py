"""Start-up: import, first call, compilation

Each number is measured in a new Python process, with a folder of compiled code of its own: warm for the
import and the first call (best of 5), empty for each compilation, which happens once on a machine.  Python finds its
byte code in a folder of the run, since it may be told not to keep any (``PYTHONDONTWRITEBYTECODE``).
Compilation is given in seconds of the processor, which other work on the machine hardly changes, after Numba's own
start; the call itself, a few milliseconds at most, is part of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.timing import QUICK, Measurement, Row

BYTE_CODE = tempfile.TemporaryDirectory()  # until the process ends

IMPORT = """
from time import perf_counter
import numpy, numba
start = perf_counter()
import kinegrad
print(perf_counter() - start)
"""
CALL = """
from time import perf_counter, process_time
import numba
import numpy as np
import kinegrad as kg
from kinegrad.simulate import simulate_fixed
human = kg.samples.human43(thickness=0.1)  # slender limbs would be singular in forward dynamics
design = kg.Design(human, ["head.mass"])
q = v = a = np.zeros((301, 43))
{before}
start = {clock}()
{call}
print({clock}() - start)
"""
KERNELS = {
    "rnea": "kg.inverse_dynamics(human, q, v, a, threads=1)",
    "lagrange": "kg.inverse_dynamics(human, q, v, a, method='lagrange', threads=1)",
    "crba": "kg.mass_matrix(human, q, threads=1)",
    "aba": "kg.forward_dynamics(human, q, v, a, threads=1)",
    "tree_solve": "kg.forward_dynamics(human, q, v, a, method='crba', threads=1)",
    "hybrid": "kg.hybrid_dynamics(human, q, v, a, a, prescribed=human.joint_names[:6], threads=1)",
    "rnea_derivatives": "kg.inverse_dynamics_derivatives(human, q, v, a, threads=1)",
    "lagrange_derivatives": "kg.inverse_dynamics_derivatives(human, q, v, a, method='lagrange', threads=1)",
    "jvp": "kg.inverse_dynamics_jvp(human, q, v, a, q, v, a, threads=1)",
    "vjp": "kg.inverse_dynamics_vjp(human, q, v, a, q, threads=1)",
    "load_derivatives": "kg.inverse_dynamics_load_derivatives(human, q, threads=1)",
    "aba_derivatives": "kg.forward_dynamics_derivatives(human, q, v, a, threads=1)",
    "transforms": "kg.forward_kinematics(human, q, threads=1)",
    "motion": "kg.forward_kinematics(human, q, v, a, threads=1)",
    "points": "kg.point_motion(human, q, v, a, link='head', threads=1)",
    "jacobians": "kg.jacobian(human, q, link='head', threads=1)",
    "energies": "kg.kinetic_energy(human, q, v, threads=1)",
    "regressor": "kg.inverse_dynamics_regressor(human, q[:1], v[:1], a[:1], threads=1)",
    "rnea_reverse.by_constants": "kg.inverse_dynamics_design_vjp(design, q, v, a, v, threads=1)",
    "kinematics_derivatives.links": "kg.forward_kinematics_derivatives(human, q[:1], threads=1)",
    "kinematics_derivatives.points": "kg.point_motion_derivatives(human, q, v, a, link='head', threads=1)",
    "momentum_derivatives": "kg.momentum_derivatives(human, q, v, threads=1)",
    "design.inverse_dynamics": "kg.inverse_dynamics_design_derivatives(design, q, v, a, threads=1)",
    "design.forward_dynamics": "kg.forward_dynamics_design_derivatives(design, q, v, a, threads=1)",
    "design.hybrid_dynamics": "kg.hybrid_dynamics_design_derivatives("
    "design, q, v, a, a, prescribed=human.joint_names[:6], threads=1)",
    "design.mass_matrix": "kg.mass_matrix_design_derivatives(design, q, threads=1)",
    "design.energies": "kg.energy_design_derivatives(design, q, v, threads=1)",
    "design.transforms": "kg.transform_design_derivatives(design, q, threads=1)",
    "design.points": "kg.point_motion_design_derivatives(design, q, v, a, link='head', threads=1)",
    "steps.along_states": "simulate_fixed(human, q[0], v[0], step=1e-3, steps=1)",
    "steps.along_designs": "simulate_fixed([human, human], q[0], v[0], step=1e-3, steps=1)",
    "steps.along_directions": "simulate_fixed(human, q[0], v[0], step=1e-3, steps=1, design=design)",
}
FEW = {  # where registers hold more than four states, calls of few have kernels of their own
    "rnea": "kg.inverse_dynamics(human, q[0], v[0], a[0], threads=1)",
    "rnea_derivatives": "kg.inverse_dynamics_derivatives(human, q[0], v[0], a[0], threads=1)",
    "aba_derivatives": "kg.forward_dynamics_derivatives(human, q[0], v[0], a[0], threads=1)",
}
TARGETS = dict.fromkeys(("rnea", "crba", "aba", "transforms", "motion", "points", "jacobians", "energies"), 2.0)
TARGETS |= dict.fromkeys(("rnea_derivatives", "aba_derivatives"), 6.0)
TARGETS |= {name: 8.0 for name in KERNELS if name.startswith(("design.", "steps."))}
ALL = 117.0  # seconds: a third of the 353 that all of these took before building blocks were traced
# The other kernels that a call needs are compiled before the clock starts.
BEFORE = {
    "tree_solve": "kg.mass_matrix(human, q, threads=1); kg.inverse_dynamics(human, q, v, a, threads=1)",
    "steps.along_directions": "simulate_fixed(human, q[0], v[0], step=1e-3, steps=1)",
}
# Seconds that each took before building blocks were traced, on quiet cores of this kind of machine (decision 53).
UNTRACED = {
    "rnea": 8.76, "lagrange": 8.93, "crba": 7.20, "aba": 12.20, "tree_solve": 2.60, "rnea_derivatives": 12.91,
    "lagrange_derivatives": 14.62, "jvp": 11.24, "vjp": 10.17, "load_derivatives": 5.57, "aba_derivatives": 20.59,
    "transforms": 4.82, "motion": 6.61, "points": 5.46, "jacobians": 5.15, "energies": 6.66,
    "kinematics_derivatives.links": 8.11, "kinematics_derivatives.points": 7.27, "momentum_derivatives": 5.99,
    "design.inverse_dynamics": 11.91, "design.forward_dynamics": 19.39, "design.mass_matrix": 12.26,
    "design.energies": 9.41, "design.transforms": 8.20, "steps.along_states": 24.01, "steps.along_designs": 21.34,
    "steps.along_directions": 28.34,
}  # fmt: skip
# Numba's own start, before the clock's.
START = "numba.njit(lambda x: x[0, 0] + 1.0)(q)"


def run(repeats: int) -> list[Row]:
    kernels = dict(list(KERNELS.items())[:1]) if repeats <= QUICK else KERNELS
    first_call = CALL.format(before="", call=KERNELS["rnea"], clock="perf_counter")
    repeats = min(repeats, 5)
    with tempfile.TemporaryDirectory() as folder:
        _seconds(first_call, folder)
        rows: list[Row] = [
            _best("import kinegrad, beyond numpy and numba", IMPORT, folder, repeats, target=0.5),
            _best(
                "first call of inverse_dynamics, compiled before",
                first_call,
                folder,
                repeats,
                target=1.5,
            ),
        ]
    compilations = [_compilation(name, call) for name, call in kernels.items()]
    if kernels is KERNELS:
        total = sum(compilation.value for compilation in compilations)
        compilations.append(Measurement(f"compile all {len(kernels)}, one after the other", total, "s", ALL))
        compilations += [_compilation(name, call, "processor time; for few states") for name, call in FEW.items()]
    return rows + compilations


def _best(name: str, code: str, folder: str, repeats: int, target: float) -> Measurement:
    seconds = [_seconds(code, folder) for _ in range(repeats)]
    note = f"best of {repeats}; median {statistics.median(seconds):.2f} s"
    return Measurement(name, min(seconds), "s", target, note)


def _compilation(name: str, call: str, note: str = "") -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        before = "\n".join(filter(None, (START, BEFORE.get(name))))
        seconds = _seconds(CALL.format(before=before, call=call, clock="process_time"), folder)
    note = note or "processor time" + (f"; before tracing {UNTRACED[name]:.1f} s" if name in UNTRACED else "")
    return Measurement(f"compile `{name}`", seconds, "s", TARGETS.get(name), note)


def _seconds(code: str, folder: str) -> float:
    """What `code` prints when a new process runs it, with its compiled code in `folder`."""
    environment = os.environ | {"KINEGRAD_CACHE_DIR": folder, "KINEGRAD_QUIET": "1"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": BYTE_CODE.name}
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)
