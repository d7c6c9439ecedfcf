"""Files that a person writes: short forms, and what is refused, with its line and key."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_model

ARM = """kinegrad = 1
name = "two-link arm"
gravity = [0, -9.81, 0]
[[joint]]
name = "shoulder"
link = "upper arm"
rod = { mass = 0.5, start = [0, 0, 0], end = [0.4, 0, 0] }
[[joint]]
name = "elbow"
link = "forearm"
parent = "upper arm"
placement = [0.4, 0, 0]
rod = { mass = 0.5, start = [0, 0, 0], end = [0.4, 0, 0] }
"""


def found(tmp_path, text):
    path = tmp_path / "arm.toml"
    path.write_text(text)
    return read_model(path)


def problems(tmp_path, text):
    with pytest.raises(kg.FileError) as caught:
        found(tmp_path, text)
    return caught.value.problems


def test_the_two_link_arm_in_a_dozen_lines(tmp_path):
    assert len(ARM.strip().splitlines()) == 13
    model = found(tmp_path, ARM).model
    builder = kg.ModelBuilder("two-link arm", gravity=(0, -9.81, 0))
    rod = kg.Inertia.rod(0.5, [0, 0, 0], [0.4, 0, 0])
    builder.add("shoulder", None, kg.revolute("z"), link="upper arm", inertia=rod)
    builder.add("elbow", "upper arm", kg.revolute("z"), link="forearm", placement=[0.4, 0, 0], inertia=rod)
    assert model == builder.build()


def test_by_rows(tmp_path):
    text = """kinegrad = 1
dh = "proximal"
[[joint]]
name = "a"
dh = { a = 0.4, alpha = 0.1 }
mass = 1.0
[[joint]]
name = "b"
parent = "a"
dh = { d = 0.2, variable = "-d" }
mass = 1
com = [0, 0, 0.1]
inertia = [1, 1, 1]
"""
    rows = [kg.DH(a=0.4, alpha=0.1), kg.DH(d=0.2, variable="-d")]
    bodies = [kg.Inertia.point(1, [0, 0, 0]), kg.Inertia(1, [0, 0, 0.1], np.eye(3))]
    twin = kg.Model.from_dh(
        rows, convention="proximal", joint_names=["a", "b"], link_names=["a", "b"], inertias=bodies, name="mechanism"
    )
    assert found(tmp_path, text).model == twin


def test_short_forms(tmp_path):
    text = """kinegrad = 1
