"""Coordinates that are not joints, beside the same joints as coordinates of their own

A floating base with a unit quaternion and two legs of three hinges (12 speeds, 15 joints), and a chain of 40 hinges of
which ten follow the one before them (30 speeds, 40 joints).  301 random states.  The other side of each row is the same
mechanism with every joint its own coordinate, which the map is an addition to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kinegrad as kg
from benchmarks.timing import Case, Row, compare

STATES = 301


def legs() -> kg.Model:
    builder = kg.ModelBuilder("legs")
    base = builder.add("base", None, kg.free(quaternion=True), inertia=kg.Inertia.box(10.0, [0.5, 0.3, 0.2]))
    for side in ("left", "right"):
        link = base
        for k in range(3):
            body = kg.Inertia.box(1.0, [0.1, 0.1, 0.3])
            link = builder.add(f"{side}{k}", link, kg.revolute("xyz"[k]), placement=[0.1, 0.2, -0.3], inertia=body)
    return builder.build()


def chain() -> kg.Model:
    builder, link = kg.ModelBuilder("chain"), None
    for k in range(40):
        body = kg.Inertia.box(1.0, [0.1, 0.1, 0.2])
        link = builder.add(f"j{k}", link, kg.revolute("xyz"[k % 3]), placement=[0, -0.1, 0], inertia=body)
    for k in range(0, 40, 4):
        builder.mimic(f"j{k + 1}", f"j{k}", multiplier=0.5)
    return builder.build()


def run(repeats: int) -> list[Row]:
    cases = []
    for model, functions in (
        (legs(), {"τ": kg.inverse_dynamics, "∂τ": kg.inverse_dynamics_derivatives}),
        (chain(), {"τ": kg.inverse_dynamics, "∂τ": kg.inverse_dynamics_derivatives, "a": kg.forward_dynamics}),
    ):
        rng = np.random.default_rng(0)
        mapped = kg.random_configuration(model, 1, shape=STATES), *rng.normal(size=(2, STATES, model.nv))
        plain = tuple(rng.normal(size=(3, STATES, model.n)))
        for name, function in functions.items():
            for states in (STATES, 1):
                some: Any = slice(None) if states > 1 else 0
                label = f"{name} of {model.name}, {f'{states} states' if states > 1 else 'single call'}"
                ours = _call(function, model, [x[some] for x in mapped])
                theirs = _call(function, model.primitive, [x[some] for x in plain])
                cases.append(Case(label, ours, theirs, "in joints"))
    return compare(cases, repeats)


def _call(function: Callable[..., Any], model: kg.Model, state: list[Any]) -> Callable[[], Any]:
    """Without a result: those of coordinates and of joints are different numbers, which tests compare."""

    def call() -> None:
        function(model, *state, threads=1)

    return call
