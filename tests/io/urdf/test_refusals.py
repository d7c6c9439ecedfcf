"""What is refused in a URDF file: each with its sentence, line and element."""

import pytest

from kinegrad import FileError, InputError
from kinegrad.io.urdf import read

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="2"/>'


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>\n'


def joint(name, parent, child, kind="revolute", inside=LIMIT):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>\n'


def robot(*parts):
    return '<robot name="arm">\n' + "".join(parts) + "</robot>"


ARM = robot(link("base"), link("upper"), joint("shoulder", "base", "upper"))


def problems(tmp_path, text, **options):
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read(path, **options)
    assert str(path) in str(caught.value)
    return caught.value.problems


def moments(xx, yy, zz):
    return f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/>'


def body(mass="1", inertia=INERTIAL[27:-11]):
    return f'<inertial><mass value="{mass}"/>{inertia}</inertial>'


TWO = (link("base"), link("upper"))
REFUSED = {
    "cycle": (
        robot(*TWO, link("fore"), joint("a", "upper", "fore"), joint("b", "fore", "upper")),
        "line 6: <joint name=\"b\">: links form a cycle, by joints 'a', 'b'; expected a tree: cut it at one joint, "
        "and close it by a constraint of the model",
    ),
    "link of itself": (
        robot(*TWO, joint("a", "upper", "upper")),
        "line 4: <joint name=\"a\">: connects link 'upper' with itself; expected two links",
    ),
    "two roots": (
        robot(*TWO, link("fore"), joint("a", "upper", "fore")),
        "line 1: <robot name=\"arm\">: has 2 links without a parent, 'base' in line 2, 'upper' in line 3; expected "
        "one: connect the others",
    ),
    "two parents": (
        robot(*TWO, link("fore"), joint("a", "base", "upper"), joint("b", "base", "fore"), joint("c", "upper", "fore")),
        "line 7: <joint name=\"c\">: link 'fore' has two parents: joint 'b' in line 6 moves it already; a URDF is a "
        "tree, so remove one of the two",
    ),
    "unknown joint type": (
        robot(*TWO, joint("a", "base", "upper", "ball")),
        'line 4: <joint name="a">: type="ball" is unknown; expected one of revolute, continuous, prismatic, fixed, '
        "floating, planar",
    ),
    "mistyped joint type": (
        robot(*TWO, joint("a", "base", "upper", "Revolute")),
        "line 4: <joint name=\"a\">: type=\"Revolute\" is unknown; did you mean 'revolute'?",
    ),
    "no joint type": (ARM.replace(' type="revolute"', ""), "has no attribute 'type'; add it"),
    "unknown link": (
        robot(*TWO, joint("a", "base", "uper")),
        'line 4: <child> in <joint name="a">: link="uper" does not exist; did you mean \'upper\'?',
    ),
    "no child": (ARM.replace('<child link="upper"/>', ""), '<joint name="shoulder">: has no <child>; add one'),
    "not a number": (
        ARM.replace('<mass value="1"/>', '<mass value="1,5"/>'),
        'line 2: <mass> in <link name="base">: value="1,5" is not a number; write it with a decimal point, as 1.5',
    ),
    "hexadecimal": (ARM.replace('<mass value="1"/>', '<mass value="0x1"/>'), 'value="0x1" is not a number'),
    "NaN": (
        ARM.replace('upper="1"', 'upper="nan"'),
        'line 4: <limit> in <joint name="shoulder">: upper="nan" is not a finite number; expected a finite one',
    ),
    "infinite": (ARM.replace('effort="10"', 'effort="inf"'), 'effort="inf" is not a finite number'),
    "too large": (ARM.replace('effort="10"', 'effort="1e300"'), 'effort="1e300" is too large; expected a number below'),
    "negative mass": (
        ARM.replace('<mass value="1"/>', '<mass value="-1"/>'),
        'line 2: <mass> in <link name="base">: value="-1" is below 0 kg; expected it or more',
    ),
    "negative effort": (ARM.replace('effort="10"', 'effort="-10"'), 'effort="-10" is below 0; expected it or more'),
    "negative damping": (
        ARM.replace(LIMIT, LIMIT + '<dynamics damping="-1"/>'),
        '<dynamics> in <joint name="shoulder">: damping="-1" is below 0; expected it or more',
    ),
    "zero axis": (
        ARM.replace(LIMIT, LIMIT + '\n<axis xyz="0 0 0"/>'),
        'line 5: <axis> in <joint name="shoulder">: xyz="0 0 0" has no direction; expected one that is not zero',
    ),
    "two numbers": (ARM.replace(LIMIT, LIMIT + '<axis xyz="0 1"/>'), 'xyz="0 1" has 2 numbers; expected 3'),
    "no mass": (ARM.replace('<mass value="1"/>', ""), '<inertial> in <link name="base">: has no <mass>; add one'),
    "part of an inertia": (ARM.replace(' izz="1"', ""), "has no attribute 'izz'; add it"),
    "not positive": (
        robot(link("base"), link("upper", body(inertia=moments(-1, 1, 1))), joint("a", "base", "upper")),
        'line 3: <inertia> in <link name="upper">: principal moments (-1, 1, 1) kg·m² about the centre of mass: -1 is '
        "negative (is the given inertia about another point?); correct it, or read with inertia='project' for the "
        "nearest possible one, which changes a moment of inertia by more than 1000 %",
    ),
    "triangle inequality": (
        robot(link("base"), link("upper", body(inertia=moments(1, 1, 3))), joint("a", "base", "upper")),
        "violate the triangle inequality: 3 > 1 + 1 (by 1); correct it, or read with inertia='project' for the "
        "nearest possible one, which changes a moment of inertia by 25 %",
    ),
    "moments without mass": (
        robot(link("base"), link("upper", body("0")), joint("a", "base", "upper")),
        "`mass` is 0 kg, but `com` is (0, 0, 0) m and the largest entry of `inertia` 1 kg·m²; expected zeros "
        "(`Inertia.zero()`), or more mass; correct it, or read with inertia='project' for the nearest possible one, "
        "which is zero, since the mass is zero",
    ),
    "mimic of itself": (
        ARM.replace(LIMIT, LIMIT + '<mimic joint="shoulder"/>'),
        "follows itself, by way of 'shoulder'; expected one joint that leads",
    ),
    "mimic of a fixed joint": (
        robot(*TWO, link("fore"), joint("a", "base", "upper", "fixed", ""),
              joint("b", "upper", "fore", inside=LIMIT + '<mimic joint="a"/>')),
        'joint="a" is fixed; expected one that has one coordinate',
    ),
    "two links of a name": (
        robot(*TWO, link("upper"), joint("a", "base", "upper")),
        "line 4: <link name=\"upper\">: link 'upper' is there already, in line 3; rename one",
    ),
    "two joints of a name": (
        robot(*TWO, link("fore"), joint("a", "base", "upper"), joint("a", "upper", "fore")),
        "line 6: <joint name=\"a\">: joint 'a' is there already, in line 5; rename one",
    ),
    "no name": (ARM.replace(' name="upper"', ""), "<link> in <robot name=\"arm\">: has no attribute 'name'; add it"),
    "lower above upper": (
        ARM.replace('lower="-1"', 'lower="2"'),
        '<limit> in <joint name="shoulder">: lower 2 is above upper 1; exchange or correct them',
    ),
    "mistyped attribute": (
        ARM.replace('lower="-1"', 'lowr="-1"'),
        "<limit> in <joint name=\"shoulder\">: attribute 'lowr' is unknown; did you mean 'lower'?",
    ),
    "mistyped element": (
        ARM.replace("<inertial>", "<inertal>").replace("</inertial>", "</inertal>"),
        '<inertal> in <link name="base">: is unknown here; did you mean <inertial>?',
    ),
    "two origins": (ARM.replace(LIMIT, LIMIT + "<origin/><origin/>"), "is there twice; expected once, as in line 4"),
    "macro": (
        robot(*TWO, '<xacro:arm side="left"/>', joint("a", "base", "upper")),
        "is a macro that was not expanded; make a URDF file of it with the program xacro",
    ),
    "nothing moves": (
        robot(*TWO, joint("a", "base", "upper", "fixed", "")),
        "has no joint that moves; expected one that moves, or root='free'",
    ),
    "no links": (robot(), '<robot name="arm">: has no <link>; expected at least one'),
    "negative radius": (
        ARM.replace("</link>", '<visual><geometry><sphere radius="-1"/></geometry></visual></link>', 1),
        '<sphere> in <link name="base">: radius="-1" is below 0 m; expected it or more',
    ),
    "negative box": (
        ARM.replace("</link>", '<visual><geometry><box size="1 -1 0"/></geometry></visual></link>', 1),
        '<box> in <link name="base">: size="1 -1 0" is negative; expected three lengths, not negative',
    ),
    "no solid": (
        ARM.replace("</link>", "<visual><geometry><cone/></geometry></visual></link>", 1),
        "is no solid of URDF; expected one of box, cylinder, sphere, capsule, mesh",
    ),
    "colour": (
        ARM.replace("</robot>", '<material name="red"><color rgba="255 0 0 1"/></material></robot>'),
        'rgba="255 0 0 1" is out of range; expected four numbers from 0 to 1',
    ),
    "DTD": (
        f'<!DOCTYPE robot [<!ENTITY m "1">]>{ARM}',
        "line 1: declares a document type (DTD), which models do not need; remove <!DOCTYPE …>",
    ),
    "entity": (ARM.replace('value="1"', 'value="&m;"', 1), "it uses an entity that it does not define"),
    "not XML": ("solid cube\nfacet", "line 1: is not well-formed XML: syntax error; correct the text there"),
    "other XML": ("<sdf/>", "line 1: begins with <sdf>; expected <robot>"),
}  # fmt: skip