actuation = ["a"]
[[joint]]
name = "a"
type = "prismatic"
axis = [0, 3, 4]
placement = { shift = [1, 2, 3], rpy = [0.1, 0.2, 0.3] }
tip = { axis = "y", angle = 0.5 }
sphere = { mass = 2, radius = 0.1, com = [0, 0, 1] }
position_limits = [-inf, 2]
[[joint]]
name = "b"
parent = "tool"
type = "free"
quaternion = true
box = { mass = 1, size = [1, 2, 3] }
[[frame]]
name = "tip"
link = "tool"
placement = [0, 0, 1]
[[frame]]
name = "tool"
link = "a"
[[shape]]
link = "tip"
mesh = { file = "a.stl", scale = 0.001 }
color = [1, 0, 0]
[[element]]
name = "strap"
type = "spring-damper"
link = "tool"
stiffness = 100
[[constraint]]
type = "distance"
link = "tip"
length = 0.3
[loads]
force = { a = [0, 0, -10] }
[design]
parameters = ["a.mass"]
"""
    file = found(tmp_path, text)
    model = file.model
    assert model.joints[0].axis == (0, 0.6, 0.8)
    place = kg.translate(1, 2, 3) @ kg.rotate("z", 0.3) @ kg.rotate("y", 0.2) @ kg.rotate("x", 0.1)
    np.testing.assert_array_equal(model.placement[0], place)
    np.testing.assert_array_equal(model.tip[0], kg.rotate("y", 0.5))
    assert model.link_inertia("a") == kg.Inertia.sphere(2, 0.1, com=[0, 0, 1])
    assert (model.nq, model.nv) == (8, 7)
    assert model.frame("tip").link == "a"
    assert list(model.frames) == ["tip", "tool"]
    assert model.shapes[0].solid.scale == (0.001,) * 3
    assert model.actuator_names == ("a",)
    assert model.elements["strap"].stiffness == 100
    assert file.constraints.names == ("distance_tip",)
    assert file.loads == kg.Loads(force={"a": [0, 0, -10]})
    assert file.design.names == ("a.mass",)


REFUSED = {
    "not TOML": (ARM + "mass = = 1", "is not TOML: Invalid value (at line 14, column 8); correct the text there"),
    "comma": (ARM.replace("mass = 0.5", "mass = 0,5", 1), "is not TOML"),
    "not a model": ("a = 1", "has no key 'kinegrad'; expected kinegrad = 1 in a model, the version of the format"),
    "another version": (ARM.replace("kinegrad = 1", "kinegrad = 2"), "line 1: kinegrad: is 2; expected kinegrad = 1"),
    "no joint": ("kinegrad = 1", "has no [[joint]]; expected at least one"),
    "mistyped key": (
        ARM.replace("parent", "parrent"),
        "line 11: [[joint]] 'elbow', parrent: is unknown; did you mean 'parent'?",
    ),
    "unknown key": (ARM + "colour = 3", "line 14: [[joint]] 'elbow', colour: is unknown; expected one of"),
    "mistyped table": (
        ARM + '[[couplng]]\ncoordinate = "q"',
        "line 14: couplng: is unknown; did you mean 'coupling'?",
    ),
    "a text for a number": (
        ARM.replace("mass = 0.5", 'mass = "heavy"'),
        "line 7: [[joint]] 'shoulder', rod, mass: is 'heavy'; expected a number",
    ),
    "too few numbers": (
        ARM.replace("end = [0.4, 0, 0]", "end = [0.4, 0]", 1),
        "line 7: [[joint]] 'shoulder', rod, end: is [0.4, 0]; expected 3 numbers",
    ),
    "nan": (
        ARM.replace("gravity = [0,", "gravity = [nan,"),
        "line 3: gravity: is [nan, -9.81, 0]; expected 3 numbers, finite, below 1e+100",
    ),
    "infinite": (ARM.replace("mass = 0.5", "mass = inf", 1), "rod, mass: is inf; expected a number, finite"),
    "whole number beyond all": (ARM.replace("mass = 0.5", f"mass = {10**400}", 1), "expected a number"),
    "a flag for a number": (ARM.replace("mass = 0.5", "mass = true", 1), "mass: is true; expected a number"),
    "negative mass": (ARM.replace("mass = 0.5", "mass = -1", 1), "rod: inertia: `mass` is -1 kg; expected 0 or more"),
    "unknown type": (
        ARM + 'type = "revolut"',
        "line 14: [[joint]] 'elbow', type: is 'revolut'; did you mean 'revolute'?",
    ),
    "key of another type": (ARM + "pitch = 0.1", "pitch: is not of a revolute joint; expected axis, label"),
    "screw without pitch": (ARM + 'type = "screw"', "[[joint]] 'elbow': key 'pitch' is missing; add it"),
    "zero axis": (ARM + "axis = [0, 0, 0]", "[[joint]] 'elbow': `axis` is [0.0, 0.0, 0.0]; expected a finite vector"),
    "unknown parent": (
        ARM.replace('parent = "upper arm"', 'parent = "uper arm"'),
        "[[joint]] 'elbow': link 'uper arm' does not exist in model 'two-link arm'; did you mean 'upper arm'?",
    ),
    "two of a name": (ARM.replace('"elbow"', '"shoulder"'), "joint 'shoulder' is in model 'two-link arm' already"),
    "no name": (ARM.replace('name = "elbow"', ""), "[[joint]] 'forearm': key 'name' is missing; add it"),
    "body twice": (ARM + "mass = 3", "mass: stands beside 'rod', which is the whole body; remove one of them"),
    "no rotation": (
        ARM + "tip = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]]",
        "`tip` has a 3×3 part that is not orthonormal",
    ),
    "half a turn": (ARM + 'tip = { axis = "x" }', "tip: has one of 'axis' and 'angle'; expected both, or none"),
    "frame of no link": (
        ARM + '[[frame]]\nname = "tool"\nlink = "hand"',
        "line 14: [[frame]] 'tool': link 'hand' does not exist",
    ),
    "frame of itself": (ARM + '[[frame]]\nname = "tool"\nlink = "tool"', "link 'tool' does not exist"),
    "no solid": (ARM + '[[shape]]\nlink = "forearm"', "has 0 solids; expected one of sphere"),
    "shape of no link": (ARM + '[[shape]]\nlink = "hand"\nsphere = { radius = 1 }', "line 14: [[shape]] 'hand': link"),
    "coupling": (
        ARM + '[[coupling]]\ncoordinate = "q"\njoints = { shoulder = 1, elbow = "x" }',
        "line 16: [[coupling]] 'q', joints, elbow: is 'x'; expected a table",
    ),
    "coupling of no joint": (
        ARM + '[[coupling]]\ncoordinate = "q"\njoints = { knee = 1 }',
        "line 14: [[coupling]] 'q': joint 'knee' does not exist",
    ),
    "element": (ARM + '[[element]]\nname = "s"\ntype = "rope"', "type: is 'rope'; expected one of spring-damper"),
    "constraint": (ARM + '[[constraint]]\ntype = "given"\njoint = "knee"', "line 14: [[constraint]] 0: constraint"),
    "loads": (ARM + '[loads]\nforce = { hand = [0, 0, 1] }', "line 14: loads: link 'hand' does not exist"),
    "design": (ARM + '[design]\nparameters = ["hand.mass"]', "hand"),
    "actuation": (ARM.replace("gravity", 'actuation = ["knee"]\ngravity'), "'knee' does not exist"),
    "order": (ARM.replace("gravity", "coordinate_order = [1]\ngravity"), "`coordinate_order` is [1]; expected"),
    "convention": (ARM.replace("gravity", 'dh = "near"\ngravity'), "line 3: dh: is 'near'; expected one of distal"),
    "joint is no table": ("kinegrad = 1\njoint = 3", "line 2: joint: is 3; expected tables, each under [[joint]]"),
    "joint of numbers": ("kinegrad = 1\njoint = [3]", "is 3; expected a table"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_sentence(tmp_path, what):
    text, sentence = REFUSED[what]
    told = problems(tmp_path, text)
    assert any(sentence in problem for problem in told), told


def test_all_problems_at_once(tmp_path):
    text = ARM.replace("mass = 0.5", 'mass = "heavy"').replace("parent", "parrent").replace("0, -9.81", "0")
    assert [problem.split(":")[0] for problem in problems(tmp_path, text)] == ["line 3", "line 7", "line 11", "line 13"]


def test_what_is_no_text(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(kg.FileError, match="is not UTF-8 at byte 0; save it as UTF-8"):
        kg.load(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_text("kinegrad = " + "[" * 100_000)
    with pytest.raises(kg.FileError, match=r"is not TOML|too many brackets"):
        kg.load(tmp_path / "a.toml")
    with pytest.raises(kg.FileError, match="cannot be read: No such file"):
        kg.load(tmp_path / "b.toml")
    (tmp_path / "c.toml").mkdir()
    with pytest.raises(kg.InputError, match="is a folder"):
        kg.load(tmp_path / "c.toml")


def test_lines_of_keys(tmp_path):
    """Strings over several lines, comments with brackets, lists over several lines do not mislead."""
    text = '''# [[joint]] = "
kinegrad = 1
name = """a
[[joint]]
b"""
gravity = [
  0, # ]
  0, 0,
]
[[joint]] # "
"name" = "a = b"
mass = [
 1 ]
'''
    assert any(problem.startswith("line 12: [[joint]] 'a = b', mass:") for problem in problems(tmp_path, text))


def test_windows_lines_and_marks(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbf" + ARM.replace("\n", "\r\n").encode())
    assert kg.load(tmp_path / "a.toml").n == 2
