"""Files of results: random different problems never share one, copies always do, and other files are never changed."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad.errors import KinegradError
from kinegrad.motion.nlp import load_solution, solve
from kinegrad.motion.nlp.identity import difference, program_identity
from kinegrad.motion.problem import (
    Boundary,
    Effort,
    Jerk,
    Limits,
    MotionProblem,
    Phase,
    Posture,
    Power,
    Time,
    UserTerm,
)  # fmt: skip
from kinegrad.motion.sweeps import multi_start, sweep
from kinegrad.motion.sweeps.records import FORMAT, Records
from tests.fuzz.cases import cases
from tests.motion.sweeps.problems import Wells, reach


def psi(factor, s, q, **others):
    return factor * (q**2).sum(axis=1), {"q": 2 * factor * q}


def term(factor):
    return UserTerm(partial(psi, factor), 0.1)


def description(random):
    """Random numbers and choices of a problem of an arm, in a mapping that can be changed in one place."""
    return {
        "mass": random.uniform(0.5, 2.0, 2),
        "gravity": random.uniform(-10, 10),
        "duration": np.sort(random.uniform(0.1, 3.0, 2)),
        "segments": int(random.integers(4, 9)),
        "nodes": int(random.integers(1, 3)),
        "start": random.uniform(-1, 0, 2),
        "end": random.uniform(0.5, 1, 2),
        "tau": random.uniform(50, 500, (2, 2)) * [-1, 1],
        "speed": random.uniform(20, 30),
        "weights": random.uniform(0.1, 1, 5),
        "posture": random.uniform(-1, 1),
        "factor": random.uniform(0.5, 2),
        "load": random.uniform(0.1, 2),
    }


def made(of):
    model = samples.two_link(gravity=(0, of["gravity"], 0)).replace(mass=of["mass"])
    phase = Phase(
        duration=tuple(of["duration"]), segments=of["segments"], nodes=of["nodes"], attached={"forearm": of["load"]}
    )
    limits = Limits(tau={"shoulder": tuple(of["tau"][0]), "elbow": tuple(of["tau"][1])}, v=of["speed"])
    w = of["weights"]
    terms = [Time(w[0]), Effort(w[1]), Power(w[2]), Jerk(w[3]), Posture(w[4], q=of["posture"]), term(of["factor"])]
    return MotionProblem(model, phase, [Boundary("start", q=of["start"]), Boundary("end", q=of["end"]), limits], terms)


@pytest.mark.parametrize("seed", range(cases(3)))
def test_two_different_problems_never_share_a_file(tmp_path, seed):
    """One number of a problem is changed, by little or by much: its file is refused; a copy's file is not."""
    random = np.random.default_rng([26, seed])
    of = description(random)
    one = made(of)
    identity = program_identity(one.program)
    with Records(tmp_path / "a.jsonl", {"problem": identity}):
        pass
    for same in (made(copy.deepcopy(of)), pickle.loads(pickle.dumps(one))):
        with Records(tmp_path / "a.jsonl", {"problem": program_identity(same.program)}):
            pass
    for name, value in of.items():
        other = copy.deepcopy(of)
        if isinstance(value, int):
            other[name] = value + 1
        else:
            x = np.array(value, dtype=float)
            x.flat[random.integers(x.size)] *= 1 + 10.0 ** -random.uniform(1, 8)
            other[name] = x if np.ndim(value) else float(x)
        changed = program_identity(made(other).program)
        assert difference(identity, changed), name
        with pytest.raises(InputError, match="is of other work"), Records(tmp_path / "a.jsonl", {"problem": changed}):
            pass


def content(random):
    """Bytes that are no record: random ones, texts, and records that are damaged."""
    kind, size = random.integers(5), int(random.integers(1, 400))
    if kind == 0:
        return random.bytes(size)
    if kind == 1:
        return b"[" + bytes(random.choice(list(b'{}[]",: \n\r\tabc019'), size).tolist())
    line = b'{"crc": "%08x", "format": "%s", "work": {}}\n' % (random.integers(2**32), FORMAT.encode())
    if kind == 2:
        return line[: random.integers(12, len(line))] + random.bytes(int(random.integers(0, 9)))
    if kind == 3:
        return line + random.bytes(size)
    return b"x" + random.bytes(size).replace(b"\n", b"")


@pytest.mark.parametrize("seed", range(cases(20)))
def test_files_that_are_no_records_are_never_changed(tmp_path, seed):
    path = tmp_path / "precious"
    before = content(np.random.default_rng([27, seed]))
    path.write_bytes(before)
    calls = (
        lambda: multi_start(Wells(), 1, x0=[0.5, 0.5], record=path),
        lambda: sweep(reach, {"segments": [4]}, record=path),
        lambda: solve(Wells(), [0.5, 0.5], checkpoint=path),
        lambda: reach(segments=4).solve(checkpoint=path),
        lambda: load_solution(path),
        lambda: kg.load(path),
    )
    for call in calls:
        with pytest.raises(KinegradError):
            call()
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
