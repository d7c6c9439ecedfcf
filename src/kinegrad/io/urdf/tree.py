"""Whether links and joints of a URDF file are one tree, and which joints follow which."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from kinegrad.errors import LONGEST, shown
from kinegrad.io.model_file import Note
from kinegrad.io.strict_xml import XmlFile
from kinegrad.io.urdf.reading import JointRecord, Robot

__all__ = ["Tree", "check_tree", "leaders"]

SEARCHED = 200  # names that are looked through for a similar one
SHOWN = 6  # links of a cycle, or roots, in a message


class Tree:
    """The root link, and the joints below each link in the order of the file."""

    def __init__(self, root: str, below: dict[str, list[JointRecord]]) -> None:
        self.root, self.below = root, below


def check_tree(file: XmlFile, robot: Robot) -> Tree | None:
    """The tree; None if there is none, which is a problem of the file then."""
    above: dict[str, JointRecord] = {}
    below: dict[str, list[JointRecord]] = {name: [] for name in robot.links}
    whole = True
    for joint in robot.joints.values():
        ends = [_known_link(file, robot, joint, what) for what in ("parent", "child")]
        if not all(ends):
            whole = False
            continue
        if joint.parent == joint.child:
            file.problem(joint.element, f"connects link {shown(joint.child)} with itself; expected two links")
            whole = False
        elif joint.child in above:
            other = above[joint.child]
            found = f"link {shown(joint.child)} has two parents: joint {shown(other.name)} in line {other.element.line}"
            file.problem(joint.element, f"{found} moves it already; a URDF is a tree, so remove one of the two")
            whole = False
        else:
            above[joint.child] = joint
            below[joint.parent].append(joint)
    if not whole or not robot.links:
        return None
    roots = [name for name in robot.links if name not in above]
    if len(roots) > 1:
        lines = _listed(f"{shown(name)} in line {robot.links[name].element.line}" for name in roots)
        file.problem(file.root, f"has {len(roots)} links without a parent, {lines}; expected one: connect the others")
    if not _no_cycle(file, robot, above) or len(roots) != 1:
        return None
    return Tree(roots[0], below)


def leaders(file: XmlFile, robot: Robot) -> dict[str, tuple[str, float, float]]:
    """For each joint that follows another: the one that leads in the end, multiplier and offset.

    q = m (m′ q″ + o′) + o of a joint that follows one that follows another itself.
    """
    found: dict[str, tuple[str, float, float] | None] = {}  # None of those that follow nothing that leads
    _release(robot)
    for joint in robot.joints.values():
        path: list[JointRecord] = []
        on_path: set[str] = set()
        now = joint
        end: tuple[str, float, float] | None = None
        while True:
            if now.name in found:
                end = found[now.name]
                break
            if now.mimic is None:
                end = now.name, 1.0, 0.0
                break
            if now.name in on_path:
                ring = [x.name for x in path[[x.name for x in path].index(now.name) :]]
                ways = _listed(map(shown, ring))
                file.problem(now.mimic.element, f"follows itself, by way of {ways}; expected one joint that leads")
                break
            path.append(now)
            on_path.add(now.name)
            if problem := _leads(file, robot, now.mimic.joint):
                file.problem(now.mimic.element, problem)
                break
            now = robot.joints[now.mimic.joint]
        for follower in reversed(path):
            if end is not None and follower.mimic is not None:
                leader, multiplier, offset = end
                own = follower.mimic
                end = leader, own.multiplier * multiplier, own.multiplier * offset + own.offset
            found[follower.name] = end
    return {name: x for name, x in found.items() if x is not None}


def _release(robot: Robot) -> None:
    """Let joints that mimic an absent joint move by themselves, unless the file is read strictly."""
    for joint in robot.joints.values():
        mimic = joint.mimic
        if mimic is None or mimic.joint in robot.joints or robot.strict:
            continue
        joint.mimic = None
        robot.alone.append(joint.name)
        text = f"joint {shown(joint.name)} mimics joint {shown(mimic.joint)}, which does not exist"
        hint = _suggestion(mimic.joint, robot.joints)
        note = f"{text} ({hint}); it moves by itself"
        robot.notes.append(Note("mimic of an absent joint", note, mimic.element.line))


def _leads(file: XmlFile, robot: Robot, of: str) -> str:
    """What is wrong with following that joint; nothing if it can lead."""
    if of not in robot.joints:
        hint = "" if file.full else _suggestion(of, robot.joints)
        return f'joint="{of[:LONGEST]}" does not exist; {hint}'
    if robot.joints[of].kind in ("fixed", "planar", "floating"):
        return f'joint="{of[:LONGEST]}" is {robot.joints[of].kind}; expected one that has one coordinate'
    return ""


def _known_link(file: XmlFile, robot: Robot, joint: JointRecord, what: str) -> bool:
    name = getattr(joint, what)
    if name and name not in robot.links and not file.full:
        element = joint.element.find(what)
        hint = _suggestion(name, robot.links)
        file.problem(element or joint.element, f'link="{name[:LONGEST]}" does not exist; {hint}')
    return name in robot.links


def _no_cycle(file: XmlFile, robot: Robot, above: dict[str, JointRecord]) -> bool:
    """Whether every link hangs on one without a parent; each cycle is a problem."""
    good: set[str] = set()
    fine = True
    for start in robot.links:
        path, on_path, link = list[str](), set[str](), start
        while link in above and link not in good and link not in on_path:
            path.append(link)
            on_path.add(link)
            link = above[link].parent
        if link in on_path:  # walked back to where it came by
            ring = path[path.index(link) :]
            joints = _listed(shown(above[x].name) for x in reversed(ring))
            expected = "expected a tree: cut it at one joint, and close it by a constraint of the model"
            file.problem(above[link].element, f"links form a cycle, by joints {joints}; {expected}")
            fine = False
        good |= on_path
    return fine


def _suggestion(name: str, names: Iterable[str]) -> str:
    known = [x[:LONGEST] for x in islice(names, SEARCHED)]
    close = difflib.get_close_matches(name[:LONGEST], known, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(map(shown, close))}?" if close else f"expected one of {_listed(known)}"


def _listed(texts: Iterable[str]) -> str:
    each = list(texts)
    return ", ".join([*each[:SHOWN], *(["…"] if len(each) > SHOWN else [])]) or "none"
