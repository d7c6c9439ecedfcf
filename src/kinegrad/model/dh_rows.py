"""What a Denavit–Hartenberg table says of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import ModelError, shown
from kinegrad.model.dh import DH, DHTable, check_convention
from kinegrad.model.inertia import Inertia
from kinegrad.model.names import as_tuple
from kinegrad.model.topology import Topology

__all__ = ["fields_of_rows"]


def fields_of_rows(
    rows: Iterable[DH | Sequence[float]],
    parents: ArrayLike | None,
    branches: tuple[ArrayLike, ArrayLike] | None,
    convention: str,
    inertias: Sequence[Inertia | None] | None,
) -> dict[str, Any]:
    """Fields of :class:`~kinegrad.Model` that follow from the arguments of :meth:`~kinegrad.Model.from_dh`."""
    given = as_tuple("rows", rows, "DH rows, or (theta, d, a, alpha) of each joint")
    table = [row if isinstance(row, DH) else _dh_row(i, row) for i, row in enumerate(given)]
    n = len(table)
    if parents is not None and branches is not None:
        raise ModelError("`parents` and `branches` are both given; expected one description of the topology")
    if branches is not None:
        both = as_tuple("branches", branches, "the pair (phi, psi)")
        if len(both) != 2:
            raise ModelError(f"`branches` has {len(both)} entries; expected the pair (phi, psi)")
        parents = Topology.from_branches(*both).parents
    elif parents is None:
        parents = np.arange(-1, n - 1)
    parents = Topology(parents).parents
    if len(parents) != n:
        raise ModelError(f"the topology has {len(parents)} joints; the DH table has {n} rows")
    bodies = as_tuple("inertias", inertias, "Inertia objects") if inertias is not None else (None,) * n
    if len(bodies) != n:
        raise ModelError(f"`inertias` has {len(bodies)} entries; the DH table has {n} rows")
    for body in bodies:
        if body is not None and not isinstance(body, Inertia):
            raise ModelError(f"`inertias` holds {shown(body)}; expected Inertia objects, or None")
    solid = [body if body is not None else Inertia.zero() for body in bodies]
    placed = [row.placement(check_convention(convention)) for row in table]
    return {
        "joints": tuple(row.joint() for row in table),
        "parents": parents,
        "placement": np.array([P for P, _ in placed]).reshape(n, 4, 4),
        "tip": np.array([F for _, F in placed]).reshape(n, 4, 4),
        "mass": np.array([body.mass for body in solid]),
        "com": np.array([body.com for body in solid]).reshape(n, 3),
        "inertia": np.array([body.inertia for body in solid]).reshape(n, 3, 3),
        "dh": DHTable(tuple(table), convention),
    }


def _dh_row(i: int, row: Sequence[float]) -> DH:
    try:
        theta, d, a, alpha = row
    except Exception:  # whatever a foreign object raises when asked for its items
        raise ModelError(f"`rows`[{i}] is {shown(row)}; expected a DH or (theta, d, a, alpha)") from None
    return DH(theta, d, a, alpha)
