"""Compile kernels before they are needed, several at a time.

A kernel is compiled on its first call, and kept (docs/architecture.md).  What is compiled depends on the function and
its options, not on the model; where the processor's registers are wide, also on whether states are few (four at most)
or many.  So the smallest call of each does for all, and what it has compiled for few is compiled for many, too.

>>> from kinegrad.warm import FUNCTIONS
>>> "inverse_dynamics" in FUNCTIONS
True
"""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad.errors import InputError, SolveError, shown
from kinegrad.io.trc_file import Markers
from kinegrad.model import LinearFunction
from kinegrad.model.coordinates import CoupledCoordinate
from kinegrad.model.names import closest
from kinegrad.objectives import KineticEnergy, Objective
from kinegrad.recordings import inverse_kinematics
from kinegrad.simulate import adjoint_gradient, simulate_fixed

__all__ = ["CALLS", "FUNCTIONS", "Compiled", "compile_kernels"]


class Compiled(NamedTuple):
    """What was compiled: labels, and total wall-clock seconds."""

    labels: tuple[str, ...]
    seconds: float


def _calls() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Label → public function, and the smallest call that needs the kernel; those that take longest first."""
    arm = kg.samples.two_link()
    q = v = a = np.zeros(2)
    prescribed = [arm.joint_names[0]]
    design = kg.Design(arm, ["forearm.mass"])
    pulled = kg.Design(arm, ["forearm.load.force.x"], loads=kg.Loads(force={"forearm": [1.0, 0.0, 0.0]}))
    tip = kg.ConstraintSet(arm, [kg.Contact("forearm")])
    floor = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    held = arm.replace(elements={"strap": kg.SpringDamper("forearm", other_point=[0, 1, 0], stiffness=1.0)})
    steps: dict[str, Any] = {"step": 1e-3, "steps": 1}
    swing = Objective(integral=[KineticEnergy()])
    seen = Markers(np.zeros(1), ("forearm",), np.full((1, 1, 3), 0.3))

    def of_design(function: Callable[..., Any], *state: Any, **options: Any) -> Callable[[], Any]:
        return lambda: function(design, *state, **options)

    def of_loads(function: Callable[..., Any], *state: Any, **options: Any) -> Callable[[], Any]:
        return lambda: function(pulled, *state, **options)

    def along(function: Callable[..., Any], parts: int, mode: str, **options: Any) -> Callable[[], Any]:
        return lambda: kg.directional(function, arm, [q] * parts, [np.eye(2)] * parts, mode=mode, **options)

    def of_arm(function: Callable[..., Any], *state: Any, **options: Any) -> Callable[[], Any]:
        return lambda: function(arm, *state, **options)

    def of_coordinates() -> None:
        geared = arm.replace(coordinates=[CoupledCoordinate("both", (0, 1), (LinearFunction(), LinearFunction(-1.0)))])
        kg.forward_dynamics(geared, [0.0], [0.0], [0.0], method="crba")
        kg.forward_dynamics_derivatives(geared, [0.0], [0.0], [0.0])

    return {
        "steps, tangents": ("simulate_fixed", of_arm(simulate_fixed, q, v, design=design, **steps)),
        "steps, tangents of loads": ("simulate_fixed", of_arm(simulate_fixed, q, v, design=pulled, **steps)),
        "steps, several models": ("simulate_fixed", lambda: simulate_fixed([arm, arm], q, v, **steps)),
        "steps": ("simulate_fixed", of_arm(simulate_fixed, q, v, **steps)),
        "adjoint": ("adjoint_gradient", of_arm(adjoint_gradient, q, v, swing, design=design, **steps)),
        "τ, ∂τ, ∂²τ": (
            "inverse_dynamics_second_order",
            of_arm(kg.inverse_dynamics_second_order, q, v, a, v),
        ),
        "∂²τ": ("inverse_dynamics_hessian", of_arm(kg.inverse_dynamics_hessian, q, v, a, v)),
        "∂²τ·x": ("inverse_dynamics_hvp", of_arm(kg.inverse_dynamics_hvp, q, v, a, v, q, v, a)),
        "∂²τ·x, joints that slide": (
            "inverse_dynamics_hvp",
            lambda: kg.inverse_dynamics_hvp(kg.samples.cart_pendulum(), q, v, a, v, q, v, a),
        ),
        "∂²τ·x, duals": (
            "inverse_dynamics_hvp",
            of_arm(kg.inverse_dynamics_hvp, q, v, a, v, q, v, a, method="dual"),
        ),
        "∂²a": ("forward_dynamics_hessian", of_arm(kg.forward_dynamics_hessian, q, v, a, v)),
        "∂a": ("forward_dynamics_derivatives", of_arm(kg.forward_dynamics_derivatives, q, v, a)),
        "coordinates that are not joints": ("forward_dynamics_derivatives", of_coordinates),
        "∂τ": ("inverse_dynamics_derivatives", of_arm(kg.inverse_dynamics_derivatives, q, v, a)),
        "∂τ, Lagrangian": (
            "inverse_dynamics_derivatives",
            of_arm(kg.inverse_dynamics_derivatives, q, v, a, method="lagrange"),
        ),
        "∂(a, f)": (
            "constrained_dynamics_derivatives",
            of_arm(lambda arm: kg.constrained_dynamics_derivatives(arm, floor, q, v, a)),
        ),
        "∂(v⁺, Λ)": ("impact_derivatives", of_arm(lambda arm: kg.impact_derivatives(arm, floor, q, v))),
        "a, f": ("constrained_dynamics", of_arm(lambda arm: kg.constrained_dynamics(arm, floor, q, v, a))),
        "v⁺, Λ": ("impact", of_arm(lambda arm: kg.impact(arm, floor, q, v))),
        "∂(a, τ)/∂p": (
            "hybrid_dynamics_design_derivatives",
            of_design(kg.hybrid_dynamics_design_derivatives, q, v, a, a, prescribed=prescribed),
        ),
        "∂(a, τ)/∂p of loads": (
            "hybrid_dynamics_design_derivatives",
            of_loads(kg.hybrid_dynamics_design_derivatives, q, v, a, a, prescribed=prescribed),
        ),
        "∂a/∂p": (
            "forward_dynamics_design_derivatives",
            of_design(kg.forward_dynamics_design_derivatives, q, v, a),
        ),
        "∂a/∂p of loads": (
            "forward_dynamics_design_derivatives",
            of_loads(kg.forward_dynamics_design_derivatives, q, v, a),
        ),
        "∂τ/∂p": (
            "inverse_dynamics_design_derivatives",
            of_design(kg.inverse_dynamics_design_derivatives, q, v, a),
        ),
        "∂τ/∂p of loads": (
            "inverse_dynamics_design_derivatives",
            of_loads(kg.inverse_dynamics_design_derivatives, q, v, a),
        ),
        "∂τ/∂p of elements": (
            "inverse_dynamics_design_derivatives",
            lambda: kg.inverse_dynamics_design_derivatives(kg.Design(held, ["strap.stiffness"]), q, v, a),
        ),
        "∂²τ·x of elements": (
            "inverse_dynamics_hvp",
            lambda: kg.inverse_dynamics_hvp(held, q, v, a, v, q, v, a),
        ),
        "∂τ of elements": ("inverse_dynamics_derivatives", lambda: kg.inverse_dynamics_derivatives(held, q, v, a)),
        "τ of elements": ("inverse_dynamics", lambda: kg.inverse_dynamics(held, q, v, a)),
        "∂²τ/∂p": ("inverse_dynamics_design_hessian", of_design(kg.inverse_dynamics_design_hessian, q, v, a, v)),
        "∂²τ/∂p of elements": (
            "inverse_dynamics_design_hessian",
            lambda: kg.inverse_dynamics_design_hessian(kg.Design(held, ["strap.stiffness"]), q, v, a, v),
        ),
        "w ∂τ/∂p": ("inverse_dynamics_design_vjp", of_design(kg.inverse_dynamics_design_vjp, q, v, a, v)),
        "a, along directions": ("directional", along(kg.forward_dynamics, 3, "tangent")),
        "τ, along directions": ("directional", along(kg.inverse_dynamics, 3, "tangent")),
        "constraints, along directions": (
            "directional",
            along(kg.constrained_dynamics, 3, "tangent", constraints=floor),
        ),
        "M, along directions": ("directional", along(kg.mass_matrix, 1, "tangent")),
        "M, along directions at once": ("directional", along(kg.mass_matrix, 1, "structured")),
        "∂τ·x": ("inverse_dynamics_jvp", of_arm(kg.inverse_dynamics_jvp, q, v, a, q, v, a)),
        "w·∂τ": ("inverse_dynamics_vjp", of_arm(kg.inverse_dynamics_vjp, q, v, a, v)),
        "a, τ": ("hybrid_dynamics", of_arm(kg.hybrid_dynamics, q, v, a, a, prescribed=prescribed)),
        "a": ("forward_dynamics", of_arm(kg.forward_dynamics, q, v, a)),
        "a, by M": ("forward_dynamics", of_arm(kg.forward_dynamics, q, v, a, method="crba")),
        "τ": ("inverse_dynamics", of_arm(kg.inverse_dynamics, q, v, a)),
        "τ, Lagrangian": ("inverse_dynamics", of_arm(kg.inverse_dynamics, q, v, a, method="lagrange")),
        "M": ("mass_matrix", of_arm(kg.mass_matrix, q)),
        "∂M/∂p": ("mass_matrix_design_derivatives", of_design(kg.mass_matrix_design_derivatives, q)),
        "∂T/∂p": ("transform_design_derivatives", of_design(kg.transform_design_derivatives, q)),
        "∂x/∂p": (
            "point_motion_design_derivatives",
            of_design(kg.point_motion_design_derivatives, q, v, a, link="forearm"),
        ),
        "∂energy/∂p": ("energy_design_derivatives", of_design(kg.energy_design_derivatives, q, v)),
        "∂T": ("forward_kinematics_derivatives", of_arm(kg.forward_kinematics_derivatives, q, v, a)),
        "∂x": ("point_motion_derivatives", of_arm(kg.point_motion_derivatives, q, v, a, link="forearm")),
        "∂²x": (
            "point_motion_hessian",
            of_arm(kg.point_motion_hessian, q, v, a, link="forearm", w_position=[1.0, 0.0, 0.0]),
        ),
        "∂²momentum": ("momentum_hessian", of_arm(kg.momentum_hessian, q, v, w_linear=[1.0, 0.0, 0.0])),
        "∂²center": ("center_of_mass_hessian", of_arm(kg.center_of_mass_hessian, q, [1.0, 0.0, 0.0])),
        "∂momentum": ("momentum_derivatives", of_arm(kg.momentum_derivatives, q, v)),
        "∂load": ("inverse_dynamics_load_derivatives", of_arm(kg.inverse_dynamics_load_derivatives, q)),
        "φ, G": ("assemble", of_arm(lambda _: tip.closure(q))),
        "φ̇, φ̈": ("project_velocity", of_arm(lambda _: tip.velocity(q, v))),
        "∂²φ": (
            "constrained_dynamics_hessian",
            of_arm(lambda arm: kg.constrained_dynamics_hessian(arm, floor, q, v, a, w_a=v)),
        ),
        "∂φ": ("constrained_dynamics_derivatives", of_arm(lambda _: tip.derivatives(q, v, a))),
        "∂G": ("constrained_dynamics_derivatives", of_arm(lambda _: tip.curvature(q, np.zeros(3)))),
        "∂φ/∂p": (
            "constraint_design_derivatives",
            lambda: kg.constraint_design_derivatives(design, tip, q),
        ),
        "∂G/∂p": (
            "constraint_jacobian_design_derivatives",
            lambda: kg.constraint_jacobian_design_derivatives(design, tip, q),
        ),
        "∂²φ/∂p": (
            "constraint_design_hessian",
            lambda: kg.constraint_design_hessian(design, tip, q, v, np.ones(3), np.ones(3)),
        ),
        "regressor": ("inverse_dynamics_regressor", of_arm(kg.inverse_dynamics_regressor, q, v, a)),
        "motion of links": ("forward_kinematics", of_arm(kg.forward_kinematics, q, v, a)),
        "links": ("forward_kinematics", of_arm(kg.forward_kinematics, q)),
        "points": ("point_motion", of_arm(kg.point_motion, q, v, a, link="forearm")),
        "Jacobians": ("jacobian", of_arm(kg.jacobian, q, link="forearm")),
        "energies": ("kinetic_energy", of_arm(kg.kinetic_energy, q, v)),
        "markers": ("recordings.inverse_kinematics", lambda: inverse_kinematics(arm, seen)),
        "threads that wait": ("set_threads", engine.pool.measure),
        "∂²markers": ("recordings.inverse_kinematics", lambda: inverse_kinematics(arm, seen).covariance),
    }


CALLS = _calls()
# functions whose kernels other functions have, too
_SAME = {
    "assemble_path": "assemble",
    "constrained_hybrid_dynamics": "mass_matrix",
    "constrained_hybrid_dynamics_derivatives": "inverse_dynamics_derivatives",
    "constrained_hybrid_dynamics_design_derivatives": "inverse_dynamics_design_derivatives",
    "hybrid_dynamics_derivatives": "inverse_dynamics_derivatives",
    "bias_forces": "inverse_dynamics",
    "inverse_dynamics_hessian_tensors": "inverse_dynamics_hessian",
    "gravity_forces": "inverse_dynamics",
    "potential_energy": "kinetic_energy",
    "center_of_mass": "kinetic_energy",
    "momentum": "kinetic_energy",
    "center_of_mass_derivatives": "momentum_derivatives",
    "simulate": "forward_dynamics",
    "constrained_inverse_dynamics": "inverse_dynamics",
    "constrained_inverse_dynamics_derivatives": "inverse_dynamics_derivatives",
    "constrained_dynamics_load_derivatives": "inverse_dynamics_load_derivatives",
    "constrained_dynamics_design_derivatives": "inverse_dynamics_design_derivatives",
    "impact_design_derivatives": "inverse_dynamics_design_derivatives",
}
FUNCTIONS = tuple(sorted({function for function, _ in CALLS.values()} | set(_SAME)))


def compile_kernels(
    functions: Iterable[str] | None = None,
    *,
    processes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Compiled:
    """Compile what functions need, in several processes, into the cache of compiled code.

    What is there already takes the time of loading it.

    Parameters
    ----------
    functions : iterable of str, optional
        Names of public functions, such as ``"inverse_dynamics"``; all if not given.
    processes : int, optional
        How many at a time; as many as there are processors if not given.
    progress : callable, optional
        Called as ``progress(label, done, total)`` after each kernel.

    Returns
    -------
    Compiled
        Labels, and total seconds.

    Examples
    --------
    >>> compile_kernels(["mass_matrix"]).labels  # doctest: +SKIP
    ('M',)
    """
    labels = _labels(functions)
    count = os.cpu_count() or 1
    workers = count if processes is None else processes
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"`processes` is {shown(processes)}; expected a whole number of at least 1")
    start = time.perf_counter()
    todo, done = iter(labels), 0
    programs = [_start() for _ in range(min(workers, len(labels)))]
    with ThreadPoolExecutor(len(programs)) as pool:
        try:
            first = zip(programs, todo, strict=False)
            tasks = {pool.submit(_compile, program, label): program for program, label in first}
            while tasks:
                finished, _ = wait(tasks, return_when=FIRST_COMPLETED)
                for task in finished:
                    program, label, done = tasks.pop(task), task.result(), done + 1
                    if progress is not None:
                        progress(label, done, len(labels))
                    for following in islice(todo, 1):
                        tasks[pool.submit(_compile, program, following)] = program
        finally:  # an interrupt does not wait for what is being compiled
            for program in programs:
                program.kill()
    for program in programs:
        program.communicate()
    return Compiled(labels, time.perf_counter() - start)


def _start() -> subprocess.Popen[str]:
    """A program that reads labels and answers each once its kernels are compiled."""
    script = "from kinegrad.warm import _serve; _serve()"
    paths = os.pathsep.join([str(Path(kg.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"KINEGRAD_QUIET": "1", "PYTHONPATH": paths}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True, env=environment)


def _compile(program: subprocess.Popen[str], label: str) -> str:
    """Have a program compile what `label` needs."""
    assert program.stdin is not None
    assert program.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        print(ascii(label), file=program.stdin, flush=True)
    if program.stdout.readline() != "done\n":
        raise SolveError(f"the program that compiles {label!r} ended with exit code {program.wait()}; see its message")
    return label


def _serve() -> None:
    """Compile what each line names, until there are no more."""
    for line in sys.stdin:
        CALLS[ast.literal_eval(line)][1]()
        engine.widen()
        try:
            print("done", flush=True)
        except BrokenPipeError:  # whoever asked was killed
            os._exit(1)


def _labels(functions: Iterable[str] | None) -> tuple[str, ...]:
    if functions is None:
        return tuple(CALLS)
    if isinstance(functions, str) or not isinstance(functions, Iterable):
        raise InputError(f"`functions` is {shown(functions)}; expected names, such as ['inverse_dynamics']")
    wanted = set()
    for name in functions:
        if name not in FUNCTIONS:
            close = closest(str(name), FUNCTIONS)
            hint = f"expected one of {', '.join(FUNCTIONS)}"
            if close:
                hint = f"did you mean {' or '.join(map(repr, close))}?"
            raise InputError(f"function {shown(name)} has no kernels; {hint}")
        wanted.add(_SAME.get(name, name))
    if not wanted:
        raise InputError("`functions` names none; expected at least one, or None for all")
    return tuple(label for label, (function, _) in CALLS.items() if function in wanted)
