"""Vectors by their components in the joint frames of their own links, handed on from frame to frame.

In world axes, as in ``joints.py``, nothing has to be turned but inertias, and everything that has to do with an axis z
takes three components.  In the frame of the joint, z = (0, 0, 1): a product with z takes two multiplications instead of
six, a component along z none, and c, N, d are constants.  Each vector that is handed on has to be turned instead, which
is worth it where more is done with each of them.

A joint frame may be turned about its own axis.  With angles chosen so (``_engine/joint_frames.py``), and ρ = 1, or 0 of
a joint that only slides, the frame of link i in that of its parent is

    Rz(β) Rx(α) Rz(ρq + γ)        β = 0 for one child of each link

A *placed* vector is in the frame of joint i before its motion, Rz(β) Rx(α), which is fixed in the parent and has the
axis z.  There links are shifted: d is constant but for ηq along z.  The angle between successive axes, α, is most often
a right one, or none: to turn by it then costs nothing.

    place(hinge, tilt, i, u), unplace        from the parent's frame to that of the joint before its motion, and back
    turn(c, s, u), unturn                    from there to the frame of link i, and back; c, s of ρq + γ

    tilt             what α and β are: PARALLEL α = 0, RIGHT α = π/2, TILTED by any α, BRANCHED by any α and β
    hinge            (n, 9): cos and sin of α, β, γ, and d, placed
"""

from kinegrad._kernels.compiler.jit import inline

PARALLEL, RIGHT, TILTED, BRANCHED = 0, 1, 2, 3
ALPHA, BETA, GAMMA, D = 0, 2, 4, 6  # columns of hinge


@inline
def place(hinge, tilt, i, u):
    """u of the parent of link i, placed."""
    x, y, z = u
    if tilt == RIGHT:
        y, z = z, -y
    elif tilt != PARALLEL:
        if tilt == BRANCHED:
            c, s = hinge[i, BETA], hinge[i, BETA + 1]
            x, y = c * x + s * y, c * y - s * x
        c, s = hinge[i, ALPHA], hinge[i, ALPHA + 1]
        y, z = c * y + s * z, c * z - s * y
    return x, y, z


@inline
def unplace(hinge, tilt, i, u):
    """A placed vector in the frame of the parent of link i."""
    x, y, z = u
    if tilt == RIGHT:
        y, z = -z, y
    elif tilt != PARALLEL:
        c, s = hinge[i, ALPHA], hinge[i, ALPHA + 1]
        y, z = c * y - s * z, s * y + c * z
        if tilt == BRANCHED:
            c, s = hinge[i, BETA], hinge[i, BETA + 1]
            x, y = c * x - s * y, s * x + c * y
    return x, y, z


@inline
def turn(c, s, u):
    """A placed vector in the frame of the link."""
    return c * u[0] + s * u[1], c * u[1] - s * u[0], u[2]


@inline
def unturn(c, s, u):
    """A vector of the link, placed."""
    return c * u[0] - s * u[1], s * u[0] + c * u[1], u[2]


@inline
def with_offset(hinge, i, s, c):
    """Sine and cosine of ρq + γ from those of ρq: exact for right angles, and for large q."""
    cos, sin = hinge[i, GAMMA], hinge[i, GAMMA + 1]
    return cos * s + sin * c, cos * c - sin * s


# --- along the axis, z = (0, 0, 1) ----------------------------------------------------------------------------------


@inline
def add_along(u, e):
    """u + e z"""
    return u[0], u[1], u[2] + e


@inline
def add_across(u, e, w):
    """u + w×(e z)"""
    return u[0] + e * w[1], u[1] - e * w[0], u[2]


@inline
def about(u, v):
    """z·(u×v)"""
    return u[0] * v[1] - u[1] * v[0]
