"""Inverse dynamics of a model as an expression of CasADi: Newton–Euler in link frames, from the model's fields."""

import casadi as ca
import numpy as np

from kinegrad import Model


def symbolic_torques(model: Model, q, v, a):
    """τ, (n, 1), of symbols or numbers q, v, a; revolute, prismatic and screw joints, springs, dampers, rotors.

    The model may be anything with the fields of one, of which some are symbols.
    """
    n = model.n
    frames, motions, forces = [], [], [None] * n
    for i in range(n):
        joint, p = model.joints[i], model.parents[i]
        axis = np.array(joint.axis, dtype=float)
        turn = 0.0 if joint.kind == "prismatic" else 1.0
        slide = {"revolute": 0.0, "prismatic": 1.0, "screw": joint.pitch}[joint.kind]
        T = ca.mtimes([matrix(model.placement[i]), moved(axis, turn * q[i], slide * q[i]), matrix(model.tip[i])])
        R, d = T[:3, :3], T[:3, 3]
        if p < 0:
            w, dw, x = ca.DM.zeros(3), ca.DM.zeros(3), -matrix(model.gravity)
            dx = ca.DM.zeros(3)
        else:
            w, dw, dx, x = motions[p]
        place = matrix(model.placement[i])
        z = ca.mtimes(place[:3, :3], axis)  # in the parent's frame
        along = z * slide
        # of the point of the link frame, in the parent's frame: rigid motion of the parent, and that of the joint
        arm = d - place[:3, 3]  # from the joint's origin; turns with the joint
        turning, speed = w + z * (turn * v[i]), along * v[i]
        velocity = dx + ca.cross(w, d) + speed + ca.cross(z * (turn * v[i]), arm)
        relative = speed + ca.cross(z * (turn * v[i]), arm)
        bent = along * a[i] + ca.cross(z * (turn * a[i]), arm) + ca.cross(z * (turn * v[i]), relative)
        acceleration = x + ca.cross(dw, d) + ca.cross(w, ca.cross(w, d)) + 2 * ca.cross(w, relative) + bent
        turned = dw + z * (turn * a[i]) + ca.cross(w, z * (turn * v[i]))
        frames.append((R, d, z, place, turn, slide))
        motions.append([ca.mtimes(R.T, y) for y in (turning, turned, velocity, acceleration)])
    for i in range(n):
        w, dw, _, x = motions[i]
        c, I = matrix(model.com[i]), matrix(model.inertia[i])
        f = model.mass[i] * (x + ca.cross(dw, c) + ca.cross(w, ca.cross(w, c)))
        moment = ca.mtimes(I, dw) + ca.cross(w, ca.mtimes(I, w)) + ca.cross(c, f)
        forces[i] = [moment, f]
    tau = [None] * n
    for i in reversed(range(n)):
        R, d, z, place, turn, slide = frames[i]
        moment, f = ca.mtimes(R, forces[i][0]), ca.mtimes(R, forces[i][1])
        about = moment + ca.cross(d - place[:3, 3], f)  # about the joint's origin, in the parent's frame
        tau[i] = turn * ca.dot(z, about) + slide * ca.dot(z, f)
        tau[i] += model.stiffness[i] * (q[i] - model.rest[i]) + model.damping[i] * v[i] + model.armature[i] * a[i]
        p = model.parents[i]
        if p >= 0:
            forces[p][0] = forces[p][0] + moment + ca.cross(d, f)
            forces[p][1] = forces[p][1] + f
    return ca.vertcat(*tau)


def matrix(x):
    """Numbers as CasADi has them; symbols as they are."""
    return x if isinstance(x, ca.SX) else ca.DM(x)


def moved(axis, angle, shift):
    """4×4: a turn about an axis and a shift along it."""
    K = ca.skew(ca.DM(axis))
    R = ca.DM.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * ca.mtimes(K, K)
    return ca.vertcat(ca.horzcat(R, shift * ca.DM(axis)), ca.DM([[0, 0, 0, 1]]))


def symbolic_hessian(model: Model):
    """A function of (q, v, a) in one column, and of w: τ, and CasADi's exact Hessian of wᵀτ, (3 n, 3 n)."""
    x, w = ca.SX.sym("x", 3 * model.n), ca.SX.sym("w", model.n)
    q, v, a = (x[k * model.n : (k + 1) * model.n] for k in range(3))
    tau = symbolic_torques(model, q, v, a)
    second, _ = ca.hessian(ca.dot(w, tau), x)
    return ca.Function("second", [x, w], [tau, second])
