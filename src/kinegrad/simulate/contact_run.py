"""Motions in fixed steps with contacts that open and close: what they are refused for, and what they report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.contact_slopes import Tangents, stage_motion
from kinegrad.simulate.contact_steps import ContactMotion
from kinegrad.simulate.contacts import UnilateralContact, check_contacts

__all__ = ["check_single", "check_switches", "contact_fields"]

Array = NDArray[np.float64]


def contact_fields(
    law: ConstrainedLaw, h: float, every: int, moved: ContactMotion, dq: Array, dv: Array
) -> dict[str, Any]:  # fmt: skip
    """What a FixedStepSimulation of a motion with contacts has, as far as it got."""
    names, nodes, contacts = ("q", "v", "a", "tau", "forces"), moved.nodes[::every], moved.contacts
    columns: list[list[Array]] = [[] for _ in names]
    for node in nodes:
        a, tau = node.law.acceleration(node.t, node.q, node.v, node.k)
        for column, x in zip(columns, (node.q, node.v, a, tau, node.law.forces(node.q, node.v, tau)), strict=True):
            column.append(x)
    motion: dict[str, Any] = {name: np.array(x) for name, x in zip(names, columns, strict=True)}
    impacts, stages = tuple(contacts.impacts), None
    by_weights: Array | None = None
    if law.design is not None:
        tangents = Tangents(moved, law.design, dq, dv)
        slopes = [
            (*x, *node.law.sensitivity(node.t, node.q, node.v, tau, *x))
            for node, x, tau in zip(nodes, tangents.nodes[::every], motion["tau"], strict=True)
        ]
        motion |= {f"d{x}_dp": np.array(y) for x, y in zip(names[:4], zip(*slopes, strict=True), strict=True)}
        impacts = tuple(replace(x, dt_dp=dt) for x, dt in zip(impacts, tangents.times, strict=True))
        stages, by_weights = tangents.stages, tangents.weights
    trouble = moved.trouble
    message = "; ".join([trouble or "reached the end", *contacts.notes])
    motion |= {"model": law.model, "t": np.array([node.t for node in nodes]), "design": law.design}
    if moved.pieces:
        motion["_nodes"] = (*stage_motion(law, moved.scheme, moved.pieces, slopes=stages), by_weights)
    motion |= {
        "row_names": contacts.whole.row_names,
        "impacts": impacts,
        "phases": contacts.told(max(moved.steps * h, contacts.phases[-1][0])),
    }
    return motion | {
        "success": not trouble, "status": moved.status, "message": message,
        "nfev": moved.evaluations, "steps": moved.steps, "_law": law.without_torques(),
    }  # fmt: skip


def check_switches(model: Any, contacts: Any, method: Any, stabilisation: Any) -> tuple[UnilateralContact, ...] | None:
    """Contacts that open and close, if there are any, and nothing that does not go together with them."""
    if contacts is None:
        return None
    if isinstance(model, list | tuple):
        raise InputError("several models and `contacts` are given; expected one model, because each has its own events")
    engine.check_model(model)
    if isinstance(method, str) and method == "implicit_midpoint":
        raise InputError("`method` is 'implicit_midpoint' and `contacts` are given; expected 'rk4'")
    if stabilisation is not None:
        raise InputError("`stabilisation` and `contacts` are given; expected one of them: contacts are projected")
    if model.coordinates and model.layout.balls:
        raise InputError(
            f"`contacts` are given and model {shown(model.name)} has quaternions; expected simulate, or another model"
        )
    return check_contacts(contacts)


def check_single(q: Array, v: Array) -> tuple[Array, Array]:
    """Refuse a batch of states with contacts."""
    if v.ndim > 1:
        raise InputError(
            f"`q0` and `v0` have batch shape {v.shape[:-1]} and `contacts` are given; expected one state, because each "
            "has events of its own"
        )
    return q, v
