"""Signals at random moments, in children: whatever runs, an interrupt is raised, and leaves everything in order.

A child does some work again and again: it compiles, calls kernels on two threads, steps, differentiates, writes files,
forks.  It is sent SIGINT after random times.  Each must arrive in its script as KeyboardInterrupt, after which the same
work gives the same bits, and there are no temporary files.  The command line is sent SIGTERM, SIGINT and SIGHUP, which
it promises to answer with 128 plus their number, with a whole output file or none.

When a signal comes depends on the machine, so a case is not repeated exactly by its seed; only a hang meets a limit.
"""

import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import simulate as sim
from kinegrad.io import read_trajectory, write_trajectory
from tests.fuzz.cases import cases
from tests.kernels.child import child, ended, stopping
from tests.limits import LIMIT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals and forks as POSIX has them"),
]

MODEL = kg.samples.spatial_chain(6)
DESIGN = kg.Design(MODEL, ["gravity.x", f"{MODEL.link_names[2]}.mass", f"{MODEL.joint_names[1]}.damping"])
Q, V, A = np.random.default_rng(8).normal(size=(3, 4000, MODEL.n))
TIMES = np.arange(1500.0)


# --- work, in the child -----------------------------------------------------------------------------------------------


def compiling(folder):
    """Four kernels; the cache is empty."""
    few = slice(0, 5)
    yield kg.potential_energy(MODEL, Q[few])
    yield kg.mass_matrix(MODEL, Q[few])
    yield kg.inverse_dynamics(MODEL, Q[few], V[few], A[few])
    yield kg.forward_kinematics(MODEL, Q[few]).transform


def batches(folder):
    """On two threads; `out` is not written to after a call has ended, which the next round would show."""
    found = kg.inverse_dynamics_derivatives(MODEL, Q, V, A, threads=2)
    yield from (found.tau, found.dtau_dq, found.dtau_dv)
    yield kg.forward_dynamics(MODEL, Q, V, A, threads=2, out=np.zeros(Q.shape))


def steps(folder):
    yield sim.simulate_fixed(MODEL, Q[0], V[0], step=1e-4, steps=2000, every=1000).q
    yield sim.simulate_fixed(MODEL, Q[:40], V[:40], step=1e-4, steps=20, design=DESIGN, every=10).dq_dp
    yield sim.simulate_fixed(MODEL, Q[0], V[0], step=1e-3, steps=3, method="implicit_midpoint").q


def adjoint(folder):
    swing = sim.Objective(integral=[sim.KineticEnergy()], end=[sim.PotentialEnergy()])
    found = sim.adjoint_gradient(MODEL, Q[0], V[0], swing, step=1e-3, steps=50, design=DESIGN)
    yield from (found.dvalue_dp, found.dvalue_dq0, found.dvalue_dtau)
    yield sim.simulate(MODEL, Q[0], V[0], [0, 0.05]).q


def designs(folder):
    yield kg.forward_dynamics_design_derivatives(DESIGN, Q[:1000], V[:1000], A[:1000], threads=2)
    yield kg.inverse_dynamics_design_vjp(DESIGN, Q, V, A, A, threads=2)


def files(folder):
    """The same file again and again, which is whole at any time."""
    for suffix in (".csv", ".npz", ".nc"):
        path = folder / f"motion{suffix}"
        count = len(TIMES)
        write_trajectory(path, MODEL, TIMES, Q[:count], V[:count], A[:count])
        yield read_trajectory(path, MODEL).q


def forks(folder):
    """A child of the child computes; it never sees the interrupt, nor runs what its parent does after one."""
    own = os.getpid()
    try:
        if os.fork() == 0:
            same = kg.inverse_dynamics(MODEL, Q, V, A, threads=2).tobytes() == FORKED[0]
            os._exit(0 if same else 3)
    finally:
        if os.getpid() != own:
            os._exit(4)
    reap()
    yield kg.inverse_dynamics(MODEL, Q, V, A, threads=2)


def reap():
    """Wait for all children, which must have ended well."""
    with contextlib.suppress(ChildProcessError):
        while True:
            _, status = os.waitpid(-1, 0)
            assert status == 0, f"a forked child ended with status {status}"


FORKED = []  # what children of forks are to compute
WORK = {work.__name__: work for work in (compiling, batches, steps, adjoint, designs, files, forks)}


def numbers(name, folder):
    return [np.asarray(x).tobytes() for x in WORK[name](folder)]


