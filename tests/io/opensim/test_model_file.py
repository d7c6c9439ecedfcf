"""What is refused in ``.osim`` files, with its sentence; what is reported; what both layouts have in common."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import FileError, InputError
from kinegrad.io import LeftOutWarning
from kinegrad.io.opensim import read
from tests.io.opensim.files import EVERYTHING, J, constant, linear, new_layout, old_layout, spline

PIN = J("PinJoint", "a", "ground", ("qa",))


def custom(function: str, names: str = "c", axis: str = "0 0 1", coordinates: tuple[str, ...] = ("c",)) -> J:
    return J("CustomJoint", "a", "ground", coordinates, {"rotation1": (names, axis, function)})


def coupler(dependent: str, independent: str, function: str) -> str:
    return (
        f'<CoordinateCouplerConstraint name="{dependent}_con"><coupled_coordinates_function>{function}'
        f"</coupled_coordinates_function><independent_coordinate_names>{independent}</independent_coordinate_names>"
        f"<dependent_coordinate_name>{dependent}</dependent_coordinate_name></CoordinateCouplerConstraint>"
    )


def constraints(*parts: str) -> str:
    return f"<ConstraintSet><objects>{''.join(parts)}</objects></ConstraintSet>"


def between(kind: str, one: str, other: str, more: str = "", new: bool = True) -> str:
    ends = ""
    for k, body in enumerate((one, other), 1):
        path = "/ground" if body == "ground" else f"/bodyset/{body}"
        ends += f"<socket_body_{k}>{path}</socket_body_{k}>" if new else f"<body_{k}>{body}</body_{k}>"
        ends += f"<location_body_{k}>0.1 0 {k}</location_body_{k}>"
    return f'<{kind} name="held">{ends}{more}</{kind}>'


def on_line(line: str, follower: str, direction: str = "1 0 0") -> str:
    paths = ("/ground" if body == "ground" else f"/bodyset/{body}" for body in (line, follower))
    ends = "".join(
        f"<socket_{what}_body>{path}</socket_{what}_body>"
        for what, path in zip(("line", "follower"), paths, strict=True)
    )
    return f'<PointOnLineConstraint name="rail">{ends}<line_direction_vec>{direction}</line_direction_vec></PointOnLineConstraint>'


TWO = [PIN, J("PinJoint", "b", "a", ("qb",)), J("PinJoint", "c", "b", ("qc",))]
BENT = spline("0 1 2 3", "0 1 0 2")

REFUSED = {
    "unknown joint": (new_layout([J("StrangeJoint", "a")]), "is a joint of unknown kind; expected one of WeldJoint"),
    "ellipsoid": (
        new_layout([J("EllipsoidJoint", "a")]),
        "moves a body over a surface, which no joint of kinegrad does; expected one of WeldJoint",
    ),
    "parallel axes": (
        new_layout([J("CustomJoint", "a", "ground", ("c", "d"), {"rotation1": ("c", "0 0 1", linear()), "rotation3": ("d", "0 0 -2", linear())})]),
        "rotation1 and rotation3 have parallel axes; expected three of different directions",
    ),
    "element in a value": (
        new_layout([PIN]).replace("<mass>1.7</mass>", "<mass>1.7<inertia>1 1 1 0 0 0</inertia></mass>"),
        "is inside <mass>, which has a value; expected it elsewhere",
    ),
    "mistyped element": (
        new_layout([J("PinJoint", "a", "ground", ("qa",), flags={"qa": "<lockd>true</lockd>"})]),
        "is unknown here; did you mean <locked>?",
    ),
    "too few coordinates": (
        new_layout([J("BallJoint", "a", "ground", ("q0", "q1"))]), "has 2 coordinates; expected 3 of a BallJoint"
    ),
    "default out of range": (
        new_layout([J("PinJoint", "a", "ground", ("qa",), flags={"qa": "<range>1 2</range><clamped>true</clamped>"})]),
        "it is clamped from 1 to 2, and its default_value is 0; expected one within the range",
    ),
    "rod without length": (
        new_layout(TWO, constraints(between("ConstantDistanceConstraint", "a", "c", "<constant_distance>0</constant_distance>"))),
        "is not above 0 m; expected more",
    ),
    "line without direction": (
        new_layout(TWO, constraints(on_line("a", "c", "0 0 0"))), "its line_direction_vec is 0 0 0; expected a direction"
    ),
    "constraint of an absent body": (
        new_layout(TWO, constraints(between("PointConstraint", "a", "x"))), "'/bodyset/x' leads to no frame or body"
    ),
    "constraint of an absent body, old": (
        old_layout(TWO, constraints(between("PointConstraint", "a", "x", new=False))), "names body 'x', which the file does not have"
    ),
    "constraints of one name": (
        new_layout(TWO, constraints(between("PointConstraint", "a", "c"), between("PointConstraint", "b", "ground"))), "twice|two constraints"
    ),
    "unknown function": (new_layout([custom("<GCVSpline/>")]), "its function is <GCVSpline>, which is unknown; expected one"),
    "zero axis": (new_layout([custom(linear(), axis="0 0 0")]), "its axis is 0 0 0; expected a direction"),
    "comma": (new_layout([custom(linear(), axis="0,5 0 1")]), "with a decimal point"),
    "nan": (new_layout([J("PinJoint", "a", coordinates=("q",), mass="nan")]), "not a finite number"),
    "negative mass": (new_layout([J("PinJoint", "a", coordinates=("q",), mass="-1")]), "its mass is -1 kg; expected zero"),
    "triangle": (
        new_layout([J("PinJoint", "a", coordinates=("q",), inertia="0.0001 0.0002 0.001 0 0 0")]),
        "violate the triangle inequality.*or read with inertia='project' for the nearest possible one, which changes a "
        "moment of inertia by 70 %",
    ),
    "missing mass": (new_layout([PIN]).replace("<mass>1.7</mass>", ""), "has no <mass>; add one"),
    "unused coordinate": (new_layout([custom(linear(), coordinates=("c", "d"))]), "no axis of its joint depends on it"),
    "absent coordinate": (
        new_layout([custom(linear(), names="x")]), "names coordinate 'x', which its joint does not have; it has 'c'"
    ),
    "polynomial of two": (
        new_layout([custom(BENT, names="c d", coordinates=("c", "d"))]),
        "<SimmSpline> of 2 coordinates cannot be represented; expected one coordinate, or a LinearFunction",
    ),
    "function without coordinate": (new_layout([custom(linear(), names="", coordinates=())]), "an axis has a function but no"),
    "x decreases": (new_layout([custom(spline("0 1 0.5", "0 1 2"))]), "<x> goes from 1 to 0.5; expected increasing"),
    "x and y": (new_layout([custom(spline("0 1", "0 1 2"))]), "has 2 numbers in <x> and 3 in <y>; expected at least two"),
    "two coordinates of one name": (new_layout([PIN, J("PinJoint", "b", "a", ("qa",))]), "coordinate 'qa' is there twice"),
    "too many coordinates": (
        new_layout([J("PinJoint", "a", coordinates=("p", "q"))]), "has 2 coordinates; expected 1 of a PinJoint"
    ),
    "absent body": (new_layout([J("PinJoint", "a", "nobody", ("q",))]), "leads to no frame or body; expected the path"),
    "loop": (
        new_layout([*TWO, J("PinJoint", "d", "c", ("qd",))]).replace('<Body name="d">', '<Body name="dd">')
        .replace("/bodyset/d<", "/bodyset/a<"),
        "closes a loop of bodies; a closed loop is not read",
    ),
    "unreachable": (
        new_layout([PIN]).replace("</objects></BodySet>", '<Body name="z"><mass>1</mass><inertia>1 1 1 0 0 0</inertia>'
                                  "</Body></objects></BodySet>"),
        r"body 'z': it has no joint \(OpenSim lets it float\); add one",
    ),
    "frames in a circle": (
        new_layout([PIN]).replace("<socket_parent>/ground<", "<socket_parent>ground_p<"), "refer to each other in a circle"
    ),
    "coupler of two": (
        new_layout(TWO, constraints(coupler("qc", "qa qb", linear()))), "names 2 coordinates; expected one"
    ),
    "coupler of nobody": (new_layout(TWO, constraints(coupler("qz", "qa", linear()))), "names coordinate 'qz', which"),
    "coupled twice": (
        new_layout(TWO, constraints(coupler("qc", "qa", linear()), coupler("qc", "qb", linear()))),
        "coordinate 'qc' depends by 'qc_con', too",
    ),
    "couplers in a circle": (
        new_layout(TWO, constraints(coupler("qa", "qb", linear()), coupler("qb", "qa", linear()))), "in a circle"
    ),
    "curve of a curve": (
        new_layout([custom(BENT), J("PinJoint", "b", "a", ("qb",))], constraints(coupler("c", "qb", BENT))),
        "a SplineFunction of a SplineFunction cannot be represented",
    ),
    "all locked": (
        new_layout([J("PinJoint", "a", coordinates=("q",), flags={"q": "<locked>true</locked>"})]),
        "nothing in it moves; expected a joint",
    ),
    "range": (
        new_layout([J("PinJoint", "a", coordinates=("q",), flags={"q": "<range>2 1</range><clamped>true</clamped>"})]),
        "goes from 2 to 1; expected the lower number first",
    ),
    "a flag": (
        new_layout([J("PinJoint", "a", coordinates=("q",), flags={"q": "<locked>maybe</locked>"})]), "expected true or false"
    ),
    "old version": (new_layout([PIN]).replace('"40000"', '"10500"'), "Version is '10500'; expected 20000 or more"),
    "both layouts": (
        old_layout([PIN]).replace("<MarkerSet>", '<JointSet><objects><WeldJoint name="w"/></objects></JointSet><MarkerSet>'),
        "expected one layout",
    ),
    "no sockets": (
        new_layout([PIN]).replace("<socket_parent_frame>ground_p</socket_parent_frame>", ""), "has no <socket_parent_frame>"
    ),
    "other file": (new_layout([PIN]).replace('<BodySet name="bodyset">', '<BodySet file="b.xml">'), "refers to the file 'b.xml'"),
    "no bodies": (new_layout([]), "has no bodies; expected at least one"),
    "entity": (new_layout([PIN]).replace("<OpenSimDocument", '<!DOCTYPE x [<!ENTITY a "b">]><OpenSimDocument'), "DTD"),
    "marker of nobody": (
        new_layout([PIN], markers='<Marker name="m"><body>zz</body></Marker>'),
        "is fixed in body 'zz', which the file does not have",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(tmp_path: Path, case: str) -> None:
    text, sentence = REFUSED[case]
    path = tmp_path / "m.osim"
    path.write_text(text)
    with pytest.raises(FileError, match=sentence):
        read(path)


def test_all_problems_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.osim"
    path.write_text(new_layout([J("PinJoint", "a", coordinates=("q",), mass="x"), J("NoJoint", "b", "a")]))
    with pytest.raises(FileError, match=r"(?s)has 3 problems.*not a number.*unknown kind"):
        read(path)


def test_bodies_without_mass(tmp_path: Path) -> None:
    path = tmp_path / "m.osim"
    path.write_text(new_layout([J("PinJoint", "a", coordinates=("q",), mass="0", inertia="0 0 0 0 0 0")]))
    sentence = "moves body 'a', and nothing from there on has mass; give it some, or read with massless=True"
    with pytest.raises(FileError, match=sentence):
        read(path, strict=True)
    assert [note.what for note in read(path).report] == ["joint without mass"]


def test_a_wrong_inertia_is_one_problem(tmp_path: Path) -> None:
    """And not that there was no mass, too."""
    path = tmp_path / "m.osim"
    path.write_text(new_layout([J("PinJoint", "a", coordinates=("q",), inertia="0.0001 0.0002 0.001 0 0 0")]))
    with pytest.raises(FileError) as caught:
        read(path)
    assert len(caught.value.problems) == 1


def test_both_layouts_are_one_model(tmp_path: Path) -> None:
    for name, layout in (("new", new_layout), ("old", old_layout)):
        (tmp_path / f"{name}.osim").write_text(layout(EVERYTHING))
    new, old = (read(tmp_path / f"{name}.osim") for name in ("new", "old"))
    assert new.model == old.model
    assert new.motion_types == old.motion_types
    assert new.model.gravity.tolist() == [0.0, -9.80665, 0.0]
    assert new.model.frames["brace"].link == "shank"  # a weld is a frame of what it is fixed in
    assert new.motion_types["knee"] == "rotational"
    assert new.motion_types["slide"] == "coupled"


def test_a_line_in_two_coordinates_is_two_joints(tmp_path: Path) -> None:
    """R(a c + b d + e) about one axis is R(a c) R(b d) R(e)."""
    two = "<LinearFunction><coefficients>0.5 -2 0.3</coefficients></LinearFunction>"
    path = tmp_path / "m.osim"
    joint = J(
        "CustomJoint", "a", "ground", ("c", "d"), {"rotation3": ("c d", "0 0 1", two)}, ("0 0 0",) * 2, ("0 0 0",) * 2
    )
    path.write_text(new_layout([joint]))
    model = read(path).model
    T = kg.forward_kinematics(model, [0.4, 0.7]).at(model, "a").transform
    assert np.abs(T - kg.rotate("z", 0.5 * 0.4 - 2 * 0.7 + 0.3)).max() < 1e-15


def test_limits_are_those_of_clamped_coordinates(tmp_path: Path) -> None:
    flags = {"p": "<range>-1 2</range><clamped>true</clamped>", "q": "<range>-1 2</range>"}
    path = tmp_path / "m.osim"
    path.write_text(new_layout([J("UniversalJoint", "a", coordinates=("p", "q"), flags=flags)]))
    assert read(path).model.position_limits.tolist() == [[-1, 2], [-np.inf, np.inf]]


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    forces = (
        '<ForceSet><objects><Thelen2003Muscle name="soleus"><isDisabled>false</isDisabled></Thelen2003Muscle>'
        '<BushingForce name="back"><appliesForce>false</appliesForce></BushingForce></objects></ForceSet>'
        '<ContactGeometrySet><objects><ContactSphere name="heel"/></objects></ContactGeometrySet>'
    )
    path = tmp_path / "m.osim"
    path.write_text(new_layout([PIN], forces))
    report = read(path).report
    assert [(note.what, note.matters) for note in report] == [
        ("force", True),
        ("force", False),
        ("contact geometry", False),
    ]
    assert '<Thelen2003Muscle name="soleus"> is not in the model' in str(report)
    with pytest.warns(LeftOutWarning, match="1 × force"):
        kg.load(path)


def test_markers_are_frames(tmp_path: Path) -> None:
    """Also those of a file of their own; one with the name of a body gets another."""
    marker = '<Marker name="{}"><socket_parent_frame>/bodyset/{}</socket_parent_frame><location>0.1 0.2 0.3</location></Marker>'
    path, other = tmp_path / "m.osim", tmp_path / "markers.xml"
    path.write_text(
        new_layout([PIN, J("WeldJoint", "b", "a")], markers=marker.format("heel", "a") + marker.format("a", "b"))
    )
    inside = marker.format("toe", "b").replace("/bodyset/", "")
    other.write_text(
        f'<OpenSimDocument Version="40000"><MarkerSet name="s"><objects>{inside}</objects></MarkerSet></OpenSimDocument>'
    )
    found = read(path, markers=other)
    assert dict(found.markers) == {"heel": "heel", "a": "a.marker", "toe": "toe"}
    assert found.model.frames["heel"].placement[:3, 3].tolist() == [0.1, 0.2, 0.3]
    assert found.model.frames["toe"].link == "a"


def test_an_impossible_inertia_is_projected_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "m.osim"
    path.write_text(new_layout([J("PinJoint", "a", coordinates=("q",), inertia="0.0001 0.0002 0.001 0 0 0")]))
    found = read(path, inertia="project")
    assert "the inertia of body 'a' was replaced by the nearest possible one" in str(found.report)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"locked": "maybe"}, "`locked` is 'maybe'; expected 'fixed' or 'free'"),
        ({"inertia": 3}, "`inertia` is 3; expected"),
        ({"strict": 3}, "`strict` is 3; expected True or False"),
    ],
)
def test_options(tmp_path: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read(tmp_path / "m.osim", **options)


def test_an_axis_that_is_not_said_is_x(tmp_path: Path) -> None:
    """Of all six, as OpenSim has it: whichever slot it is in."""
    axes = {
        "rotation1": ("", "0 0 1", constant(0.0)),
        "rotation2": ("c", "9 9 9", linear()),
        "rotation3": ("", "0 1 1", constant(0.0)),
    }
    path = tmp_path / "m.osim"
    models = []
    for axis in ("", "<axis>1 0 0</axis>"):
        path.write_text(new_layout([J("CustomJoint", "a", "ground", ("c",), axes)]).replace("<axis>9 9 9</axis>", axis))
        models.append(read(path).model)
    assert models[0] == models[1]


def test_constants_alone(tmp_path: Path) -> None:
    """An axis by a constant is part of a placement."""
    joint = J(
        "CustomJoint",
        "a",
        "ground",
        ("c",),
        {"rotation1": ("", "0 0 1", constant(0.3)), "rotation2": ("c", "0 1 0", linear())},
    )
    path = tmp_path / "m.osim"
    path.write_text(new_layout([joint]))
    assert read(path).model.n == 1


def test_constraints_between_links(tmp_path: Path) -> None:
    """What they say is the set's; what cannot be is named. tests/peers/test_opensim_constraints.py has their forces."""
    path = tmp_path / "m.osim"
    weld = J("WeldJoint", "d", "c")
    for layout in (new_layout, old_layout):
        path.write_text(
            layout([*TWO, weld], constraints(between("PointConstraint", "d", "ground", new=layout is new_layout)))
        )
        found = read(path)
        (held,) = found.constraints
        assert (held.link, held.other, held.directions, held.name) == ("c", None, "xyz", "held")
        assert not found.report.counts
        at = kg.point_motion(found.model, np.zeros(3), link="d", point=[0.1, 0, 1]).position
        assert np.abs(found.constraints.error(np.zeros(3)) - (at - [0.1, 0, 2])).max() < 1e-14
        with pytest.warns(LeftOutWarning, match="not in the model: 1 × constraint"):
            kg.load(path)
        kg.save(found, tmp_path / "m.toml")
        assert kg.io.read_model(tmp_path / "m.toml").constraints == found.constraints


@pytest.mark.parametrize(
    ("part", "sentence", "matters"),
    [
        (between("PointConstraint", "c", "d"), "is left out: both are part of link 'c'", True),
        (between("PointConstraint", "ground", "e"), "is left out: both of its bodies are fixed in the ground", True),
        (on_line("c", "ground"), "is left out: its point is fixed in the ground", True),
        (between("PointConstraint", "a", "c", "<isEnforced>false</isEnforced>"), "is not in the model", False),
        ('<RollingOnSurfaceConstraint name="r"/>', "is not in the model", True),
    ],
)
def test_constraints_that_there_cannot_be_are_named(tmp_path: Path, part: str, sentence: str, matters: bool) -> None:
    path = tmp_path / "m.osim"
    path.write_text(new_layout([*TWO, J("WeldJoint", "d", "c"), J("WeldJoint", "e", "ground")], constraints(part)))
    found = read(path)
    assert found.constraints.m == 0
    (note,) = (note for note in found.report if note.what == "constraint")
    assert sentence in note.text
    assert note.matters == matters
