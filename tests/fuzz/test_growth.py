"""Hostile files whose work would grow with the square of their size: every one ends within some seconds of processor.

Each kind of repetition is made as long as a megabyte, which a linear reader reads in a second and a quadratic one in
hours; a limit of processor time, far from both, ends the process of the latter.
"""

import os
import sys

import numpy as np
import pytest

from tests.fuzz.cases import cases
from tests.kernels.child import child, ended

SIZE = 1 << 20  # letters
SECONDS = 30  # of processor time for a file, some thirty times what it takes
PARTS = ("a", "1", " ", "\n", "x ", "1 ", "1,", "é", "&amp;", "-", "[", "(", ".", "e", "0x1", "nan(", "a=", "''")

SCRIPT = """
import random, resource, sys
from pathlib import Path
import kinegrad as kg
from tests.fuzz.test_growth import FRAMES, PARTS, SIZE, read
seconds, kind, seed, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_CPU, (seconds * (count + 1),) * 2)
draw = random.Random(f"{kind} {seed}")
for case in range(count):
    frame = draw.choice(FRAMES[kind])
    part, end = draw.choice(PARTS), draw.choice(("", "x", "]", "1"))
    print(repr(frame), repr(part), repr(end), file=sys.stderr, flush=True)
    text = frame.replace("@", part * (SIZE // len(part)) + end)
    path = Path(sys.argv[5], "a" + kind)
    path.write_text(text, encoding="utf-8")
    try:
        read(kind, path)
    except kg.KinegradError:
        pass
print("done")
"""
INERTIAL = '<inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ROD = '<joint/><geom type="capsule" size=".1 .2"/>'
MODEL = '<OpenSimDocument Version="40000"><Model name="m">{}</Model></OpenSimDocument>'
FRAMES = {
    ".urdf": (
        '<robot name="@"><link name="a"/></robot>',
        '<robot name="r"><link name="@"/><link name="b"/></robot>',
        f'<robot name="r"><link name="a"/><link name="b">{INERTIAL.format("@")}</link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="@"/></joint></robot>',
        '<robot name="r"><!--@--><?p @?><link name="a"/>@</robot>',
    ),
    ".xml": (
        f'<mujoco model="@"><worldbody><body>{ROD}</body></worldbody></mujoco>',
        f'<mujoco><worldbody><body name="@">{ROD}</body></worldbody></mujoco>',
        f'<mujoco><worldbody><body pos="@">{ROD}</body></worldbody></mujoco>',
        f'<mujoco><size memory="@"/><!--@--><worldbody><body>{ROD}</body>@</worldbody></mujoco>',
    ),
    ".osim": (MODEL.format("<gravity>@</gravity>"), MODEL.format('<BodySet name="@"/>'), MODEL.format("@<!--@-->")),
    ".toml": ('kinegrad = 1\nname = "@"\n', "kinegrad = 1\ngravity = @\n", "kinegrad = 1\n@ = 1\n", "# @\n[@]\n"),
    ".csv": ("t,q.@\n0,1\n", "t,q.a\n0,@\n1,2\n", "@\n"),
    ".sto": (
        "@\nendheader\ntime\ta\n0\t1\n",
        "version=1\nnRows=@\nendheader\ntime\ta\n0\t@\n",
        "endheader\ntime\t@\n0\t1\n",
    ),
    ".trc": ("PathFileType\t4\t(X/Y/Z)\t@\n", "PathFileType\t4\t(X/Y/Z)\ta.trc\nDataRate\t@\n@\n"),
}  # fmt: skip


def read(kind, path):
    """What a user would call for a file of this kind."""
    import kinegrad as kg

    if kind == ".csv":
        kg.io.read_positions(path, kg.samples.two_link())
    elif kind == ".sto":
        kg.io.read_storage(path)
    elif kind == ".trc":
        kg.io.read_trc(path)
    else:
        kg.load(path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of processor time")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FRAMES)
def test_work_is_bounded_by_the_size_of_a_file(tmp_path, kind):
    seed = int(np.random.default_rng(0).integers(1000)) if "KINEGRAD_FUZZ_CASES" not in os.environ else cases(1)
    code, out, error = ended(child(SCRIPT, SECONDS, kind, seed, cases(4, cost=5), tmp_path))
    assert (code, out) == (0, "done\n"), error[-3000:]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of processor time")
def test_one_attribute_that_is_as_long_as_a_file_may_be(tmp_path):
    """Fed to expat in blocks, it took four minutes; and a number of a million digits and a letter, an hour."""
    script = """
import resource, sys
from pathlib import Path
import kinegrad as kg
from kinegrad.io.strict_xml import decimal
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
path = Path(sys.argv[1], "a.urdf")
path.write_text('<robot name="r"><link name="' + "a" * (60 << 20) + '"/></robot>')
try:
    kg.load(path)
except kg.FileError as error:
    print(error)
print(decimal("1" * (1 << 20) + "x"))
"""
    code, out, error = ended(child(script, tmp_path))
    assert code == 0, error[-3000:]
    assert "has 62914560 characters; expected at most 10000" in out
    assert out.endswith("not a number; expected decimal digits, as 1.5 or -2e-3\n")
