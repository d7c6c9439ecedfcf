"""The human of [zhakatayev2023]: 43 degrees of freedom, 20 limbs, standing upright at q = 0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import InputError, shown
from kinegrad.model import DH, Inertia, Model
from kinegrad.model.model import STANDARD_GRAVITY
from kinegrad.model.names import find_name
from kinegrad.model.numbers import flag, real_number
from kinegrad.samples.human_limits import limits_of

__all__ = ["human43"]

Q = math.pi / 2  # a quarter turn

# [zhakatayev2023] Table 2: L_j [m] and m_j [kg]; j of the right side first, then of the left.
LENGTHS = {
    "pelvis": 0.09, "thigh": 0.44, "shank": 0.43, "foot": 0.16, "toes": 0.06,     # j = 1–5, 6–10
    "trunk": 0.49,                                                                # j = 11
    "clavicle": 0.17, "upper_arm": 0.28, "forearm": 0.26, "hand": 0.19,           # j = 12–15, 16–19
    "head": 0.35,                                                                 # j = 20
}  # fmt: skip
MASSES = {
    "pelvis": 4.5, "thigh": 9.5, "shank": 3.7, "foot": 1.2, "toes": 0.2,
    "trunk": 12.3,
    "clavicle": 5.8, "upper_arm": 1.9, "forearm": 1.3, "hand": 0.5,
    "head": 8.0,
}  # fmt: skip

# Φ and Ψ, [zhakatayev2023] (19), (20), from 0: root, right leg, left leg, trunk, right arm, left arm, head.
PHI = [-1, 0, 0, 0, 3, 3, 3]
PSI = [[0, 4], [5, 12], [13, 20], [21, 21], [22, 30], [31, 39], [40, 42]]
PSI_LUMBAR = [[0, 4], [5, 12], [13, 20], [21, 22], [23, 31], [32, 40], [41, 43]]  # with a low back
# L5/S1 above the middle of the hips, by the length of the trunk: 0.075 m, as of human_sagittal of 1.71 m
LUMBAR = 0.153


class _Row(NamedTuple):
    joint: str
    theta: float
    d: float
    a: float
    alpha: float
    variable: str = "theta"
    limb: str = ""  # a link with mass; without it the link is virtual


def human43(
    *,
    lengths: Mapping[str, float] | None = None,
    masses: Mapping[str, float] | None = None,
    thickness: float = 0.0,
    lumbar_flexion: bool = False,
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Model:
    """The human body of [zhakatayev2023], Tables 1 and 2: 43 joints, 20 limbs, 77.5 kg.

    At q = 0 the person stands with the arms down, the middle of the pelvis at the world's origin, facing +y
    with +z up, so that the right side is +x.  Link frames are distal: at the far end of each limb.

    The letter in ``right_hip.z`` is the world axis along which that joint's axis lies while standing.  Turns
    called x (also of knees and toes) are about −x: a positive knee bends, a positive hip swings back.  The
    twist of a forearm, ``right_elbow.z``, is about −z.  The whole body turns by ``pelvis.rx`` and
    ``pelvis.rz``; the third, about y, is a joint of its own in each of the three branches: ``right_pelvis``,
    ``left_pelvis``, ``lumbar``.  No joint of the paper's body bends the trunk forwards against the pelvis: ``lumbar``
    bends it to the side, and its torque is zero for a load that is held in front.  `lumbar_flexion` adds that joint.

    Joints have anatomical ranges and strengths, ``position_limits`` and ``effort_limits``:
    :mod:`kinegrad.samples.human_limits` says which, and where they are from.  The six freedoms of the whole body have
    neither.  Nothing but motion prediction and random configurations minds them.

    Parameters
    ----------
    lengths : mapping of str to float, optional
        Limbs that differ from Table 2, m: pelvis (from its middle to a hip), thigh, shank, foot, toes, trunk,
        clavicle, upper_arm, forearm, hand, head (with the neck).  Both sides are alike.
    masses : mapping of str to float, optional
        The same for the mass of one limb, kg.
    thickness : float
        Radius of each limb by its length: 0 makes slender rods, more makes solid cylinders.
    lumbar_flexion : bool
        Whether the low back bends: a hinge ``lumbar.x``, positive forwards, at the height of L5/S1, 0.153 of the
        trunk's length above the middle of the hips.  The trunk below it is a limb of its own, ``lower_trunk``, with its
        share of the trunk's mass, so that the body is the same at ``lumbar.x`` = 0.  44 joints; ``human43_lumbar``.
    gravity : array_like, shape (3,)
        World, m/s².

    Returns
    -------
    Model

    Notes
    -----
    The paper prints no inertias: each limb is a slender rod from its joint to its far end.  Head
    and hands are then rods turned by three hinges, of which a rod feels two: the mass matrix has rank 40, and
    36 while standing.  Inverse dynamics does not mind; for forward dynamics give the limbs some `thickness`,
    such as 0.1.

    In the scan, α of rows 6, 7 and of rows 29, 30 has run together; read as (π/2, −π/2) and (π/2, π/2), as in
    the other leg and arm, they give the upright posture that the paper describes.  No sign of Table 1 was
    changed.

    Examples
    --------
    >>> human = human43()
    >>> human.n, round(human.total_mass, 6), human.joint_names[9]
    (43, 77.5, 'right_knee')
    >>> human43(lengths={"thigh": 0.50}).tip[8, :3, 3].tolist()
    [0.5, 0.0, 0.0]
    """
    bends = flag("`lumbar_flexion`", lumbar_flexion)
    rows = list(_table(_changed("lengths", LENGTHS, lengths), bends))
    table = [DH(row.theta, row.d, row.a, row.alpha, row.variable) for row in rows]
    thickness = real_number("`thickness`", thickness)
    kilograms = _changed("masses", MASSES, masses)
    if bends:
        trunk = kilograms["trunk"]
        kilograms |= {"lower_trunk": LUMBAR * trunk, "trunk": (1 - LUMBAR) * trunk}
    ranges, strengths = limits_of([row.joint for row in rows])
    return Model.from_dh(
        table,
        branches=(PHI, PSI_LUMBAR if bends else PSI),
        name="human43_lumbar" if bends else "human43",
        joint_names=[row.joint for row in rows],
        link_names=[row.limb or row.joint for row in rows],
        inertias=[_limb(kilograms, thickness, row.limb, dh) for row, dh in zip(rows, table, strict=True)],
        gravity=gravity,
        position_limits=ranges,
        effort_limits=strengths,
    )


def _table(L: Mapping[str, float], bends: bool) -> Iterator[_Row]:
    """[zhakatayev2023] Table 1."""
    #          joint        θ   d  a   α
    yield _Row("pelvis.tz", 0, 0, 0, -Q, "d")
    yield _Row("pelvis.ty", Q, 0, 0, -Q, "d")
    yield _Row("pelvis.tx", 0, 0, 0, 0, "-d")
    yield _Row("pelvis.rx", Q, 0, 0, -Q)
    yield _Row("pelvis.rz", Q, 0, 0, -Q)
    yield from _leg("right", +1, L)
    yield from _leg("left", -1, L)
    if bends:
        yield _Row("lumbar", Q, 0, -LUMBAR * L["trunk"], -Q, limb="lower_trunk")
        yield _Row("lumbar.x", 0, 0, -(1 - LUMBAR) * L["trunk"], Q, limb="trunk")
    else:
        yield _Row("lumbar", Q, 0, -L["trunk"], 0, limb="trunk")
    yield from _arm("right", +1, L)
    yield from _arm("left", -1, L)
    yield _Row("neck.y", -Q, 0, 0, Q)
    yield _Row("neck.z", Q, 0, 0, -Q)
    yield _Row("neck.x", Q, 0, -L["head"], 0, limb="head")


def _leg(side: str, x: int, L: Mapping[str, float]) -> Iterator[_Row]:
    #          joint             θ   d  a   α
    yield _Row(f"{side}_pelvis", 0, 0, x * L["pelvis"], Q, limb=f"{side}_pelvis")
    yield _Row(f"{side}_hip.z", 0, 0, 0, -Q)
    yield _Row(f"{side}_hip.y", Q, 0, 0, -Q)
    yield _Row(f"{side}_hip.x", 0, 0, L["thigh"], 0, limb=f"{side}_thigh")
    yield _Row(f"{side}_knee", 0, 0, L["shank"], 0, limb=f"{side}_shank")
    yield _Row(f"{side}_ankle.x", 0, 0, 0, Q)
    yield _Row(f"{side}_ankle.y", 0, L["foot"], 0, -Q, limb=f"{side}_foot")
    yield _Row(f"{side}_toes", -Q, 0, L["toes"], 0, limb=f"{side}_toes")


def _arm(side: str, x: int, L: Mapping[str, float]) -> Iterator[_Row]:
    #          joint                 θ   d  a   α
    yield _Row(f"{side}_clavicle.y", -Q, 0, 0, Q)
    yield _Row(f"{side}_clavicle.z", 0, 0, x * L["clavicle"], 0, limb=f"{side}_clavicle")
    yield _Row(f"{side}_shoulder.z", 0, 0, 0, -Q)
    yield _Row(f"{side}_shoulder.y", Q, 0, 0, -Q)
    yield _Row(f"{side}_shoulder.x", 0, 0, L["upper_arm"], 0, limb=f"{side}_upper_arm")
    yield _Row(f"{side}_elbow.x", -Q, 0, 0, -Q)
    yield _Row(f"{side}_elbow.z", 0, L["forearm"], 0, Q, limb=f"{side}_forearm")
    yield _Row(f"{side}_wrist.x", Q, 0, 0, Q)
    yield _Row(f"{side}_wrist.y", 0, 0, L["hand"], 0, limb=f"{side}_hand")


def _limb(masses: Mapping[str, float], thickness: float, limb: str, row: DH) -> Inertia | None:
    """A rod or cylinder from the joint to the origin of the link's frame, in that frame."""
    if not limb:
        return None
    mass = masses[limb.removeprefix("right_").removeprefix("left_")]
    _, F = row.placement("distal")
    start, end = -F[:3, :3].T @ F[:3, 3], [0.0, 0.0, 0.0]
    if not thickness:
        return Inertia.rod(mass, start, end)
    return Inertia.cylinder(mass, thickness * np.sqrt(start @ start).item(), start, end)


def _changed(what: str, table: Mapping[str, float], changes: Mapping[str, float] | None) -> dict[str, float]:
    if changes is None:
        return dict(table)
    if not isinstance(changes, Mapping):
        raise InputError(f"`{what}` is {shown(changes)}; expected a dictionary from limbs to numbers")
    changed = dict(table)
    for limb, value in changes.items():
        find_name("limb", limb, tuple(table), "human43")
        changed[limb] = real_number(f"`{what}` of {limb!r}", value)
    return changed
