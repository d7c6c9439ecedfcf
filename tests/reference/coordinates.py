"""The oracle for coordinates that are not joints, by another route than the library's.

A quaternion is there six hinges, of which three are a chart at zero.  Here the same ball is three hinges z, y, x at
Euler angles θ, whose rates and accelerations follow from ω = J(θ) θ̇ and α = J θ̈ + J̇ θ̇, and whose torques are carried
back by τ = J⁻ᵀ τ̂.  That fails at gimbal lock, where the library must not.  Couplings are written out: q̂ = f, v̂ = f′v, …

Complex-safe, so that complex step differentiates it, with respect to the tangent q ⊕ δ too.
"""

from types import SimpleNamespace

import numpy as np

from kinegrad import Model
from tests.reference import oracle

STEP = oracle.STEP


def euler_twin(model: Model):
    """The mechanism with three hinges for each quaternion; the number there of each joint of `model`, or −1."""
    gone = {first + k for first, _, _ in model.layout.balls for k in (3, 4, 5)}
    kept = [i for i in range(model.n) if i not in gone]
    number = np.full(model.n, -1)
    number[kept] = np.arange(len(kept))
    last = {first + 2: first + 5 for first, _, _ in model.layout.balls}  # whose link the third hinge moves here
    for third, end in last.items():
        number[end] = number[third]
    parents = [-1 if model.parents[i] < 0 else number[model.parents[i]] for i in kept]
    links = [last.get(i, i) for i in kept]
    fields = {name: np.array(getattr(model, name))[links] for name in ("tip", "mass", "com", "inertia")}
    joint = {
        name: np.array(getattr(model, name))[kept] for name in ("placement", "stiffness", "rest", "damping", "armature")
    }
    twin = SimpleNamespace(
        n=len(kept), joints=[model.joints[i] for i in kept], parents=np.array(parents), gravity=model.gravity, **fields,
        **joint,
    )  # fmt: skip
    return twin, number


def rotation(quaternion):
    """3×3, of the quaternion divided by its length."""
    w, x, y, z = np.asarray(quaternion) / np.sqrt(np.sum(np.asarray(quaternion) ** 2))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def arctan2(y, x):
    """With its derivative in the imaginary part."""
    y, x = complex(y), complex(x)
    slope = (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    return np.arctan2(y.real, x.real) + 1j * slope


def euler(quaternion, turn):
    """θ of hinges z, y, x for the rotation of a quaternion ⊕ a turn that is small or imaginary."""
    R = rotation(quaternion) @ (np.eye(3) + oracle.skew(turn))  # exact in the imaginary part
    across = np.sqrt(R[0, 0] ** 2 + R[1, 0] ** 2)
    return np.array([arctan2(R[1, 0], R[0, 0]), arctan2(-R[2, 0], across), arctan2(R[2, 1], R[2, 2])])


def euler_axes(theta, theta_dot):
    """J, whose columns are the hinges' axes in the child's frame, and J̇."""
    (_, b, c), (_, db, dc) = theta, theta_dot
    sb, cb, sc, cc = np.sin(b), np.cos(b), np.sin(c), np.cos(c)
    J = np.array([[-sb, 0, 1], [cb * sc, cc, 0], [cb * cc, -sc, 0]])
    dJ = np.array(
        [[-cb * db, 0, 0], [-sb * sc * db + cb * cc * dc, -sc * dc, 0], [-sb * cc * db - cb * sc * dc, -cc * dc, 0]]
    )
    return J, dJ


def inverse_dynamics(model, q, v, a, force=None, point=None, torque=None, turn=None, acting=None):
    """τ, (nv,), at q ⊕ turn; ``acting(twin, number, Q, V)`` are forces on the twin's joints besides."""
    layout, nv = model.layout, model.nv
    turn = np.zeros(nv) if turn is None else np.asarray(turn)
    q, v, a = np.asarray(q), np.asarray(v), np.asarray(a)
    twin, number = euler_twin(model)
    Q, V, A = np.zeros((3, twin.n), complex)
    G = np.zeros((twin.n, nv), complex)
    extra = np.zeros(nv, complex)
    for i, k, s in zip(layout.plain, layout.plain_q, layout.plain_v, strict=True):
        Q[number[i]], V[number[i]], A[number[i]], G[number[i], s] = q[k] + turn[s], v[s], a[s], 1.0
    for i, k, s, f in zip(layout.coupled, layout.coupled_q, layout.coupled_v, layout.functions, strict=True):
        f0, f1, f2 = f.derivatives(np.asarray(q[k] + turn[s]), 2)
        j = number[i]
        Q[j], V[j], A[j], G[j, s] = f0, f1 * v[s], f1 * a[s] + f2 * v[s] ** 2, f1
    for first, k, s in layout.balls:
        three = number[first : first + 3]
        theta = euler(q[k : k + 4], turn[s : s + 3])
        rates = np.linalg.solve(euler_axes(theta, np.zeros(3))[0], v[s : s + 3])
        J, dJ = euler_axes(theta, rates)
        inverse = np.linalg.inv(J)
        Q[three], V[three], A[three] = theta, rates, inverse @ (a[s : s + 3] - dJ @ rates)
        G[np.ix_(three, range(s, s + 3))] = inverse
        extra[s : s + 3] = model.damping[first + 3 : first + 6] * v[s : s + 3]
    loads = [
        None if x is None else np.array([np.asarray(x)[i] for i in _links(model, number)])
        for x in (force, point, torque)
    ]
    tau = oracle.regular_lagrangian(twin, Q, V, A, *loads)
    return G.T @ (tau if acting is None else tau - acting(twin, number, Q, V)) + extra


def _links(model, number):
    """Of each link of the twin, the link of the model: of several joints with one number, the last."""
    return [int(np.flatnonzero(number == k)[-1]) for k in range(number.max() + 1)]


def derivatives(model, q, v, a, *loads, acting=None):
    """∂τ/∂δ, ∂τ/∂v, ∂τ/∂a, (nv, nv), by complex step."""
    zero = np.zeros(model.nv)

    def tau(turn, v, a):
        return inverse_dynamics(model, q, v, a, *loads, turn=turn, acting=acting)

    return (
        oracle.numerical_derivative(lambda x: tau(x, v, a), zero),
        oracle.numerical_derivative(lambda x: tau(zero, x, a), v),
        oracle.numerical_derivative(lambda x: tau(zero, v, x), a),
    )
