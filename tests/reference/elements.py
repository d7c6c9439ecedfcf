"""The oracle for force elements: virtual power of their forces with Jacobians of links in the world; one state.

Both ends are taken as points of the world and both links as moving, so that nothing here knows of the way between the
two links, on which the library's kernel relies.  Complex-safe, in the state, in constants of the mechanism and in
those of the elements; energies are by quaternions, and so another route to the turns of bushings.
"""

import numpy as np

import kinegrad as kg
from kinegrad.model.elements import element_numbers, ends
from tests.reference import oracle


def rows(model):
    """Kind, links and numbers of each element."""
    numbers = element_numbers(model)
    return [
        (type(x), [i for i, _ in ends(model, x)], row) for x, row in zip(model.elements.values(), numbers, strict=True)
    ]


def forces(model, rows, q, v):
    """Q, (n,), of the joints."""
    T, v = oracle.transforms(model, q), np.asarray(v)
    return sum((_force(model, T, v, *row) for row in rows), np.zeros(model.n))


def _force(model, T, v, kind, links, numbers):
    (A, B), (x_A, x_B) = links, (numbers[:3], numbers[3:6])
    T_A, T_B = T[A], T[B] if B >= 0 else np.eye(4)
    apart = T_A[:3, :3] @ x_A + T_A[:3, 3] - T_B[:3, :3] @ x_B - T_B[:3, 3]
    none = np.zeros((3, model.n))
    J_A, W_A = oracle._jacobian(model, T, A, x_A)
    if kind is kg.SpringDamper:
        J_B, _ = oracle._jacobian(model, T, B, x_B) if B >= 0 else (none, none)
        length = np.sqrt(np.sum(apart * apart))
        u = apart / length
        return -(numbers[24] * (length - numbers[36]) + numbers[30] * (u @ (J_A - J_B) @ v)) * (J_A - J_B).T @ u
    a, b = T_A[:3, :3] @ numbers[6:15].reshape(3, 3), T_B[:3, :3] @ numbers[15:24].reshape(3, 3)
    there = x_B + T_B[:3, :3].T @ apart  # where the end on A is in link B
    J_B, W_B = oracle._jacobian(model, T, B, there) if B >= 0 else (none, none)
    J, W = J_A - J_B, W_A - W_B
    f = -b @ (numbers[24:27] * (b.T @ apart) + numbers[30:33] * (b.T @ (J @ v)))
    kappa = numbers[27:30]
    n = sum((kappa.sum() / 2 - kappa[i]) * np.cross(a[:, i], b[:, i]) for i in range(3))
    return J.T @ f + W.T @ (n - b @ (numbers[33:36] * (b.T @ (W @ v))))


def energy(model, rows, q):
    """Of all elements; of turns by ½ κ (2 x)² with the vector part x of the quaternion."""
    T, total = oracle.transforms(model, q), 0.0
    for kind, (A, B), numbers in rows:
        T_A, T_B = T[A], T[B] if B >= 0 else np.eye(4)
        apart = T_A[:3, :3] @ numbers[:3] + T_A[:3, 3] - T_B[:3, :3] @ numbers[3:6] - T_B[:3, 3]
        if kind is kg.SpringDamper:
            total = total + numbers[24] * (np.sqrt(np.sum(apart * apart)) - numbers[36]) ** 2 / 2
            continue
        a, b = T_A[:3, :3] @ numbers[6:15].reshape(3, 3), T_B[:3, :3] @ numbers[15:24].reshape(3, 3)
        R = b.T @ a
        vector = oracle.unskew(R) / np.sqrt(1 + np.trace(R))  # sin θ n / (2 cos θ/2)
        total = total + np.sum(numbers[24:27] * (b.T @ apart) ** 2) / 2 + np.sum(numbers[27:30] * 4 * vector**2) / 2
    return total


def random_elements(model, seed, count=3):
    """Spring-dampers and bushings between random links, or a link and the world."""
    rng = np.random.default_rng([seed, 91])
    inner = {first + k for first, _, _ in model.layout.balls for k in range(5)}
    bodies = [name for i, name in enumerate(model.link_names) if i not in inner]
    found = {}
    for k in range(count):
        A, B = rng.choice(len(bodies) + 1, 2, replace=False)
        if len(bodies) == A:
            A, B = B, A
        between = [bodies[A], bodies[B] if len(bodies) > B else None]
        if k % 2:
            frames = [kg.translate(*rng.normal(size=3)) @ kg.rotate(rng.normal(size=3), rng.normal()) for _ in range(2)]
            numbers = rng.uniform(1, 30, 6), rng.uniform(0, 3, 6)
            found[f"bushing{k}"] = kg.Bushing(between[0], frames[0], between[1], frames[1], *numbers)
        else:
            ends = rng.normal(size=(2, 3))
            numbers = rng.uniform(0, 50), rng.uniform(0, 5), rng.uniform(0, 1)
            found[f"spring{k}"] = kg.SpringDamper(between[0], ends[0], between[1], ends[1], *numbers)
    return found