THREE = robot(*TWO, link("camera", body(inertia=moments("1e-3", "1e-3", "3e-3"))), joint("a", "base", "upper"),
              joint("b", "upper", "camera", "fixed", ""))  # fmt: skip
STRICT = {
    "part of a possible body": (
        THREE,
        "line 4: <inertia> in <link name=\"camera\">: principal moments (0.001, 0.001, 0.003) kg·m² about the centre "
        "of mass violate the triangle inequality: 0.003 > 0.001 + 0.001 (by 0.001); correct it, or read with "
        "inertia='project' for the nearest possible one",
    ),
    "nearly possible": (
        robot(link("base"), link("upper", body(inertia=moments(1, 1, "2.02"))), joint("a", "base", "upper")),
        "violate the triangle inequality: 2.02 > 1 + 1 (by 0.02); correct it, or read with inertia='project'",
    ),
    "part of the world": (
        robot(link("base", body(inertia=moments(1, 1, 3))), link("upper"), joint("a", "base", "upper")),
        'line 2: <inertia> in <link name="base">: principal moments (1, 1, 3) kg·m²',
    ),
    "moments without mass in the world": (
        robot(link("base", body("0")), link("upper"), joint("a", "base", "upper")), "`mass` is 0 kg, but",
    ),
    "no inertia": (
        robot(link("base"), link("upper", ""), joint("a", "base", "upper")),
        'line 3: <link name="upper">: moves and has no mass; give it an <inertial> with mass, or read with '
        "massless=True",
    ),
    "no inertia of what is fixed together": (
        robot(link("base"), link("upper", ""), link("tool", ""), joint("a", "base", "upper"),
              joint("b", "upper", "tool", "fixed", "")),
        "moves and has no mass, nor has what is fixed to it, 'tool'; give it",
    ),
    "no inertia between others": (
        robot(*TWO[:1], link("upper", ""), link("fore"), joint("a", "base", "upper"), joint("b", "upper", "fore")),
        '<link name="upper">: moves and has no mass; give it',
    ),
    "mimic of an absent joint": (
        ARM.replace(LIMIT, LIMIT + '<mimic joint="sholder"/>'),
        '<mimic> in <joint name="shoulder">: joint="sholder" does not exist; did you mean \'shoulder\'?',
    ),
    "no limit": (ARM.replace(LIMIT, ""), '<joint name="shoulder">: has no <limit>; add one'),
    "no limit of speed": (ARM.replace(' velocity="2"', ""), "has no attribute 'velocity'; add it"),
    "limit of -1": (ARM.replace('effort="10"', 'effort="-1"'), 'effort="-1" is below 0; expected it or more'),
    "no name of the robot": (ARM.replace(' name="arm"', ""), "<robot>: has no attribute 'name'; add it"),
    "two materials": (
        ARM.replace("</link>", '<visual><geometry><sphere radius="1"/></geometry><material name=""/><material name=""/>'
                    "</visual></link>", 1),
        "<material name=\"\">: is there twice; expected once, as in line 2",
    ),
    "no geometry": (ARM.replace("</link>", "<visual><geometry/></visual></link>", 1), "holds 0 elements; expected one"),
}  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_sentence(tmp_path, what, strict):
    text, sentence = REFUSED[what]
    if strict:
        sentence = sentence.partition(", which ")[0]  # how far the nearest possible inertia is
    assert any(sentence in problem for problem in problems(tmp_path, text, strict=strict))


