"""The problems of :mod:`benchmarks.motion` in OpenSim Moco: one process each, its processor time, stopped if it lasts.

    python -m benchmarks.moco arm 20          # the time-optimal arm of xiang2008, 20 mesh intervals
    python -m benchmarks.moco lift 20         # its lifting
    python -m benchmarks.moco chain5 20       # a planar chain of 5 links
    python -m benchmarks.moco chain10 20 --limit 300

Moco transcribes by Hermite–Simpson collocation, with speeds and torques of all mesh points as unknowns, differentiates
the multibody dynamics by finite differences, and calls IPOPT with a limited-memory Hessian: its defaults.  Tolerances
are 1e-6, as ours; one thread.  Time is what the process has used of its processor from the study on, without imports.
Runs are stopped by their processor time, so that a busy machine does not make them fail.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TOLERANCE = 1e-6
LENGTH, MASS, INERTIA, TORQUE = 0.8, 1.0, 0.2, 10.0  # both links of [xiang2008] together, Table 1; each torque
GRAVITY, LOAD, WEIGHT = 9.8062, 10.0, 0.01  # its example 2: m/s², N, u of (67)
LIMIT = 400.0  # seconds of processor time of a process
PATIENCE = 20.0  # how many times longer it may take on a busy machine, imports included


@dataclass(frozen=True)
class Peer:
    """What Moco found: `success` False and `final_time` None where it did not end in time."""

    problem: str
    intervals: int
    final_time: float | None
    objective: float | None
    iterations: int | None
    seconds: float
    success: bool
    status: str


def chain_ends(links: int) -> tuple[list[float], list[float]]:
    """Where a chain starts and ends: with two links [xiang2008] (66), with more the elbow's angle shared by all."""
    rest = links - 1
    return [0.0] + [-2.0 / rest] * rest, [1.0] + [-1.0 / rest] * rest


def solve(problem: str, intervals: int, *, hessian: str = "limited-memory", limit: float = LIMIT) -> Peer:
    """Solve a problem in a process of its own, which ends after `limit` seconds of processor time, however it goes."""
    command = [sys.executable, "-m", "benchmarks.moco", problem, str(intervals), "--hessian", hessian, "--child"]
    command += ["--limit", str(limit)]
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **alone}
    ) as process:
        try:
            output, _ = process.communicate(timeout=60.0 + PATIENCE * limit)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Peer(problem, intervals, None, None, None, limit, False, f"not finished after {limit:g} s")
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        tail = output.strip().splitlines()[-1:] or ["no output"]
        return Peer(problem, intervals, None, None, None, 0.0, False, f"failed: {tail[0]}")
    found: dict[str, Any] = json.loads(lines[-1])
    counts = [int(match) for match in re.findall(r"Number of Iterations\.*:\s*(\d+)", output)]
    return Peer(**{**found, "iterations": counts[-1] if counts else found["iterations"]})


def run_here(problem: str, intervals: int, hessian: str, limit: float) -> Peer:
    """Solve a problem in this process, which ends if that takes longer than `limit` seconds."""
    import opensim as osim

    links = int(problem.removeprefix("chain")) if problem.startswith("chain") else 2
    lift = problem == "lift"
    first, last = ([1.32, -2.37], [2.80, -2.37]) if lift else chain_ends(links)
    model = _chain(osim, links, gravity=GRAVITY if lift else 0.0, load=LOAD if lift else 0.0)
    study = osim.MocoStudy()
    stated = study.updProblem()
    stated.setModel(model)
    stated.setTimeBounds(osim.MocoInitialBounds(0.0), osim.MocoFinalBounds(0.05, 5.0))
    for k in range(links):
        path = f"/jointset/joint{k}/q{k}"
        low, high = min(first[k], last[k]) - 3.0, max(first[k], last[k]) + 3.0
        stated.setStateInfo(f"{path}/value", [low, high], [first[k]], [last[k]])
        stated.setStateInfo(f"{path}/speed", [-50.0, 50.0], [0.0], [0.0])
        stated.setControlInfo(f"/forceset/motor{k}", [-TORQUE, TORQUE])
    mixed = problem != "arm"
    stated.addGoal(osim.MocoFinalTimeGoal("time", 1.0 - WEIGHT if mixed else 1.0))
    if mixed:
        stated.addGoal(osim.MocoControlGoal("effort", WEIGHT))
    solver = study.initCasADiSolver()
    solver.set_num_mesh_intervals(intervals)
    solver.set_parallel(0)
    solver.set_optim_hessian_approximation(hessian)
    solver.set_optim_convergence_tolerance(TOLERANCE)
    solver.set_optim_constraint_tolerance(TOLERANCE)
    before = _processor_time()
    last = math.ceil(before + limit)
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + 5))
    solution = study.solve()
    seconds = _processor_time() - before
    success = bool(solution.success())
    if not success:
        solution.unseal()
    return Peer(
        problem, intervals, float(solution.getFinalTime()), float(solution.getObjective()),
        int(solution.getNumIterations()), seconds, success, str(solution.getStatus()),
    )  # fmt: skip


def _chain(osim: Any, links: int, *, gravity: float, load: float) -> Any:
    """Hinges about z between equal links along x: with two, those of ``samples.two_link``."""
    length, mass, inertia = LENGTH / links, MASS / links, INERTIA / links
    model = osim.Model()
    model.setName("chain")
    model.setGravity(osim.Vec3(0, -gravity, 0))
    parent, at = model.getGround(), 0.0
    zero = osim.Vec3(0)
    for k in range(links):
        body = osim.Body(f"link{k}", mass, osim.Vec3(length / 2, 0, 0), osim.Inertia(0, inertia, inertia))
        model.addBody(body)
        joint = osim.PinJoint(f"joint{k}", parent, osim.Vec3(at, 0, 0), zero, body, zero, zero)
        joint.updCoordinate().setName(f"q{k}")
        model.addJoint(joint)
        motor = osim.CoordinateActuator(f"q{k}")
        motor.setName(f"motor{k}")
        motor.setOptimalForce(1.0)
        motor.setMinControl(-TORQUE)
        motor.setMaxControl(TORQUE)
        model.addForce(motor)
        parent, at = body, length
    if load:
        weight = osim.PrescribedForce("load", parent)
        weight.setForceIsInGlobalFrame(True)
        weight.setPointIsInGlobalFrame(False)
        parts = [osim.Constant(0.0), osim.Constant(-load), osim.Constant(0.0)]
        weight.setForceFunctions(*parts)
        weight.setPointFunctions(osim.Constant(length), osim.Constant(0.0), osim.Constant(0.0))
        model.addForce(weight)
    model.finalizeConnections()
    return model


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.moco", description="One problem in OpenSim Moco.")
    parser.add_argument("problem", help="arm, lift, or chain and a number of links")
    parser.add_argument("intervals", type=int, help="of the mesh")
    parser.add_argument("--hessian", default="limited-memory", choices=["limited-memory", "exact"])
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which it is stopped")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not re.fullmatch(r"arm|lift|chain([2-9]|[1-9]\d+)", options.problem):
        parser.error(f"there is no problem {options.problem!r}; there are arm, lift, chain2, chain3, …")
    if not options.child:
        print(
            json.dumps(asdict(solve(options.problem, options.intervals, limit=options.limit, hessian=options.hessian)))
        )
        return
    with tempfile.TemporaryDirectory() as place:  # Moco leaves files where it works
        back = Path.cwd()
        os.chdir(place)
        try:
            found = run_here(options.problem, options.intervals, options.hessian, options.limit)
        finally:
            os.chdir(back)
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
