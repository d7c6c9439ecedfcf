"""Records: whole lines, once each, after crashes and from several processes."""

import json

import numpy as np
import pytest

from kinegrad import InputError
from kinegrad.motion.sweeps import read_records
from kinegrad.motion.sweeps.records import Records
from tests.kernels.child import child, ended, stopping

WORK = {"problem": "arm", "seed": 1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jsonl"


def test_there_and_back(path):
    """Numbers to the last bit; arrays as lists; what is not finite as nothing."""
    x = np.random.default_rng(0).normal(size=5)
    with Records(path, WORK) as records:
        assert records.add("a", {"x": x, "f": 0.1, "n": np.int64(3), "bad": np.nan})
        assert not records.add("a", {"x": [0]})  # once
    work, found = read_records(path)
    assert work == WORK
    assert found == {"a": {"x": x.tolist(), "f": 0.1, "n": 3, "bad": None}}
    for line in path.read_text().splitlines():
        json.loads(line)  # anyone can read it


def test_a_crash_within_a_line_costs_that_line_alone(path):
    """Cut at every byte, the file has all whole lines, and goes on after them."""
    with Records(path, WORK) as records:
        for k in range(3):
            records.add(str(k), {"k": k})
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        complete = max(whole[:end].count(b"\n") - 1, 0)
        with Records(path, WORK) as records:
            assert list(records.found) == [str(k) for k in range(complete)]
            for k in range(3):
                records.add(str(k), {"k": k})
        assert path.read_bytes() == whole


def test_other_damage_is_refused_by_line(path):
    with Records(path, WORK) as records:
        for k in range(3):
            records.add(str(k), {"k": k})
    lines = path.read_bytes().split(b"\n")
    for k, number in ((0, 1), (2, 3)):
        damaged = list(lines)
        damaged[k] = damaged[k].replace(b"1", b"7", 1) if b"1" in damaged[k][20:] else damaged[k][:-3] + b"}}}"
        path.write_bytes(b"\n".join(damaged))
        with pytest.raises(InputError, match=f"line {number} is damaged"), Records(path, WORK):
            pass


def test_records_of_other_work_are_refused(path):
    with Records(path, WORK):
        pass
    other = Records(path, WORK | {"seed": 2})
    with pytest.raises(InputError, match="is of other work: its 'seed' is 1; expected 2, or a new file"), other:
        pass


def test_one_process_writes(path):
    script = """
import signal, sys
from kinegrad.motion.sweeps.records import Records
with Records(sys.argv[1], {}):
    print("open", flush=True)
    signal.pause()
"""
    process = child(script, path)
    with stopping(process):
        assert process.stdout.readline() == "open\n"
        with pytest.raises(InputError, match="is written to by another process"), Records(path, {}):
            pass
        assert read_records(path) == ({}, {})  # whoever reads may


def test_paths(tmp_path):
    with pytest.raises(InputError, match="cannot be opened"), Records(tmp_path / "none" / "a.jsonl", {}):
        pass
    with pytest.raises(InputError, match="is a folder"), Records(tmp_path, {}):
        pass
    with pytest.raises(InputError, match="cannot be read"):
        read_records(tmp_path / "none")
    (tmp_path / "a").write_bytes(b"hello\n")
    with pytest.raises(InputError, match="is no record of kinegrad"):
        read_records(tmp_path / "a")


def test_a_process_that_is_killed_leaves_whole_lines(path):
    script = """
import os, signal, sys
from kinegrad.motion.sweeps.records import Records
with Records(sys.argv[1], {}) as records:
    for k in range(10**9):
        records.add(str(k), {"k": k})
        if k == 20:
            os.kill(os.getpid(), signal.SIGKILL)
"""
    ended(child(script, path))
    with Records(path, {}) as records:
        assert list(records.found) == [str(k) for k in range(21)]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"thesis": list(range(100))}).encode(),
        b"a,b\n1,2\n",
        b"x",
        b"\n",
        b'{"crc": "00000000", "format": "kinegrad records 1", "work": {}}',
        bytes(range(256)),
    ],
)
def test_what_is_no_record_is_never_written_to(path, content):
    """Not one byte of a file of somebody else changes, whether it has lines or not."""
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is no record|is damaged|line 1 is"), Records(path, WORK):
        pass
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_record(path):
    path.touch()
    with Records(path, WORK):
        pass
    assert read_records(path) == (WORK, {})


def test_objects_are_kept_by_their_digest(path):
    with Records(path, {"made by": np.random.default_rng(1)}) as records:
        records.add("a", {"x": {1, 2}})
    with Records(path, {"made by": np.random.default_rng(1)}) as records:
        assert records.found["a"]["x"].startswith("set ")
    other = Records(path, {"made by": np.random.default_rng(2)})
    with pytest.raises(InputError, match="its 'made by' is 'Generator "), other:
        pass
