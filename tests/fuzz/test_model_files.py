"""Damaged files of models: whatever is in a file, reading it gives the model that it says, or a KinegradError.

Real robots and models of our own are damaged by bytes and by elements: attributes get hostile words, are dropped,
renamed and exchanged; elements are dropped, doubled, moved.  What can be read is compared with a reading that is as
plain as possible: degrees of freedom, names, masses.  Trees of XML that no one has written are made by Hypothesis.
"""

import copy
import functools
import importlib.metadata
import math
import random
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad.io import ModelFile, read_model
from tests.fuzz.cases import cases
from tests.fuzz.hostile import VALUES
from tests.fuzz.test_files import damage
from tests.io.mjcf.test_reading import ALL, EQUAL
from tests.io.urdf.test_refusals import ARM
from tests.kernels.child import child, ended
from tests.mixed import mixed_tree

WORDS = (
    "", " ", "0", "1", "-1", "1,5", "0x10", "nan", "inf", "-inf", "1e999", "1e-400", "1_0", "1 2 3", "0 0 0", "1 0",
    "x", "true", "revolute", "fixed", "floating", "planar", "base", "world", "a" * 3000, "١", "−1", "9" * 400, "1e99",
    "1e200", "\u2028", "package://", "file:///etc/passwd", "../../..", "&amp;", "${m}", "1e5", ".", "-0",
)  # fmt: skip
PICKED = ("panda.urdf", "a1.urdf", "double_pendulum.urdf", "romeo.urdf", "ur5_robot.urdf", "simple_humanoid.urdf")


@functools.cache
def robots() -> list[bytes]:
    files = importlib.metadata.files("example-robot-data") or []
    return [Path(file.locate()).read_bytes() for file in files if file.name in PICKED]


@functools.cache
def own_models(folder: Path) -> list[bytes]:
    found = []
    for k, model in enumerate([kg.samples.two_link(), kg.samples.human_sagittal(), *map(mixed_tree, range(3))]):
        path = folder / f"{k}.toml"
        loads = kg.Loads(force={model.link_names[-1]: [0, 0, -1.0]})
        kg.save(model, path, loads=loads, design=[f"{model.link_names[-1]}.mass"])
        found.append(path.read_bytes())
    return found


def damage_elements(rng: random.Random, content: bytes) -> bytes:
    """One to four changes of a tree of XML, which stays well-formed."""
    root = ElementTree.fromstring(content)
    for _ in range(rng.randint(1, 4)):
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        one, other = rng.choice(elements), rng.choice(elements)
        kind = rng.randrange(9)
        if kind <= 3 and one.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice(WORDS))
        elif kind == 4 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif kind == 5 and one.attrib and other.attrib:
            a, b = rng.choice(list(one.attrib)), rng.choice(list(other.attrib))
            one.attrib[a], other.attrib[b] = other.attrib[b], one.attrib[a]
        elif kind == 6 and one in parents:
            parents[one].remove(one)
        elif kind == 7 and one in parents:
            parents[one].append(copy.deepcopy(one))
        elif one in parents and other not in set(one.iter()):
            parents[one].remove(one)
            other.append(one)
    return ElementTree.tostring(root)


def damage_lines(rng: random.Random, content: bytes) -> bytes:
    """One to four changes of lines, and of values in them."""
    lines = content.decode().split("\n")
    for _ in range(rng.randint(1, 4)):
        k = rng.randrange(len(lines))
        key, equals, value = lines[k].partition(" = ")
        kind = rng.randrange(5)
        if kind == 0:
            del lines[k]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[k])
        elif kind == 2 and equals:
            word = rng.choice(WORDS)
            lines[k] = f"{key} = {word if rng.random() < 0.5 else repr(word)}"
        elif kind == 3 and equals:
            lines[k] = f"{key} = {rng.choice(lines).partition(' = ')[2]}"
        elif equals:
            lines[k] = f"{rng.choice(lines).partition(' = ')[0]} = {value}"
        lines = lines or [""]
    return "\n".join(lines).encode()


def attempt(path: Path, content: bytes, **options) -> ModelFile | None:
    """What is in the file; None if it is refused, as it should be: with a sentence, and without a warning."""
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read_model(path, **options)
        except kg.KinegradError as error:
            said = [str(error)[:1000], *getattr(error, "problems", ())]
    assert len(said) <= 1001
    assert all(0 < len(sentence) <= 1000 for sentence in said)
    return None


def check_sound(found: ModelFile) -> None:
    model = found.model
    numbers = (model.placement, model.tip, model.mass, model.com, model.inertia, model.gravity, model.damping)
    assert all(np.isfinite(x).all() for x in numbers)
    assert (model.mass >= 0).all()
    assert kg.neutral(model).shape == (model.nq,)


