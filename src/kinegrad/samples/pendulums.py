"""Pendulums and chains, hanging straight down along −z at q = 0; a hinge about y swings in the x-z plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from kinegrad.constraints import ConstraintSet, Loop
from kinegrad.model import Inertia, Model, ModelBuilder, planar, prismatic, revolute
from kinegrad.model.numbers import flag, real_number
from kinegrad.samples.random import number_of_joints

__all__ = ["cart_pendulum", "double_pendulum", "multi_pendulum", "spatial_chain"]


def double_pendulum(*, L1: float = 1.0, L2: float = 1.0, MP: float = 1.0, MQ: float = 1.0) -> Model:
    """The planar double pendulum of [anderson2002], section 5: particles P and Q on massless bars.

    Its kinetic energy (71) is that of two particles.  The values of figure 3 are not in the paper's text:
    the defaults are ours.

    Parameters
    ----------
    L1, L2 : float
        From the pivot to P and from P to Q, m.
    MP, MQ : float
        Masses of P and Q, kg.

    Returns
    -------
    Model

    Examples
    --------
    >>> double_pendulum(L1=0.8, MQ=2.0).mass.tolist()
    [1.0, 2.0]
    """
    builder = ModelBuilder("double_pendulum")
    L1, L2 = real_number("`L1`", L1), real_number("`L2`", L2)
    P, Q = Inertia.point(MP, [0, 0, -L1]), Inertia.point(MQ, [0, 0, -L2])
    builder.add("hinge1", None, revolute("y"), link="P", inertia=P)
    builder.add("hinge2", "P", revolute("y"), link="Q", inertia=Q, placement=[0, 0, -L1])
    return builder.build()


def multi_pendulum(n: int = 5, *, length: float = 1.0, mass: float = 1.0) -> Model:
    """A planar pendulum of `n` equal slender rods, hinged end to end about y.

    Parameters
    ----------
    n : int
        Number of rods.
    length, mass : float
        Of each rod, m and kg.

    Returns
    -------
    Model

    Examples
    --------
    >>> multi_pendulum(3).link_names
    ('rod1', 'rod2', 'rod3')
    """
    length = real_number("`length`", length)
    return _chain("multi_pendulum", n, "y", "rod", length, Inertia.rod(mass, [0, 0, 0], [0, 0, -length]))


def spatial_chain(n: int = 6, *, length: float = 1.0, mass: float = 1.0) -> Model:
    """A spatial chain of `n` equal bars, hinged end to end about x, y, z, x, y, z, …

    [anderson2002] times spatial chains of 2, 4, …, 24 degrees of freedom (figure 2) and does not say what
    they are made of.  These are cylinders ten times as long as thick: a slender rod has no inertia about its
    own z.

    Parameters
    ----------
    n : int
        Number of bars.
    length, mass : float
        Of each bar, m and kg.

    Returns
    -------
    Model

    Examples
    --------
    >>> [joint.axis.index(1.0) for joint in spatial_chain(4).joints]
    [0, 1, 2, 0]
    """
    length = real_number("`length`", length)
    bar = Inertia.cylinder(mass, length / 20, [0, 0, 0], [0, 0, -length])
    return _chain("spatial_chain", n, "xyz", "bar", length, bar)


@overload
def cart_pendulum(
    *, constrained: Literal[False] = False, cart_mass: float = 1.0, rod_mass: float = 0.2, length: float = 0.6
) -> Model: ...


@overload
def cart_pendulum(
    *, constrained: Literal[True], cart_mass: float = 1.0, rod_mass: float = 0.2, length: float = 0.6
) -> tuple[Model, ConstraintSet]: ...


def cart_pendulum(
    *, constrained: bool = False, cart_mass: float = 1.0, rod_mass: float = 0.2, length: float = 0.6
) -> Model | tuple[Model, ConstraintSet]:
    """A cart that slides along x, and a slender rod hinged to it about y: hanging at q = 0, upright at π.

    The benchmark of [kudruss2019], which does not say its masses, in minimal coordinates; or, constrained, with a cart
    that is a box free in the x-z plane, held on its rail by two rows: its height, and its turn about y.

    Parameters
    ----------
    constrained : bool
        Whether the rail is a constraint.
    cart_mass, rod_mass : float
        kg.
    length : float
        Of the rod, m.

    Returns
    -------
    model : Model
        Joints ``track`` and ``hinge``; constrained, ``cart.tz``, ``cart.tx``, ``cart.ry`` and ``hinge``.
    constraints : ConstraintSet
        Of a constrained cart: the loop ``rail``.

    Examples
    --------
    >>> cart_pendulum().joint_names
    ('track', 'hinge')
    >>> model, constraints = cart_pendulum(constrained=True)
    >>> constraints
    ConstraintSet of 2 rows for model 'cart_pendulum'
      0–1  rail  loop zY of cart (0, 0, 0) with the world (0, 0, 0)
    """
    builder = ModelBuilder("cart_pendulum")
    length = real_number("`length`", length)
    rod = Inertia.rod(rod_mass, [0, 0, 0], [0, 0, -length])
    if flag("`constrained`", constrained):
        box = Inertia.box(cart_mass, [0.3, 0.2, 0.1])
        builder.add("cart", None, planar("y"), link="cart", inertia=box)
    else:
        builder.add("track", None, prismatic("x"), link="cart", inertia=Inertia.point(cart_mass, [0, 0, 0]))
    builder.add("hinge", "cart", revolute("y"), link="rod", inertia=rod)
    model = builder.build()
    return (model, ConstraintSet(model, [Loop("cart", directions="zY", name="rail")])) if constrained else model


def _chain(name: str, n: int, axes: Sequence[str], link: str, length: float, inertia: Inertia) -> Model:
    """`n` equal links, each hinged to the lower end of the one before; the axes recur."""
    builder = ModelBuilder(name)
    parent, placement = None, [0.0, 0.0, 0.0]
    for k in range(1, number_of_joints("n", n) + 1):
        joint, hinge = f"hinge{k}", revolute(axes[(k - 1) % len(axes)])
        parent = builder.add(joint, parent, hinge, link=f"{link}{k}", placement=placement, inertia=inertia)
        placement = [0.0, 0.0, -length]
    return builder.build()
