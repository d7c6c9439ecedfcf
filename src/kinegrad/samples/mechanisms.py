"""Closed mechanisms, each a model (an open tree) and the constraints that close it, which are met at q = 0."""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet, Loop
from kinegrad.errors import InputError
from kinegrad.model import Frame, Inertia, Model, ModelBuilder, free, prismatic, revolute, rotate, translate, universal
from kinegrad.model.numbers import real_number

__all__ = ["five_bar", "four_bar", "slider_crank", "stewart_platform"]

Array = NDArray[np.float64]
ACROSS = "-y"  # turns about −y take x towards z: angles as drawn on paper, gravity down the page


def four_bar(
    *, ground: float = 0.5, crank: float = 0.2, coupler: float = 0.45, rocker: float = 0.4, density: float = 2.0
) -> tuple[Model, ConstraintSet]:
    """A planar four-bar linkage in the vertical x-z plane: crank, coupler and rocker, slender rods.

    The crank turns about the world's origin, the rocker about (ground, 0, 0); the coupler hangs on the crank, and the
    loop pins its far end to that of the rocker.  At q = 0 the crank lies along x and the coupler is above it.  With
    the lengths it has by default the crank turns all the way round (Grashof).

    Parameters
    ----------
    ground, crank, coupler, rocker : float
        Distance of the two pivots, and lengths of the rods, m.
    density : float
        Of the rods, kg/m.

    Returns
    -------
    model : Model
        Three hinges; link frames are at the far ends of the rods.
    constraints : ConstraintSet
        The loop ``pin``: two rows, along x and z of the rocker.

    Examples
    --------
    >>> model, constraints = four_bar()
    >>> model.joint_names, constraints.row_names
    (('crank', 'coupler', 'rocker'), ('pin.x', 'pin.z'))
    >>> bool(abs(constraints.error([0, 0, 0])).max() < 1e-15)
    True
    """
    given = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker, "density": density}
    d, a, b, c, rho = (_length(name, value) for name, value in given.items())
    base = d - a
    if not abs(b - c) < abs(base) < np.real(b + c):
        found = f"`coupler` {np.real(b):g} m and `rocker` {np.real(c):g} m do not meet across {np.real(base):g} m"
        raise InputError(f"{found}, which is `ground` less `crank`; expected a triangle")
    at_crank, at_rocker = _angle(b, base, c), pi - _angle(c, base, b)
    builder = ModelBuilder("four_bar")
    _rod(builder, "crank", None, np.eye(4), a, rho)
    _rod(builder, "coupler", "crank", rotate(ACROSS, at_crank), b, rho)
    _rod(builder, "rocker", None, translate(d) @ rotate(ACROSS, at_rocker), c, rho)
    model = builder.build()
    return model, ConstraintSet(model, [Loop("coupler", other="rocker", directions="xz", name="pin")])


def five_bar(
    *, ground: float = 0.2, proximal: float = 0.3, distal: float = 0.4, density: float = 2.0
) -> tuple[Model, ConstraintSet]:
    """A planar five-bar arm in the vertical x-z plane: two motors in the ground move one point in two directions.

    Two arms, each of a proximal and a distal slender rod, stand on pivots at (∓ground/2, 0, 0); the loop pins the far
    ends of the distal rods together.  At q = 0 both proximal rods point up, and the ends meet above the middle.

    Parameters
    ----------
    ground, proximal, distal : float
        Distance of the two pivots, and lengths of the rods, m.
    density : float
        Of the rods, kg/m.

    Returns
    -------
    model : Model
        Four hinges ``left``, ``left_elbow``, ``right``, ``right_elbow``, of which ``left`` and ``right`` are driven;
        link frames are at the far ends of the rods.
    constraints : ConstraintSet
        The loop ``pin``: two rows, along x and z of the right distal rod.

    Examples
    --------
    >>> model, constraints = five_bar()
    >>> model.joint_names, model.actuator_names, constraints.m
    (('left', 'left_elbow', 'right', 'right_elbow'), ('left', 'right'), 2)
    >>> bool(abs(constraints.error([0, 0, 0, 0])).max() < 1e-15)
    True
    """
    given = {"ground": ground, "proximal": proximal, "distal": distal, "density": density}
    d, a, b, rho = (_length(name, value) for name, value in given.items())
    if not np.real(2 * b) > np.real(d):
        found = f"`distal` is {np.real(b):g} m, and `ground` {np.real(d):g} m"
        raise InputError(f"{found}; expected rods that meet: more than half of it")
    builder = ModelBuilder("five_bar")
    inwards = np.arccos(d / (2 * b)) - pi / 2  # from straight up to the middle
    for side, sign in (("left", -1), ("right", 1)):
        _rod(builder, side, None, translate(sign * d / 2) @ rotate(ACROSS, pi / 2), a, rho)
        _rod(builder, f"{side}_elbow", side, rotate(ACROSS, -sign * inwards), b, rho)
    model = builder.build().replace(actuation=["left", "right"])
    return model, ConstraintSet(model, [Loop("left_elbow", other="right_elbow", directions="xz", name="pin")])


