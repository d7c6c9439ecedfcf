"""Motions with contacts and constraints, told in other ways, are the same motions with the same derivatives.

Nothing depends on another body far away that lands at another time or the same one; on splitting a motion into two
calls; on how closely it is sampled; or on constraints being replaced by combinations of them.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import KineticEnergy, Objective, UnilateralContact, adjoint_gradient, simulate, simulate_fixed
from tests.fuzz.cases import cases

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
SAME, SLOPES = 1e-6, 1e-4  # of the largest; several impacts later
STEP = 0.02
ENERGY = Objective(end=[KineticEnergy()])


class Scene:
    """A body of a random kind above a floor, or before a stop, with nothing beside it."""

    def __init__(self, seed, kinds=("ball", "bar", "door")):
        self.rng = np.random.default_rng(seed)
        self.kind = kinds[seed % len(kinds)]
        self.height, self.e, self.mass = self.rng.uniform(0.2, 0.6), self.rng.uniform(0.3, 0.9), self.rng.uniform(1, 2)
        self.speed, self.tilt = self.rng.uniform(0.3, 8.0), self.rng.uniform(0.05, 0.4)
        self.depth = self.rng.uniform(0.8, 0.98)
        self.span = self.rng.uniform(0.5, 0.9) if self.kind != "door" else 16.0 / self.speed

    def parts(self, name, builder, offset=0.0):
        """Add the body under a name, `offset` m away; returns its contacts, q0, v0, and a parameter."""
        if self.kind == "ball":
            point = kg.Inertia.point(self.mass, [0, 0, 0])
            builder.add(f"{name}z", None, kg.prismatic("z"), link=name, placement=[offset, 0, 0], inertia=point)
            ends, q0, v0 = [kg.Contact(name, directions="z", name=f"{name} floor")], [self.height], [0.0]
        elif self.kind == "bar":
            builder.add(f"{name}z", None, kg.prismatic("z"), placement=[offset, 0, 0])
            bar = kg.Inertia.rod(self.mass, [-0.3, 0, 0], [0.3, 0, 0])
            bar = kg.Inertia(bar.mass, bar.com, bar.inertia + 0.01 * np.eye(3))
            builder.add(f"{name}y", f"{name}z", kg.revolute("y"), link=name, inertia=bar)
            ends = [kg.Contact(name, [x, 0, 0], directions="z", name=f"{name} {x}") for x in (-0.3, 0.3)]
            q0, v0 = [self.height + 0.3, self.tilt], [0.0, 0.3]
        else:
            leaf = kg.Inertia(self.mass, [0.5, 0, 0], np.diag([0.1, 0.1, 0.1]))
            builder.add(f"{name}h", None, kg.revolute("z"), link=name, placement=[offset, 0, 0], inertia=leaf)
            stop = [offset, -self.depth, 0]
            ends = [kg.Contact(name, [1.0, 0, 0], directions="y", other_point=stop, name=f"{name} stop")]
            q0, v0 = [0.01], [self.speed]
        return [UnilateralContact(x, self.e) for x in ends], q0, v0


def other_scene(scene, seed):
    """The same once more, so that it lands at the same time, or another one."""
    if seed % 2:
        return scene
    found = Scene(seed + 1000)
    found.span = scene.span
    return found


def built(scenes):
    """The model of some bodies, contacts, initial state, and their first numbers."""
    builder, contacts, q0, v0 = kg.ModelBuilder("scene"), [], [], []
    for k, scene in enumerate(scenes):
        some, q, v = scene.parts(f"body{k}", builder, 100.0 * k)
        contacts, q0, v0 = contacts + some, q0 + q, v0 + v
    return builder.build(), contacts, np.array(q0), np.array(v0)


def moved(scenes, t, **more):
    """Adaptive, with derivatives with respect to all of the initial state and a mass."""
    model, contacts, q0, v0 = built(scenes)
    design, n = kg.Design(model, [f"body{k}.mass" for k in range(len(scenes))]), len(q0)
    return simulate(model, q0, v0, t, contacts=contacts, design=design, unfinished="ignore", **TIGHT, **more), n


def alike(found, wanted, part):
    assert np.abs(found - wanted).max(initial=0.0) <= part * np.abs(wanted).max(initial=1.0)


def one_neighbour(seed):
    """Adaptive and fixed steps, forwards and backwards, with and without another body far away."""
    scene = Scene(seed)
    both = [scene, other_scene(scene, seed)]
    t = np.linspace(0, scene.span, 4)
    (one, n), (two, _) = moved(both[:1], t), moved(both, t)
    m = min(len(one.t), len(two.t))
    assert m == len(one.t) or not two.success
    own = [x for x in two.impacts if x.touching[0].startswith("body0") and x.t <= one.t[-1]]
    assert [x.touching for x in own] == [x.touching for x in one.impacts][: len(own)]
    for name, part in (("q", SAME), ("v", SAME), ("dq_dp", SLOPES), ("dv_dp", SLOPES)):
        x, y = getattr(one, name)[:m], getattr(two, name)[:m, :n]
        alike(y[..., :1] if name[0] == "d" else y, x, part)
    steps = {"step": scene.span / 20, "steps": 20}
    results = []
    for scenes in (both[:1], both):
        model, contacts, q0, v0 = built(scenes)
        n, design = len(built(both[:1])[2]), kg.Design(model, ["body0.mass"])
        follow = {"dq0_dp": np.eye(len(q0))[:, :1], "design": design, "unfinished": "ignore"}
        fixed = simulate_fixed(model, q0, v0, contacts=contacts, **steps, **follow)
        try:
            back = adjoint_gradient(model, q0, v0, ENERGY, contacts=contacts, **steps)
            gradient = [back.dvalue_dq0[:n], back.dvalue_dv0[:n]]
        except kg.SolveError:
            gradient = []
        results.append((fixed, gradient))
    (first, one), (second, two) = results
    m = min(len(first.t), len(second.t))
    for name in ("q", "v", "dq_dp", "dv_dp"):
        alike(getattr(second, name)[:m, :n], getattr(first, name)[:m], 1e-8)
    for x, y in zip(one, two, strict=False):
        alike(y, x, 1e-8)


def one_split(seed):
    """In two calls, from the state in between, sampled more closely, and in short steps."""
    scene = Scene(seed, ("door", "ball", "door", "bar"))
    model, contacts, q0, v0 = built([scene])
    middle = scene.rng.uniform(0.2, 0.8) * scene.span
    how = {"contacts": contacts, "unfinished": "ignore", **(TIGHT if scene.kind != "door" else {})}
    whole = simulate(model, q0, v0, [0, middle, scene.span], **how)
    close = simulate(model, q0, v0, np.union1d(np.linspace(0, scene.span, 60), [middle]), **how)
    assert whole.success == close.success
    if not whole.success:
        return
    short = simulate(model, q0, v0, [0, middle, scene.span], max_step=scene.span / 100, **how)
    alike(np.array([x.t for x in short.impacts]), np.array([x.t for x in whole.impacts]), SAME)
    half = simulate(model, q0, v0, [0, middle], **how)
    if any(abs(model_gap) < 1e-7 for model_gap in gaps(model, contacts, half.q[-1])):
        return  # it rests on the floor, or is about to leave it: another start
    rest = simulate(model, half.q[-1], half.v[-1], [middle, scene.span], **how)
    times = [x.t for x in whole.impacts]
    alike(np.array([x.t for x in close.impacts]), np.array(times), SAME)
    alike(np.array([x.t for x in (*half.impacts, *rest.impacts)]), np.array(times), SAME)
    for name in ("q", "v"):
        alike(getattr(close, name)[-1], getattr(whole, name)[-1], SAME)
        alike(getattr(rest, name)[-1], getattr(whole, name)[-1], SAME)


def gaps(model, contacts, q):
    return kg.ConstraintSet(model, [x.contact for x in contacts]).error(q)


def one_combination(seed):
    """A point of a chain held in a plane, along two directions: the given ones, or two others, nearly the same."""
    rng = np.random.default_rng(seed)
    builder, parent = kg.ModelBuilder("chain"), None
    for k in range(5):
        inertia = kg.Inertia(1.0, rng.normal(size=3) / 5, np.diag([0.1, 0.12, 0.13]))
        builder.add(
            f"j{k}",
            parent,
            kg.revolute(rng.normal(size=3)),
            link=f"l{k}",
            placement=rng.normal(size=3) / 3,
            inertia=inertia,
        )
        parent = f"l{k}"
    model = builder.build()
    U, near = np.linalg.qr(rng.normal(size=(3, 2)))[0].T, 10.0 ** rng.uniform(-4.8, -3)
    mixed = np.array([[1.0, 0.0], [1.0, near]]) if rng.random() < 0.7 else np.array([[0.0, 1.0], [1.0, 0.0]])

    def held(directions):
        units = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
        return kg.ConstraintSet(model, [kg.Contact("l4", [0.1, 0.2, 0.3], directions=list(units))])

    one, other = held(U), held(mixed @ U)
    q, v, tau = rng.normal(size=(3, 5))
    for function in (kg.constrained_dynamics, kg.constrained_dynamics_derivatives):
        x, y = (function(model, some, q, v, tau) for some in (one, other))
        for name in ("a", "da_dq", "da_dv", "da_dtau"):
            if hasattr(x, name):
                alike(getattr(y, name), getattr(x, name), max(1e-11, 1e-14 / near))
    alike(kg.impact(model, other, q, v).v, kg.impact(model, one, q, v).v, max(1e-11, 1e-14 / near))
    try:
        q0 = kg.assemble(model, one, 0.2 * q)
    except kg.KinegradError:
        return
    v0 = kg.project_velocity(model, one, q0, v)
    run = {"step": STEP, "steps": 5, "project": True, "design": kg.Design(model, ["l2.mass"])}
    x, y = (simulate_fixed(model, q0, v0, constraints=some, **run) for some in (one, other))
    for name in ("q", "v", "dq_dp", "dv_dp"):
        alike(getattr(y, name), getattr(x, name), 1e-8 / near)


@pytest.mark.slow
@pytest.mark.parametrize("case", [one_neighbour, one_split, one_combination], ids=lambda x: x.__name__)
def test_told_in_other_ways(case):
    for seed in range(cases(few=6, cost=10)):
        try:
            case(seed)
        except Exception as error:
            error.add_note(f"{case.__name__}({seed})")
            raise
