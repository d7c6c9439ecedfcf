"""What a kernel knows of a mechanism: eleven arrays.

Every joint turns about, and slides along, the z axis of its own *joint frame*.  With motion(q) = Rz(ρq)·Tz(ηq),

    revolute  ρ = ±1, η = 0      prismatic  ρ = 0, η = ±1      screw  ρ = ±1, η = ±pitch

the link frames follow  A_i = P_i · motion(q_i) · F_i  and the joint frames  X_i · motion(q_i),  X_i = F_parent · P_i.
Spatial kernels work in joint frames (half the matrix products); ``lagrange.py`` works in link frames, as its paper.

A 3×4 transform is stored as 12 numbers: the rotation row by row, then the translation.
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline


class Mechanism(NamedTuple):
    """The constants of a mechanism of n joints, in the order in which kernels receive them."""

    parent: Any  # (n,)     parent of each joint, −1 = world; parent < child
    rate: Any  # (n, 2)     ρ [rad per unit of q] and η [m per unit of q]
    X: Any  # (n, 12)       joint frame, before its motion, in the parent's joint frame
    F: Any  # (n, 12)       link frame in the joint frame
    P: Any  # (n, 12)       joint frame, before its motion, in the parent's link frame
    inertia: Any  # (n, 10) joint frame: mass, com x y z, I about com: xx yy zz xy xz yz
    J: Any  # (n, 10)       link frame, pseudo-inertia (7): xx yy zz xy xz yz, m·x m·y m·z, m
    massive: Any  # (n,)    0 where the link is a massless virtual one
    passive: Any  # (n, 4)  stiffness, rest position, damping, armature
    gravity: Any  # (1, 3) world
    apart: Any  # (n,)      0 where a joint's origin is always at its parent's, and for roots


@inline
def unpack(m):
    """Names for a plain tuple (which Numba's dispatcher reads faster than a named one)."""
    return Mechanism(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10])
