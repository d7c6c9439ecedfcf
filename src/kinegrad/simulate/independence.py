"""Which constraints and contacts affect each other's forces and impulses, and which are independent.

Two speeds are connected if an entry of the mass matrix, or one row of constraints, ties them at q or nearby: what is
zero at q by chance does not separate bodies.  Impacts in parts that are not connected follow one another in any order,
each at a time that follows the parameters in its own way; of connected ones the order matters.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kinegrad.constraints import ConstraintSet
from kinegrad.dynamics import mass_matrix
from kinegrad.simulate.projection import nearby

__all__ = ["order_note", "parts_of_rows"]

Array = NDArray[np.float64]
CONNECTED = 1e-9  # part of the largest entry of a row, in units in which the diagonal of M is one


def parts_of_rows(constraints: ConstraintSet, q: Array, active: Iterable[int]) -> NDArray[np.int64]:
    """Number the connected part of the model that each row acts on, (m,), while the `active` rows hold.

    A row that moves nothing has a part of its own.

    Examples
    --------
    >>> import kinegrad as kg
    >>> builder = kg.ModelBuilder("two")
    >>> for name in "ab":
    ...     inertia = kg.Inertia.point(1.0, [0, 0, 0])
    ...     _ = builder.add(name, None, kg.prismatic("z"), link=name, inertia=inertia)
    >>> model = builder.build()
    >>> floor = [kg.Contact(name, directions="z", name=f"floor {name}") for name in "ab"]
    >>> rod = kg.Coupling("a", "b", ratio=1.0, name="rod")
    >>> parts_of_rows(kg.ConstraintSet(model, [*floor, rod]), np.zeros(2), [0, 1]).tolist()
    [0, 1, 0]
    >>> parts_of_rows(kg.ConstraintSet(model, [*floor, rod]), np.zeros(2), [0, 1, 2]).tolist()
    [0, 0, 0]
    """
    both = np.stack([q, nearby(constraints.model, q)])
    M, G = mass_matrix(constraints.model, both), np.abs(constraints.jacobian(both))
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    joined = (np.abs(M) * unit[:, :, None] * unit[:, None, :] > CONNECTED).any(axis=0)
    G = G * unit[:, None, :]
    rows = (CONNECTED * G.max(axis=-1, initial=0.0, keepdims=True) < G).any(axis=0)
    for row in rows[list(active)]:
        joined |= np.outer(row, row)
    _, label = connected_components(joined, directed=False)
    own = -1 - np.arange(constraints.m)
    return np.where(rows.any(axis=1), label[rows.argmax(axis=1)], own)


def order_note(t: float, contacts: Iterable[str], what: str) -> str:
    """Return the sentence that derivatives with respect to `what` do not exist from an impact on.

    >>> order_note(0.5, ["left", "right"], "'mass'")[:48]
    "derivatives with respect to 'mass' do not exist "
    """
    names = ", ".join(map(repr, contacts))
    return (
        f"derivatives with respect to {what} do not exist from t = {t:.6g} s on, where contacts {names} touch at the "
        "same time: the motion after it depends on which of them is first"
    )
