"""Constraints as plainly as they can be written: φ, φ̇ and φ̈ by the product rule from transforms and their rates.

Built from the descriptions alone, by other code than the library's tables: frames are 4×4 products, rotations of loops
are read off the relative rotation of the two frames.  Complex-safe, so that complex step gives all derivatives.
"""

from __future__ import annotations

import numpy as np

from kinegrad.constraints import Contact, Coupling, Distance, Given, Loop
from tests.reference import oracle

# Entries of R, the frame of `link` in that of `other`, which vanish at closure: row, column, sign, of each turn.
TURNS = {
    "X": {"XY": (1, 2, -1), "XZ": (2, 1, 1), "XYZ": (1, 2, -1), "X": (1, 2, -1)},
    "Y": {"XY": (0, 2, 1), "YZ": (2, 0, -1), "XYZ": (0, 2, 1), "Y": (0, 2, 1)},
    "Z": {"YZ": (1, 0, 1), "XZ": (0, 1, -1), "XYZ": (1, 0, 1), "Z": (1, 0, 1)},
}


def motion(model, constraints, q, v, a):
    """φ, φ̇ and φ̈, (3, m), of one state."""
    q, v, a = map(np.asarray, (q, v, a))
    moving = oracle.transform_motion(model, q, v, a)
    rows = []
    for one in constraints:
        if isinstance(one, Coupling | Given):
            rows.append([_joint(model, one, x, k) for k, x in enumerate((q, v, a))])
        elif isinstance(one, Loop):
            ours, theirs = frame(model, moving, one.link), frame(model, moving, one.other)
            rows += _loop(one, [X @ one.placement for X in ours], [X @ one.other_placement for X in theirs])
        else:
            x, y = np.append(one.point, 1.0), np.append(one.other_point, 1.0)
            ours, theirs = frame(model, moving, one.link), frame(model, moving, one.other)
            e = [(X @ x - Y @ y)[:3] for X, Y in zip(ours, theirs, strict=True)]
            if isinstance(one, Distance):
                rows.append(_distance(one, *e))
            else:
                assert isinstance(one, Contact)
                rows += [[u @ x for x in e] for u in one.units]
    return np.array(rows).reshape(-1, 3).T


def frame(model, moving, name):
    """World transform of a link, of a frame, or of the world, and its rates."""
    if name is None:
        return [np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))]
    if name in model.frames:
        link, placement = model.frames[name].link, model.frames[name].placement
        return [X[model.link_names.index(link)] @ placement for X in moving]
    return [X[model.link_names.index(name)] for X in moving]


def _joint(model, one, x, order):
    value = x[model.joint_names.index(one.joint)]
    if isinstance(one, Given):
        return value - (one.value if order == 0 else 0.0)
    return value - one.ratio * x[model.joint_names.index(one.other)] - (one.offset if order == 0 else 0.0)


def _distance(one, e, de, dde):
    """From |e|² = d²: d ḋ = e·ė, ḋ² + d d̈ = ė·ė + e·ë."""
    d = np.sqrt(np.sum(e * e))
    rate = np.sum(e * de) / d
    return [d - one.length, rate, (np.sum(de * de) + np.sum(e * dde) - rate**2) / d]


def _loop(one, ours, theirs):
    R = _product([X[:3, :3].T for X in theirs], [X[:3, :3] for X in ours])
    e = _product([X[:3, :3].T for X in theirs], [(X - Y)[:3, 3] for X, Y in zip(ours, theirs, strict=True)])
    turns = "".join(filter(str.isupper, one.directions))
    rows = []
    for letter in one.directions:
        if letter.islower():
            rows.append([x["xyz".index(letter)] for x in e])
        else:
            i, k, sign = TURNS[letter][turns]
            rows.append([sign * x[i, k] for x in R])
    return rows


def _product(A, B):
    """A B with its first and second time derivatives."""
    (a, da, dda), (b, db, ddb) = A, B
    return [a @ b, da @ b + a @ db, dda @ b + 2 * da @ db + a @ ddb]


def jacobian(model, constraints, q):
    """G, by complex step of φ."""
    zero = np.zeros(model.n)
    return oracle.numerical_derivative(lambda x: motion(model, constraints, x, zero, zero)[0], q)


def derivatives(model, constraints, q, v, a):
    """∂(φ, φ̇, φ̈)/∂q, ∂/∂v, ∂/∂a, (3, m, n) each."""
    return (
        oracle.numerical_derivative(lambda x: motion(model, constraints, x, v, a), q),
        oracle.numerical_derivative(lambda x: motion(model, constraints, q, x, a), v),
        oracle.numerical_derivative(lambda x: motion(model, constraints, q, v, x), a),
    )


def jacobian_derivatives(model, constraints, q):
    """∂G/∂q, (m, n, n): G_j is φ̇ at the speeds e_j."""
    zero = np.zeros(model.n)

    def column(e):
        return oracle.numerical_derivative(lambda x: motion(model, constraints, x, e, zero)[1], q)

    return np.stack([column(e) for e in np.eye(model.n)], axis=1)