def slider_crank(
    *, crank: float = 0.1, rod: float = 0.3, density: float = 2.0, piston: float = 0.5
) -> tuple[Model, ConstraintSet]:
    """A slider-crank in the vertical x-z plane: crank and connecting rod, slender, and a piston that slides along x.

    At q = 0 the crank points up; the piston is at x = √(rod² − crank²).

    Parameters
    ----------
    crank, rod : float
        Lengths, m.
    density : float
        Of both, kg/m.
    piston : float
        kg.

    Returns
    -------
    model : Model
        Two hinges and a slider.
    constraints : ConstraintSet
        The loop ``pin`` of the rod's far end and the piston: two rows, x and z.

    Examples
    --------
    >>> model, constraints = slider_crank()
    >>> model.joint_names, constraints.m
    (('crank', 'rod', 'piston'), 2)
    """
    given = {"crank": crank, "rod": rod, "density": density, "piston": piston}
    a, b, rho, mass = (_length(name, value) for name, value in given.items())
    if not np.real(b) > np.real(a):
        found = f"`rod` is {np.real(b):g} m, and `crank` {np.real(a):g} m"
        raise InputError(f"{found}; expected a rod that is longer")
    builder = ModelBuilder("slider_crank")
    reach = np.sqrt(b * b - a * a)
    _rod(builder, "crank", None, rotate(ACROSS, pi / 2), a, rho)
    _rod(builder, "rod", "crank", rotate(ACROSS, -pi / 2 - np.arcsin(a / b)), b, rho)
    body = Inertia.point(mass, [0, 0, 0])
    builder.add("piston", None, prismatic("x"), link="piston", placement=[reach, 0, 0], inertia=body)
    model = builder.build()
    return model, ConstraintSet(model, [Loop("rod", other="piston", directions="xz", name="pin")])


def stewart_platform(
    *, base: float = 1.0, top: float = 0.6, height: float = 1.0, mass: float = 20.0
) -> tuple[Model, ConstraintSet]:
    """A Stewart platform: a plate on six legs that grow and shrink, each on a universal joint, with a ball at its end.

    Feet and balls stand in three pairs on two circles, the balls turned by 60° against the feet.  At q = 0 the plate is
    level.  Driven by ``slide1`` … ``slide6``, it has six degrees of freedom: 24 joints less 18 rows.

    Parameters
    ----------
    base, top : float
        Radii of the circles of feet and balls, m.
    height : float
        Of the plate at q = 0, m.
    mass : float
        Of the plate, kg; each leg is a cylinder of 2 kg and a piston of 1 kg.

    Returns
    -------
    model : Model
        The plate's six coordinates, then ``foot1.x``, ``foot1.y``, ``slide1``, … ; the balls are frames ``ball1`` … of
        the plate.
    constraints : ConstraintSet
        Six loops ``loop1`` …, three rows each.

    Examples
    --------
    >>> model, constraints = stewart_platform()
    >>> model.n, constraints.m, constraints.names[:2]
    (24, 18, ('loop1', 'loop2'))
    """
    given = {"base": base, "top": top, "height": height, "mass": mass}
    R, r, h, kg = (_length(name, value) for name, value in given.items())
    builder = ModelBuilder("stewart_platform")
    plate = Inertia.cylinder(kg, r, [0, 0, -0.02], [0, 0, 0.02])
    builder.add("plate", None, free(), link="plate", placement=[0, 0, h], inertia=plate)
    frames = {}
    for k in range(6):
        side = 1.0 if k % 2 else -1.0
        foot = _on_circle(R, 120 * (k // 2) + side * 50)
        ball = _on_circle(r, 120 * (k // 2) + side * 10)
        along = ball - foot + np.array([0.0, 0.0, h])
        length = np.sqrt(along @ along)
        tilt = rotate(np.cross([0, 0, 1], along), np.arccos(along[2] / length))
        place, name = translate(*foot) @ tilt, str(k + 1)
        outer = Inertia.cylinder(2.0, 0.04, [0, 0, 0], [0, 0, 0.6 * length])
        inner = Inertia.cylinder(1.0, 0.02, [0, 0, -0.6 * length], [0, 0, 0])
        builder.add(f"foot{name}", None, universal("xy"), link=f"cylinder{name}", placement=place, inertia=outer)
        leg, piston, tip = f"cylinder{name}", f"piston{name}", [0, 0, length]
        builder.add(f"slide{name}", leg, prismatic("z"), link=piston, tip=tip, inertia=inner)
        frames[f"ball{name}"] = Frame("plate", ball)
    model = builder.build().replace(frames=frames)
    loops = [Loop(f"piston{k}", other=f"ball{k}", directions="pin", name=f"loop{k}") for k in range(1, 7)]
    return model, ConstraintSet(model, loops)


def _length(name: str, value: float) -> float:
    """A positive number, which may carry a slope."""
    number = real_number(f"`{name}`", value)
    if not np.real(number) > 0:
        raise InputError(f"`{name}` is {np.real(number):g}; expected more than zero")
    return number


def _angle(b: float, c: float, opposite: float) -> float:
    """The angle between sides b and c of a triangle."""
    return np.arccos((b * b + c * c - opposite * opposite) / (2 * b * c))  # type: ignore[no-any-return]


def _rod(builder: ModelBuilder, name: str, parent: str | None, place: Array, length: float, density: float) -> None:
    """A slender rod along x, hinged at its near end, with its frame at the far one."""
    inertia, tip = Inertia.rod(density * length, [-length, 0, 0], [0, 0, 0]), [length, 0.0, 0.0]
    builder.add(name, parent, revolute(ACROSS), link=name, placement=place, tip=tip, inertia=inertia)


def _on_circle(radius: float, degrees: float) -> Array:
    angle = np.radians(degrees)
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])
