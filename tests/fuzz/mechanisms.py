"""Random mechanisms, ordinary and not: trees, samples, floating bodies, long chains, far links, extreme
constants, force elements."""

import random
from functools import cache

import numpy as np

import kinegrad as kg
from kinegrad import Design, Inertia, Loads, Model, ModelBuilder, samples
from kinegrad.model.coordinates import HINGES, POSE
from tests.conftest import random_loads, tree
from tests.constraints.sets import random_constraints
from tests.mixed import mixed_loads, mixed_tree
from tests.reference.elements import random_elements

SMALL = ("two_link", "puma560", "double_pendulum", "cart_pendulum")
ORDINARY = ("tree", "sample", "floating")
KINDS = (
    *["tree"] * 8,
    *["sample"] * 3,
    *["floating"] * 2,
    *["far"] * 3,
    *["extreme"] * 3,
    "massless",
    "sprung",
    "chain",
)


def mechanism(rng: random.Random, *, largest: int = 8, mixed: bool = True) -> tuple[Model, str]:
    """A model and its kind; of the ordinary kinds, results can be compared with those of other formulations.

    Some have coordinates that are not joints, if they may be `mixed`.
    """
    kind = rng.choice(KINDS)
    if mixed and rng.random() < 0.15:
        kind = "mixed"
    if kind == "chain" and largest < 8:
        kind = "tree"
    return _mechanism(kind, rng.randrange(300), largest), kind


@cache
def _mechanism(kind: str, seed: int, largest: int) -> Model:
    rng = np.random.default_rng([seed, 11])
    if kind == "sample":
        return getattr(samples, SMALL[seed % len(SMALL)])() if seed % 12 or largest < 8 else samples.human43()
    if kind == "floating":
        return _floating(seed)
    if kind == "mixed":
        model = mixed_tree(seed, joints=1 + seed % max(largest - 3, 1))
        return model if seed % 4 else model.replace(elements=random_elements(model, seed))
    if kind == "sprung":
        model = tree(seed, largest=largest)
        return model.replace(elements=random_elements(model, seed))
    if kind == "chain":
        return samples.spatial_chain(30 + seed % 40)
    model = tree(seed, largest=largest)
    if kind == "far":
        placement = model.placement.copy()
        placement[rng.integers(model.n), :3, 3] += rng.normal(size=3) * 10.0 ** rng.uniform(1, 7)
        return model.replace(placement=placement)
    if kind == "massless":
        zero = np.zeros(model.n)
        link = {model.link_names[rng.integers(model.n)]: 0.0}
        bare = {next(iter(link)): np.zeros((3, 3))}
        return model.replace(mass=link, inertia=bare, com={next(iter(link)): np.zeros(3)}, armature=zero)
    return _extreme(model, rng) if kind == "extreme" else model


def _floating(seed: int) -> Model:
    builder = ModelBuilder("floating", gravity=(0.3, -0.2, -9.81))
    body = Inertia.box(5.0, [0.3, 0.2, 0.5], com=[0.01, 0.02, 0.03])
    builder.add("base", None, kg.free("zyx" if seed % 2 else "xyz"), link="trunk", inertia=body)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        place = kg.translate(0, sign * 0.1, -0.2)
        leg = Inertia.rod(1.0 + 0.01 * seed, [0, 0, 0], [0.02, 0, -0.4])
        builder.add(f"{side} hip", "trunk", kg.universal("xy"), link=f"{side} leg", placement=place, inertia=leg)
    return builder.build()


def _extreme(model: Model, rng: np.random.Generator) -> Model:
    """One field of all links, or of one, up to 1e95 times larger or smaller."""
    factor = np.ones(model.n)
    some = slice(None) if rng.random() < 0.5 else rng.integers(model.n)
    factor[some] = 10.0 ** (rng.normal() * rng.choice([3.0, 30.0]))
    what = rng.choice(["mass", "lengths", "passive", "gravity"])
    try:
        if what == "mass":
            return model.replace(mass=model.mass * factor, inertia=model.inertia * factor[:, None, None])
        if what == "lengths":
            placement = model.placement.copy()
            placement[:, :3, 3] *= factor[:, None]
            return model.replace(placement=placement)
        if what == "passive":
            names = ("stiffness", "damping", "armature")
            return model.replace(**{name: getattr(model, name) * factor for name in names})
        return model.replace(gravity=model.gravity * factor.max())
    except kg.KinegradError:  # beyond what constants may be
        return model


def design_of(rng: random.Random, model: Model) -> Design:
    """One to four parameters of a model."""
    link, joint = rng.choice(model.link_names), rng.choice(model.joint_names)
    names = [f"{link}.mass", f"{link}.com.y", f"{link}.inertia.xy"]
    balls = [model.joint_names[first : first + len(HINGES)] for first, _, _ in model.layout.balls]
    if ball := next((hinges for hinges in balls if joint in hinges), None):  # between whose hinges nothing can vary
        names += [f"{ball[0]}.placement.x", f"{ball[0]}.placement.rz", f"{ball[-1]}.tip.x", f"{ball[POSE]}.damping"]
    else:
        names += [f"{joint}.{x}" for x in ("placement.x", "placement.rz", "damping", "stiffness", "armature")]
    names += ["gravity.x", "gravity.z"]
    if model.mass[model.link_index(link)] == 0.0:
        names = names[3:]
    return Design(model, rng.sample(names, rng.randint(1, 4)))


def some_constraints(rng: random.Random, model: Model) -> kg.ConstraintSet:
    """None to three constraints of any kind."""
    few = random_constraints(model, rng.randrange(1000), loops=("hinge", "xYZ", "pin"))
    return kg.ConstraintSet(model, rng.sample(few, rng.randint(0, min(3, len(few)))))


def some_loads(rng: random.Random, model: Model, batch: tuple[int, ...]) -> Loads | None:
    """None, on all links, or on one by name; the same for all states, or not."""
    kind = rng.randrange(4)
    if model.coordinates:
        return mixed_loads(model, rng.randrange(1000)) if kind < 2 else None
    if kind == 0:
        return random_loads(model, rng.randrange(1000), batch)
    if kind == 1:
        return random_loads(model, rng.randrange(1000), ())
    if kind == 2:
        return Loads(force={rng.choice(model.link_names): [1.0, -2.0, 3.0]})
    return None
