"""Small ``.osim`` files in both layouts of the format, from one description."""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass, field


def linear(a: float = 1.0, b: float = 0.0) -> str:
    return f"<LinearFunction><coefficients>{a} {b}</coefficients></LinearFunction>"


def constant(value: float) -> str:
    return f"<Constant><value>{value}</value></Constant>"


def spline(x: str, y: str, tag: str = "SimmSpline") -> str:
    return f"<{tag}><x>{x}</x><y>{y}</y></{tag}>"


@dataclass
class J:
    """A joint and the body that it moves."""

    kind: str
    body: str
    parent: str = "ground"
    coordinates: tuple[str, ...] = ()
    axes: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # slot: coordinates, axis, function
    in_parent: tuple[str, str] = ("0.1 -0.2 0.05", "0.2 -0.1 0.3")
    in_child: tuple[str, str] = ("0.02 0.1 -0.03", "-0.1 0.25 0.15")
    flags: dict[str, str] = field(default_factory=dict)  # of coordinates: more XML
    mass: str = "1.7"
    com: str = "0.01 -0.1 0.02"
    inertia: str = "0.03 0.04 0.05 0.001 -0.002 0.003"
    more: str = ""


def _coordinates(joint: J) -> str:
    return "".join(f'<Coordinate name="{c}">{joint.flags.get(c, "")}</Coordinate>' for c in joint.coordinates)


def _axes(joint: J, new: bool) -> str:
    if joint.kind != "CustomJoint":
        return ""
    found = []
    for slot, (names, axis, function) in joint.axes.items():
        inside = function if new else f"<function>{function}</function>"
        found.append(
            f'<TransformAxis name="{slot}"><coordinates>{names}</coordinates><axis>{axis}</axis>{inside}</TransformAxis>'
        )
    return f"<SpatialTransform>{''.join(found)}</SpatialTransform>"


def new_layout(joints: list[J], extra: str = "", gravity: str = "", markers: str = "") -> str:
    """Version 4: joints in a set, frames by sockets."""
    bodies, moved = [], []
    for k, j in enumerate(joints):
        bodies.append(
            f'<Body name="{j.body}"><mass>{j.mass}</mass><mass_center>{j.com}</mass_center>'
            f"<inertia>{j.inertia}</inertia></Body>"
        )
        frames = ""
        for which, body, (at, turn) in (("p", j.parent, j.in_parent), ("c", j.body, j.in_child)):
            path = "/ground" if body == "ground" else f"/bodyset/{body}"
            frames += (
                f'<PhysicalOffsetFrame name="{body}_{which}"><socket_parent>{path}</socket_parent>'
                f"<translation>{at}</translation><orientation>{turn}</orientation></PhysicalOffsetFrame>"
            )
        held = f"<coordinates>{_coordinates(j)}</coordinates>" if j.coordinates else ""
        moved.append(
            f'<{j.kind} name="joint{k}"><socket_parent_frame>{j.parent}_p</socket_parent_frame>'
            f"<socket_child_frame>{j.body}_c</socket_child_frame>{held}<frames>{frames}</frames>"
            f"{_axes(j, True)}{j.more}</{j.kind}>"
        )
    down = f"<gravity>{gravity}</gravity>" if gravity else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<OpenSimDocument Version="40000">\n<Model name="m">\n'
        f'<Ground name="ground"/>\n{down}\n<BodySet name="bodyset"><objects>\n' + "\n".join(bodies) + "\n</objects></BodySet>\n"
        '<JointSet name="jointset"><objects>\n' + "\n".join(moved) + f"\n</objects></JointSet>\n{extra}\n"
        f'<MarkerSet name="markerset"><objects>{markers}</objects></MarkerSet>\n</Model>\n</OpenSimDocument>\n'
    )  # fmt: skip


def old_layout(joints: list[J], extra: str = "", gravity: str = "", markers: str = "") -> str:
    """Version 3: joints inside bodies."""
    bodies = ['<Body name="ground"><mass>0</mass><mass_center>0 0 0</mass_center><Joint/>'
              + "".join(f"<inertia_{x}>0</inertia_{x}>" for x in ("xx", "yy", "zz")) + "</Body>"]  # fmt: skip
    for k, j in enumerate(joints):
        moments = zip(("xx", "yy", "zz", "xy", "xz", "yz"), j.inertia.split(), strict=True)
        held = f"<CoordinateSet><objects>{_coordinates(j)}</objects></CoordinateSet>" if j.coordinates else ""
        bodies.append(
            f'<Body name="{j.body}"><mass>{j.mass}</mass><mass_center>{j.com}</mass_center>'
            + "".join(f"<inertia_{x}>{value}</inertia_{x}>" for x, value in moments)
            + f'<Joint><{j.kind} name="joint{k}"><parent_body>{j.parent}</parent_body>'
            f"<location_in_parent>{j.in_parent[0]}</location_in_parent>"
            f"<orientation_in_parent>{j.in_parent[1]}</orientation_in_parent>"
            f"<location>{j.in_child[0]}</location><orientation>{j.in_child[1]}</orientation>"
            f"{held}{_axes(j, False)}{j.more}</{j.kind}></Joint></Body>"
        )
    down = f"<gravity>{gravity}</gravity>" if gravity else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<OpenSimDocument Version="30000">\n<Model name="m">\n{down}\n'
        "<BodySet><objects>\n" + "\n".join(bodies) + f"\n</objects></BodySet>\n{extra}\n"
        f"<MarkerSet><objects>{markers}</objects></MarkerSet>\n</Model>\n</OpenSimDocument>\n"
    )  # fmt: skip


X = "-1.5 -0.7 0 0.6 1.4"
KNEE = {
    "rotation1": ("knee", "0 0 1", linear()),
    "rotation2": ("knee", "0.1 1 0", spline(X, "0 0.02 0.05 0.03 -0.01")),
    "rotation3": ("", "1 0 0", constant(0.1)),
    "translation1": ("knee", "1 0 0", spline(X, "-0.003 0.004 0.005 0.001 0.0", "NaturalCubicSpline")),
    "translation2": (
        "knee", "0 2 0",
        f"<MultiplierFunction><function><MultiplierFunction><function>{spline(X, '-0.4 -0.41 -0.4 -0.39 -0.38')}</function>"
        "<scale>1.1</scale></MultiplierFunction></function><scale>0.5</scale></MultiplierFunction>",
    ),
    "translation3": ("slide", "0 0 1", "<PolynomialFunction><coefficients>0.1 -0.2 1 0.03</coefficients></PolynomialFunction>"),
}  # fmt: skip

EVERYTHING = [
    J("FreeJoint", "pelvis", coordinates=tuple(f"p{k}" for k in range(6))),
    J("PinJoint", "thigh", "pelvis", ("hip",)),
    J("CustomJoint", "shank", "thigh", ("knee", "slide"), KNEE),
    J("WeldJoint", "brace", "shank"),
    J("UniversalJoint", "foot", "brace", ("u0", "u1")),
    J("SliderJoint", "toes", "foot", ("s0",)),
    J("GimbalJoint", "torso", "pelvis", ("g0", "g1", "g2")),
    J("BallJoint", "head", "torso", ("b0", "b1", "b2")),
    J("PlanarJoint", "hand", "torso", ("l0", "l1", "l2")),
]
