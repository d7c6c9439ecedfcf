"""What a foot can transmit: friction cones, and the centre of pressure inside the sole.

With the wrench (F, M) of :class:`~kinegrad.motion.problem.requirements.Foot` in axes of the sole, z normal to it:

    F_z ≥ 0        t_j·F ≤ μ cos(π/k) F_z  for k directions t_j across the normal: a pyramid with its edges on the cone
    |M_y| ≤ ½ size_x F_z,    |M_x| ≤ ½ size_y F_z                (the centre of pressure is (−M_y, M_x) / F_z)
    |M_z| ≤ torsion F_z

All are linear in the unknown forces.  Where a row of a foot is redundant its force is not there, and is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.functions import Linear
from kinegrad.motion.problem.nodes import Block
from kinegrad.motion.problem.places import Foot
from kinegrad.motion.problem.quantities import Layout

Array = NDArray[np.float64]
LEVER = 0.1


def cone(foot: Foot) -> tuple[tuple[str, ...], Array]:
    """Names and matrix C of the rows C (F, M) ≥ 0, (rows, 6); of a point (rows, 3)."""
    names, rows = ["normal force"], [[0.0, 0, 1, 0, 0, 0]]
    angles = 2 * np.pi * (np.arange(foot.faces)) / foot.faces
    for j, angle in enumerate(angles):
        inside = foot.friction * np.cos(np.pi / foot.faces)
        names.append(f"friction face {j}")
        rows.append([-float(np.cos(angle)), -float(np.sin(angle)), inside, 0, 0, 0])
    if foot.size is None:
        return tuple(names), np.array(rows)[:, :3]
    along, across = foot.size
    for name, column, most in (
        ("centre of pressure along y", 3, across / 2),
        ("centre of pressure along x", 4, along / 2),
        ("torsion", 5, foot.torsion),
    ):
        for sign in (1.0, -1.0):
            row = [0.0, 0, most, 0, 0, 0]
            row[column] = sign
            names.append(name)
            rows.append(row)
    return tuple(names), np.array(rows)


def cone_rows(part: Any, layout: Layout, K: int, forces: Sequence[float]) -> list[Block]:
    """Blocks of all feet of a phase, each with the size of its forces, N."""
    blocks = []
    for (foot, name), size in zip(part.feet, forces, strict=True):
        names, C = cone(foot)
        wrench = part.forced.rows(name)
        where = {row: k for k, row in enumerate(part.forced_rows)}
        columns = [where.get(row, -1) for row in range(wrench.start, wrench.stop)]
        C = np.where(np.abs(C) < 1e-12, 0.0, C)
        kept = [k for k, c in enumerate(columns) if c >= 0]
        useful = [r for r in range(len(C)) if C[r, kept].any() and (r == 0 or any(C[r, k] for k in kept if k != 2))]
        matrix = np.zeros((len(useful), layout.forces))
        matrix[:, [columns[k] for k in kept]] = C[np.ix_(useful, kept)]
        scale = np.array([size if r <= foot.faces else LEVER * size for r in useful])
        labels = tuple(f"{names[r]} of {name}" for r in useful)
        function = Linear.of_matrix(labels, matrix, layout.force.start)
        sizes = np.tile(size * C[useful, 2], (2, 1))  # each by what the normal force would allow
        lower, upper = np.zeros((K, len(useful))), np.full((K, len(useful)), np.inf)
        blocks.append(Block(function, lower, upper, scale, sizes=sizes, label="cone"))
    return blocks