FREEDOMS = {"revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "floating": 6, "fixed": 0}


def check_urdf(found: ModelFile, content: bytes) -> None:
    """The same joints and masses as the plainest reading has: no part of a file is lost, or read as another."""
    root, model = ElementTree.fromstring(content), found.model
    joints = root.findall("joint")
    assert model.n == sum(FREEDOMS[joint.get("type").strip()] for joint in joints)
    fixed = {joint.find("child").get("link").strip() for joint in joints if joint.get("type").strip() == "fixed"}
    children = {joint.find("child").get("link").strip() for joint in joints}
    moved = children - fixed
    assert moved == set(model.link_names) & moved
    above = {joint.find("child").get("link").strip(): joint for joint in joints}
    total = 0.0
    for link in root.findall("link"):
        name, mass = link.get("name").strip(), link.find("inertial/mass")
        while name in above and above[name].get("type").strip() == "fixed":
            name = above[name].find("parent").get("link").strip()
        if mass is not None and name in above:
            total += float(mass.get("value"))
    assert math.isclose(model.total_mass, total, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_damaged_urdf(tmp_path, seed):
    path, good, count = tmp_path / "a.urdf", 0, cases(40)
    for case in range(count):
        rng = random.Random(f"urdf {seed} {case}")
        sound = rng.choice(robots())
        inner = rng.random() < 0.8
        content = damage_elements(rng, sound) if inner else damage(np.random.default_rng([seed, case]), sound)
        found = attempt(path, content, massless=True)
        strictly = attempt(path, content, massless=True, strict=True)
        assert strictly is None or (found is not None and strictly.model == found.model), (seed, case)
        assert strictly is None or not (strictly.report.repairs or found.report.repairs), (seed, case)
        if found is not None:
            good += 1
            check_sound(found)
            try:
                check_urdf(found, content)
            except Exception as error:
                raise AssertionError(f"case {seed} {case}") from error
    assert 0 < good < count


def test_damaged_toml(tmp_path):
    path, good, count = tmp_path / "a.toml", 0, cases(80)
    for case in range(count):
        rng = random.Random(f"toml {case}")
        sound = rng.choice(own_models(tmp_path))
        inner = rng.random() < 0.8
        content = damage_lines(rng, sound) if inner else damage(np.random.default_rng([9, case]), sound)
        found = attempt(path, content)
        if found is not None:
            good += 1
            check_sound(found)
            kg.save(found, path)
            assert read_model(path).model == found.model, case
    assert 0 < good < count


# --- arguments that are none ------------------------------------------------------------------------------------------


def hostile_calls(folder: Path):
    """Functions of one argument, each of which takes a good value or is refused."""
    arm, good = kg.samples.two_link(), folder / "good.toml"
    urdf, mjcf = folder / "good.urdf", folder / "good.xml"
    kg.save(arm, good)
    urdf.write_text(ARM)
    mjcf.write_text(ALL)
    options = ("root", "quaternion", "packages", "inertia", "massless", "strict", "gravity")
    reads = {f"urdf {what}": lambda x, what=what: read_model(urdf, **{what: x}) for what in options}
    writes = {
        f"save {what}": lambda x, what=what: kg.save(arm, good, **{what: x})
        for what in ("constraints", "loads", "design")
    }
    return reads | writes | {
        "load": read_model, "mjcf quaternion": lambda x: read_model(mjcf, quaternion=x),
        "mjcf inertia": lambda x: read_model(mjcf, inertia=x), "mjcf strict": lambda x: read_model(mjcf, strict=x),
        "save path": lambda x: kg.save(arm, x), "save model": lambda x: kg.save(x, good),
    }  # fmt: skip


def test_hostile_arguments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, call in hostile_calls(tmp_path).items():
        for k, value in enumerate(VALUES):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    call(value)
                except kg.KinegradError as error:
                    assert str(error), (name, k)  # noqa: PT017
                except Exception as error:
                    raise AssertionError(f"{name} of value {k}") from error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.toml", "good.urdf", "good.xml"]


# --- MJCF, in a child: MuJoCo is a large library in C, and if it crashes the case is to be named ---------------------


@functools.cache
def mujoco_models() -> list[bytes]:
    files = importlib.metadata.files("gymnasium") or []
    names = ("humanoid.xml", "ant.xml", "reacher.xml", "walker2d.xml")
    return [Path(file.locate()).read_bytes() for file in files if file.name in names] + [ALL.encode(), EQUAL.encode()]


def run_mjcf(count: int, folder: Path) -> None:
    """Read damaged files; print each case before it is tried."""
    import mujoco

    path, good = folder / "a.xml", 0
    for case in range(count):
        rng = random.Random(f"mjcf {case}")
        sound = rng.choice(mujoco_models())
        inner = rng.random() < 0.8
        content = damage_elements(rng, sound) if inner else damage(np.random.default_rng([10, case]), sound)
        print(case, flush=True)
        found = attempt(path, content)
        if found is not None:
            good += 1
            check_sound(found)
            twin = mujoco.MjModel.from_xml_path(str(path))
            assert (found.model.nq, found.model.nv) == (twin.nq, twin.nv), case
            moved = [b for b in range(1, twin.nbody) if twin.body_weldid[b] != 0]
            assert math.isclose(found.model.total_mass, twin.body_mass[moved].sum(), rel_tol=1e-9), case
    print(f"{good} of {count} could be read")


SCRIPT = """
import os, resource, sys
from pathlib import Path
from tests.fuzz.test_model_files import run_mjcf
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
os.chdir(sys.argv[1])
run_mjcf(int(sys.argv[2]), Path(sys.argv[1]))
"""


def test_damaged_mjcf(tmp_path):
    count = cases(60)
    code, out, err = ended(child(SCRIPT, tmp_path, count))
    *tried, last = out.splitlines() or ["none"]
    assert code == 0, f"exit code {code} at case {last}\n{err}"
    assert len(tried) == count
    assert 0 < int(last.split()[0]) < count


# --- trees that no one has written ------------------------------------------------------------------------------------

TAGS = ["link", "joint", "inertial", "mass", "inertia", "origin", "parent", "child", "axis", "limit", "mimic", "visual",
        "geometry", "box", "sphere", "mesh", "material", "color", "dynamics", "gazebo", "strange"]  # fmt: skip
NAMES = ["name", "type", "link", "xyz", "rpy", "value", "ixx", "ixy", "ixz", "iyy", "iyz", "izz", "lower", "upper",
         "effort", "velocity", "joint", "multiplier", "offset", "size", "radius", "filename", "rgba"]  # fmt: skip
TEXTS = st.sampled_from([*WORDS, "a", "b", "c", "0.5 0.5 0.5", "1 1 1 1"])
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=4)


@st.composite
def trees(draw, depth=0):
    element = ElementTree.Element(draw(st.sampled_from(TAGS)) if depth else "robot", draw(ATTRIBUTES))
    if depth < 4:
        for _ in range(draw(st.integers(0, 4))):
            element.append(draw(trees(depth=depth + 1)))
    return element


@settings(max_examples=cases(40), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(trees())
def test_any_tree_of_xml(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "tree.urdf"
    content = ElementTree.tostring(tree)
    found = attempt(path, content, massless=True)
    if found is not None:
        check_sound(found)
        check_urdf(found, content)


@st.composite
def robot_trees(draw):
    """A robot that is nearly right: links a, b, c, …, joints between any of them."""
    root = ElementTree.Element("robot", name="r")
    count = draw(st.integers(1, 5))
    letters = "abcdefg"[:count]
    number = st.one_of(st.floats(-2, 2).map(repr), st.sampled_from(["1", "0", "0.5", "1,5", "nan"]))
    for letter in letters:
        link = ElementTree.SubElement(root, "link", name=letter)
        body = ElementTree.SubElement(link, "inertial")
        ElementTree.SubElement(body, "mass", value=draw(st.sampled_from(["1", "2.5", "0", "-1"])))
        diagonal = draw(st.sampled_from([("1", "1", "1"), ("1", "1", "3"), ("0", "0", "0"), ("2", "3", "4")]))
        moments = dict(zip(("ixx", "iyy", "izz"), diagonal, strict=True)) | dict.fromkeys(("ixy", "ixz", "iyz"), "0")
        ElementTree.SubElement(body, "inertia", moments)
    for k in range(draw(st.integers(count - 1, count))):
        joint = ElementTree.SubElement(root, "joint", name=f"j{k}", type=draw(st.sampled_from(list(FREEDOMS))))
        ElementTree.SubElement(joint, "parent", link=draw(st.sampled_from(letters)))
        child = letters[k + 1] if k + 1 < count and draw(st.integers(0, 9)) else draw(st.sampled_from(letters))
        ElementTree.SubElement(joint, "child", link=child)
        ElementTree.SubElement(joint, "axis", xyz=" ".join(draw(number) for _ in range(3)))
        ElementTree.SubElement(joint, "limit", lower="-1", upper="1", effort="1", velocity="1")
        if not draw(st.integers(0, 3)):
            ElementTree.SubElement(joint, "mimic", joint=f"j{draw(st.integers(0, count))}", multiplier=draw(number))
    return root


@settings(max_examples=cases(60), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(robot_trees())
def test_robots_that_are_nearly_right(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "robot.urdf"
    content = ElementTree.tostring(tree)
    found = attempt(path, content, massless=True)
    if found is not None:
        check_sound(found)
        check_urdf(found, content)