@pytest.mark.parametrize("what", STRICT)
def test_refused_on_demand(tmp_path, what):
    """Without `strict` a model is read, and one sentence or a note says what was read otherwise."""
    text, sentence = STRICT[what]
    assert any(sentence in problem for problem in problems(tmp_path, text, strict=True))
    (tmp_path / "arm.urdf").write_text(text)
    found = read(tmp_path / "arm.urdf")
    quiet = what in ("no inertia between others",)
    assert len(found.report) > 0 or quiet


def test_strict_and_what_is_accepted_by_name(tmp_path):
    """`inertia` and `massless` say more than `strict`; `inertia="refuse"` refuses inertias alone."""
    text, path = THREE.replace("</robot>", link("finger", "") + joint("c", "camera", "finger") + "</robot>"), tmp_path
    found = [problem.split(":")[1] for problem in problems(path, text, strict=True)]
    assert found == [' <inertia> in <link name="camera">', ' <link name="finger">']
    assert len(problems(path, text, strict=True, massless=True)) == 1
    assert len(problems(path, text, strict=True, inertia="project")) == 1
    assert len(problems(path, text, inertia="refuse")) == 1
    found = read(path / "arm.urdf", strict=True, inertia="project", massless=True)
    assert not found.report.repairs
    assert found.model == read(path / "arm.urdf").model