def run(name, folder, interrupts):
    """Work until so many interrupts have come; each is answered on stdout once all is found to be in order."""
    engine.threads._GRAIN = 1
    if name == "forks":
        FORKED.append(kg.inverse_dynamics(MODEL, Q, V, A, threads=1).tobytes())
    wanted = (
        np.load(folder / "wanted.npy", allow_pickle=True).tolist() if name == "compiling" else numbers(name, folder)
    )
    caught = told = 0
    print("ready", flush=True)
    while True:
        try:
            while told < interrupts:  # within `try`: an interrupt may come at the end of the loop, too
                if told < caught:
                    check_order(name, folder, wanted)
                    told = caught
                    print("caught", told, flush=True)
                else:
                    assert numbers(name, folder) == wanted
            return
        except KeyboardInterrupt:
            caught += 1


def check_order(name, folder, wanted):
    """After an interrupt: nothing temporary is left, files are whole, and numbers the same."""
    reap()
    if name == "files":
        found = sorted(path.name for path in folder.iterdir())
        assert found == ["motion.csv", "motion.nc", "motion.npz"], found
        for path in folder.iterdir():
            assert len(read_trajectory(path, MODEL).q) == len(TIMES)
    assert numbers(name, folder) == wanted, "other numbers after an interrupt"


SCRIPT = """
import sys
from pathlib import Path
from tests.fuzz.test_signals import run
run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
"""


# --- the parent -------------------------------------------------------------------------------------------------------


def wait(process, seconds):
    """Let the child run for a while; fail if it ends meanwhile."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=seconds)
        raise AssertionError(f"the child has ended with {code}\n{process.stderr.read()}")


def one_case(name, seed, folder, interrupts=5):
    rng = random.Random(f"{name} {seed}")
    environment = {"KINEGRAD_QUIET": "1"}
    if name == "compiling":
        np.save(folder / "wanted.npy", np.array(numbers(name, folder), dtype=object))
        environment["KINEGRAD_CACHE_DIR"] = str(folder / "cache")
    process = child(SCRIPT, name, folder, interrupts, **environment)
    with stopping(process):
        assert process.stdout.readline() == "ready\n", process.communicate(timeout=LIMIT)[1]
        for k in range(interrupts):
            wait(process, rng.expovariate(5.0) * rng.choice([0.01, 0.3, 1.0]))
            process.send_signal(signal.SIGINT)
            answer = process.stdout.readline()
            assert answer == f"caught {k + 1}\n", f"{answer!r}; {process.communicate(timeout=LIMIT)[1]}"
        code, _, err = ended(process)
    assert code == 0, f"exit code {code}\n{err}"
    assert not err, err
    assert not list(folder.rglob(".kinegrad-*"))
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize("name", WORK)
def test_interrupts(name, tmp_path):
    for seed in range(cases(1, cost=1000)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            one_case(name, seed, folder)
        except Exception as error:
            error.add_note(f"one_case({name!r}, {seed}, Path(...))")
            raise


COMMAND = """
import sys
from kinegrad import cli, io
sys.argv = ["kinegrad", "inverse-dynamics", "puma560", "--trajectory", sys.argv[1], "--output", sys.argv[2]]
print("ready", flush=True)
cli.main()
"""


def one_command(seed, folder, motion):
    """The command line, sent a signal; its output is whole, or not there, or what was there before."""
    rng = random.Random(seed)
    number = rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    output = folder / f"tau{rng.choice(['.csv', '.npz', '.nc'])}"
    if before := rng.random() < 0.5:
        output.write_bytes(b"before")
    process = child(COMMAND, motion, output, KINEGRAD_QUIET="1")
    with stopping(process):
        assert process.stdout.readline() == "ready\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=rng.uniform(0, 1.0) * rng.choice([0.1, 1.0]))
        process.send_signal(number)
        code, _, err = ended(process)
    assert code in (0, 128 + number, -number), f"exit code {code}\n{err}"  # the last before or after its own time
    assert code < 0 or "Traceback" not in err, err
    there = sorted(path.name for path in folder.iterdir())
    assert there in ([], [output.name]), there
    if code == 0:
        assert output.stat().st_size > 1000
    elif before:
        assert output.read_bytes() == b"before" or output.stat().st_size > 1000


def test_the_command_line(tmp_path):
    puma = kg.samples.puma560()
    motion = tmp_path / "motion.npz"
    write_trajectory(motion, puma, None, *np.random.default_rng(0).normal(size=(3, 5000, puma.n)))
    for seed in range(cases(3, cost=500)):
        folder = Path(tmp_path, str(seed))
        folder.mkdir()
        try:
            one_command(seed, folder, motion)
        except Exception as error:
            error.add_note(f"one_command({seed}, Path(...), ...)")
            raise
