"""sin and cos of a lane value, together, within about one unit in the last place.

Reduction (Cody and Waite).  k = nearest integer to x·2/π, and x − kπ/2 = y + δ with |y| ≤ π/4, from π/2 = P₁+P₂+P₃
where P₁ and P₂ have 33 significant bits, so that kP₁ and kP₂ are exact for |k| < 2²⁰ and only kP₃ is rounded.
The two-part remainder (y, δ) keeps full relative accuracy next to the multiples of π/2.
Polynomials: the minimax coefficients of fdlibm for sin and cos on [−π/4, π/4], error below 2⁻⁵⁸.
Selection: k mod 4 says which of ±sin, ±cos each one is.

Beyond |x| = 10⁵, where nobody's joint should be, each lane calls the C library.
"""

import math

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from kinegrad._kernels.compiler.jit import exact
from kinegrad._kernels.compiler.standin import tracer
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.lane import Lane, pick, put, within

_FAR = 1e5
_TWO_OVER_PI = 2 / math.pi
_P1 = float.fromhex("0x1.921fb544p+0")
_P2 = float.fromhex("0x1.0b4611a6p-34")
_P3 = float.fromhex("0x1.3198a2e037073p-69")

_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11


@operation
def nearest(u):
    """Nearest integer, ties to even."""
    return np.rint(u)


@operation
def turn_quarters(k, s, c):
    """(sin, cos) of y + kπ/2 from those of y."""
    k = k.astype(np.int64)
    swap = k & 1 == 1
    return (
        np.where(swap, c, s) * np.where(k & 2, -1.0, 1.0),
        np.where(swap, s, c) * np.where((k + 1) & 2, -1.0, 1.0),
    )


@nearest.register(Lane)
def _(u):
    kind = ir.FunctionType(u.v.type, [u.v.type])
    rint = cgutils.get_or_insert_function(tracer().builder.module, kind, f"llvm.rint.v{lane_count()}f64")
    return Lane.of(tracer().builder.call(rint, [u.v]))


@turn_quarters.register(Lane)
def _(k, s, c):
    builder, integers = tracer().builder, ir.VectorType(ir.IntType(32), lane_count())
    number = {value: ir.Constant(integers, [value] * lane_count()) for value in (0, 1, 2)}
    k = builder.fptosi(k.v, integers)

    def bit(value, mask):
        return builder.icmp_signed("!=", builder.and_(value, number[mask]), number[0])

    def negate_if(condition, value):
        return Lane.of(builder.select(condition, builder.fneg(value), value))

    swap = bit(k, 1)
    sine = negate_if(bit(k, 2), builder.select(swap, c.v, s.v))
    return sine, negate_if(bit(builder.add(k, number[1]), 2), builder.select(swap, s.v, c.v))


@exact
def sincos_near(x):
    """(sin x, cos x) for |x| ≤ 10⁵."""
    k = nearest(x * _TWO_OVER_PI)
    # reduction: x − kP₁ and kP₂ are exact; t − w is split into t2 + e without error (Knuth)
    t = x - k * _P1
    w = k * _P2
    t2 = t - w
    b = t2 - t
    e = (t - (t2 - b)) - (w + b)
    rest = k * _P3 - e
    y = t2 - rest
    delta = (t2 - y) - rest
    # polynomials in z = y²
    z = y * y
    v = z * y
    r = _S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))
    sine = y - ((z * (0.5 * delta - v * r) - delta) - v * _S1)
    r = z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
    half = 0.5 * z
    one = 1.0 - half
    cosine = one + (((1.0 - one) - half) + (z * r - y * delta))
    return turn_quarters(k, sine, cosine)


@exact
def _sincos(x):
    s, c = sincos_near(x)
    if within(x, _FAR):
        return s, c
    for w in range(lane_count()):  # the far lanes only: a state's result must not depend on its neighbours
        if not abs(pick(x, w)) <= _FAR:
            s = put(s, w, math.sin(pick(x, w)))
            c = put(c, w, math.cos(pick(x, w)))
    return s, c


@operation
def sincos(x):
    """(sin x, cos x); with the JIT disabled x may be complex."""
    return np.sin(x), np.cos(x)


sincos.register(Lane)(_sincos)