def test_all_problems_at_once(tmp_path):
    text = ARM.replace('<mass value="1"/>', '<mass value="1,5"/>', 1).replace('effort="10"', 'effort="x"')
    text = text.replace("</robot>", link("lost") + "</robot>")
    assert [problem.split(":")[0] for problem in problems(tmp_path, text)] == ["line 1", "line 2", "line 4"]


def test_the_arm_itself_is_read(tmp_path):
    """Or nothing above would mean anything."""
    (tmp_path / "arm.urdf").write_text(ARM)
    assert read(tmp_path / "arm.urdf").model.joint_names == ("shoulder",)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"root": "float"}, "`root` is 'float'; expected 'fixed' or 'free'"),
        ({"root": None}, "`root` is None; expected 'fixed' or 'free'"),
        ({"inertia": "ignore"}, "`inertia` is 'ignore'; expected 'close', 'project' or 'refuse'"),
        ({"strict": 1}, "`strict` is 1; expected True or False"),
        ({"quaternion": 1}, "`quaternion` is 1; expected True or False"),
        ({"massless": "yes"}, "`massless` is 'yes'; expected True or False"),
        ({"packages": 3}, "`packages` is 3; expected a folder, several in a list, or a dictionary"),
        ({"packages": {3: "a"}}, "`packages` has the name 3; expected names of packages"),
        ({"packages": [None]}, "`packages[0]` is a NoneType; expected a path"),
        ({"gravity": [0, 0]}, "`gravity` has shape (2,); expected (3,)"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, sentence):
    (tmp_path / "arm.urdf").write_text(ARM)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "arm.urdf", **options)
    assert str(caught.value).startswith(sentence)
