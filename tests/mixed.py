"""Random mechanisms whose coordinates are not their joints: couplings of all kinds, within and across branches, and
quaternions, beside ordinary joints."""

import numpy as np

import kinegrad as kg
from kinegrad import Inertia, LinearFunction, Loads, Model, ModelBuilder, PolynomialFunction, SplineFunction


def mixed_tree(seed: int, *, joints: int = 5, passive: bool = True, kinds: str = "rpsbc") -> Model:
    """A tree of so many joints: revolute, prismatic, screw, ball (or free, at the root), coupled; some mimic others."""
    rng = np.random.default_rng([seed, 77])
    builder = ModelBuilder(f"mixed{seed}", gravity=rng.normal(size=3) * 5)
    links, single = [None], []
    for k in range(joints):
        parent = links[int(rng.integers(len(links)))] if k else None
        kind = kinds[int(rng.integers(len(kinds)))] if k >= len(kinds) else kinds[(k + seed) % len(kinds)]
        name, axis = f"j{k}", rng.normal(size=3)
        place = kg.rotate(rng.normal(size=3), rng.uniform(-2, 2)) @ kg.translate(*rng.normal(size=3) * 0.3)
        tip = kg.rotate(rng.normal(size=3), rng.uniform(-2, 2)) @ kg.translate(*rng.normal(size=3) * 0.2)
        body = Inertia.box(rng.uniform(0.5, 3), rng.uniform(0.2, 0.6, 3), com=rng.normal(size=3) * 0.1)
        numbers = {"damping": rng.uniform(0, 1)} if passive else {}
        if passive and kind != "b":
            numbers |= {"stiffness": rng.uniform(0, 5), "rest": rng.normal(), "armature": rng.uniform(0, 0.3)}
        joint = {
            "r": kg.revolute(axis),
            "p": kg.prismatic(axis),
            "s": kg.screw(axis, pitch=rng.normal() * 0.2),
            "b": kg.free(quaternion=True) if parent is None else kg.spherical(quaternion=True),
            "c": kg.planar("xyz"[seed % 3]),
        }[kind]
        link = builder.add(name, parent, joint, link=f"l{k}", placement=place, tip=tip, inertia=body, **numbers)
        links.append(link)
        if kind == "c":
            labels = [f"{name}.{part.label}" for part in joint]
            knots = np.sort(rng.uniform(-3, 3, 6)) + np.arange(6) * 0.1
            functions = [
                SplineFunction(knots, rng.normal(size=6) * 0.2),
                PolynomialFunction(rng.normal(size=4) * 0.1),
                LinearFunction(rng.uniform(0.5, 2), rng.normal()),
            ]
            builder.couple(f"{name}.q", dict(zip(labels, functions, strict=True)))
        elif kind in "rps":
            single.append(name)
    if len(single) > 1 and seed % 3:
        builder.mimic(single[-1], single[0], multiplier=rng.normal(), offset=rng.normal())
    return builder.build()


def mixed_state(model: Model, seed: int = 0, batch: tuple[int, ...] = ()):
    """q, with quaternions of unit length, v and a, of order one; away from gimbal lock, where the oracle fails."""
    rng = np.random.default_rng([seed, 78])
    q, (v, a) = rng.normal(size=(*batch, model.nq)), rng.normal(size=(2, *batch, model.nv))
    for _, k, _ in model.layout.balls:
        turn = rng.normal(size=(*batch, 3)) * [1.5, 0.5, 1.5]
        half = np.moveaxis(turn, -1, 0) / 2
        (c3, c2, c1), (s3, s2, s1) = np.cos(half), np.sin(half)  # z, then y, then x
        q[..., k : k + 4] = np.stack(
            [
                c3 * c2 * c1 + s3 * s2 * s1,
                c3 * c2 * s1 - s3 * s2 * c1,
                c3 * s2 * c1 + s3 * c2 * s1,
                s3 * c2 * c1 - c3 * s2 * s1,
            ],
            axis=-1,
        )
        q[..., k : k + 4] /= np.linalg.norm(q[..., k : k + 4], axis=-1, keepdims=True)
    return q, v, a


def mixed_loads(model: Model, seed: int = 0) -> Loads:
    """On links with mass: those inside a ball are not bodies."""
    rng = np.random.default_rng([seed, 79])
    solid = (model.mass > 0)[:, None]
    force, point, torque = rng.normal(size=(3, model.n, 3)) * solid
    return Loads(force=20 * force, point=0.3 * point, torque=5 * torque)
