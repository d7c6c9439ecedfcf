"""What a predicted motion looks like: its limbs, the box in its hands, the forces under its feet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.motion.problem import Foot, MotionSolution
from kinegrad.papers.report.animation import MIDDLE, Arrow, Block, Scene, skeleton
from kinegrad.predictions.catalogue import Drawing
from kinegrad.predictions.human import mirrored

__all__ = ["foot_forces", "scene_of", "shown_motion"]

Array = NDArray[np.float64]
FRAMES = 121
METRES_PER_NEWTON = 1 / 1200
HEAD = 0.10  # m


def shown_motion(solution: MotionSolution, drawing: Drawing, frames: int = FRAMES) -> tuple[Array, Array]:
    """Times, (m,), and coordinates, (m, n), to show; of half a stride, with its mirror image after it."""
    T = solution.duration
    t = np.linspace(0.0, T, frames)
    q = solution.motion(t).q
    if not drawing.mirror:
        return t, q
    return np.concatenate([t, T + t[1:]]), np.concatenate([q, _mirror_image(solution.problem.model, q)[1:]])


def _mirror_image(model: Model, q: Array) -> Array:
    """The step with the other leg that follows one: mirrored, and as far ahead as that one went."""
    pairs = mirrored(model)
    names = model.coordinate_names
    column = [names.index(pairs[name][0]) for name in names]
    sign = np.array([pairs[name][1] for name in names])
    other = q[:, column] * sign
    found: Array = other + (q[-1] - other[0])
    return found


def foot_forces(solution: MotionSolution, t: Array) -> dict[str, tuple[Array, Array]]:
    """Of each foot by name: its centre of pressure in the world, (m, 3), and its force, (m, 3), N; zero where off."""
    motion = solution.motion(np.clip(t, 0.0, solution.duration))
    found: dict[str, tuple[Array, Array]] = {}
    if motion.forces is None:
        return found
    feet = [one for one in solution.problem.parts.requirements if isinstance(one, Foot)]
    for foot in feet:
        columns = {name.rpartition(".")[2]: k for k, name in enumerate(motion.row_names) if _belongs(name, foot.link)}
        if not columns:
            continue
        wrench = np.stack([motion.forces[:, columns[x]] if x in columns else 0 * t for x in "xyzXYZ"], axis=-1)
        place = np.asarray(foot.sole if foot.at is None else foot.at)
        force, moment = wrench[:, :3], wrench[:, 3:]
        down = np.where(force[:, 2] > 1.0, force[:, 2], np.inf)
        local = np.stack([-moment[:, 1] / down, moment[:, 0] / down, 0 * t], axis=-1)
        found[foot.link] = (local @ place[:3, :3].T + place[:3, 3], force @ place[:3, :3].T)
    return found


def _belongs(row: str, link: str) -> bool:
    return row.rpartition(".")[0].split()[-1:] == [link]


def scene_of(solution: MotionSolution, drawing: Drawing, frames: int = FRAMES) -> Scene:
    """The scene that a page plays."""
    model = solution.problem.model
    t, q = shown_motion(solution, drawing, frames)
    size = 0.05 if drawing.ground is not None else 0.018
    points, limbs, names = skeleton(model, q, thickness=size)
    balls = [(names[drawing.head], HEAD, MIDDLE)] if drawing.head else []
    arrows = []
    half = t <= solution.duration
    for place, force in foot_forces(solution, t[half]).values():
        if drawing.mirror:
            place, force = _stride(solution, place), np.concatenate([force, force[1:] * [-1, 1, 1]])
        arrows.append(Arrow(place, METRES_PER_NEWTON * force))
    return Scene(
        t, points, limbs, balls=balls, blocks=_boxes(solution, drawing, t, q), arrows=arrows,
        trails=[(names[name], "#b8893b") for name in drawing.trail], azimuth=drawing.azimuth,
        elevation=drawing.elevation, up=drawing.up, ground=drawing.ground, marks=_marks(solution),
    )  # fmt: skip


def _stride(solution: MotionSolution, place: Array) -> Array:
    """Places of a foot's force, and those of the other foot in the step after."""
    q = solution.motion([0.0, solution.duration]).q
    names = solution.problem.model.coordinate_names
    step = q[-1, names.index("pelvis.ty")] - q[0, names.index("pelvis.ty")]
    other = place * [-1, 1, 1] + [0, step, 0]
    return np.concatenate([place, other[1:]])


def _marks(solution: MotionSolution) -> dict[str, float]:
    if len(solution.durations) < 2:
        return {}
    begins = np.concatenate([[0.0], np.cumsum(solution.durations)[:-1]])
    return {phase.name: float(begin) for phase, begin in zip(solution.problem.phases, begins, strict=True)}


def _boxes(solution: MotionSolution, drawing: Drawing, t: Array, q: Array) -> list[Block]:
    """The box in the middle of the hands; where it is taken up on the way, it waits there before."""
    if not drawing.hands:
        return []
    model = solution.problem.model
    poses = forward_kinematics(model, q).transform
    held = []
    for name in drawing.hands:
        i, placement = model.locate(name)
        pose = poses[:, i] if placement is None else poses[:, i] @ placement
        held.append((pose @ np.append(drawing.grip, 1.0))[:, :3])
    middle = np.mean(held, axis=0)
    taken = 0.0
    for phase, T in zip(solution.problem.phases, solution.durations, strict=True):
        if phase.attached:
            break
        taken += T
    first = int(np.searchsorted(t, taken - 1e-9))
    if 0 < first < len(t):
        middle[:first] = middle[first]
    return [Block.at(middle, drawing.box)]
