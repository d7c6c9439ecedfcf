"""Damaged files of OpenSim and of recordings: what they say, or a KinegradError; never a crash, a hang, another model.

``.osim`` files in both layouts are damaged by bytes and by elements; texts of elements get hostile words.  A model that
is read has the masses and the coordinates that a plain reading of the same XML finds.  Motion, marker and force files
are damaged by bytes, lines and cells; a table that is read has the numbers of a plain reading.
"""

import copy
import random
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import KinegradError
from kinegrad.io import Markers, StorageTable, read_storage, read_trc, write_storage, write_trc
from kinegrad.io.opensim import read
from kinegrad.recordings import plates_of, read_c3d
from tests.fuzz.cases import cases
from tests.fuzz.test_files import damage
from tests.fuzz.test_model_files import WORDS
from tests.io.opensim.files import EVERYTHING, J, linear, new_layout, old_layout, spline
from tests.kernels.child import child, ended

MARKER = '<Marker name="m"><socket_parent_frame>/bodyset/shank</socket_parent_frame><location>0 0 0</location></Marker>'
COUPLER = (
    '<ConstraintSet><objects><CoordinateCouplerConstraint name="c"><coupled_coordinates_function>'
    f"{linear(0.5)}</coupled_coordinates_function><independent_coordinate_names>hip</independent_coordinate_names>"
    "<dependent_coordinate_name>u0</dependent_coordinate_name></CoordinateCouplerConstraint></objects></ConstraintSet>"
)
TURNS = {
    "rotation1": ("c", "0 0 1", spline("0 1 2", "0 1 3", "PiecewiseLinearFunction")),
    "rotation2": ("", "0 1 0", linear(0, 1)),
}
PIECES = J("CustomJoint", "z", "ground", ("c",), TURNS)


def damage_texts(rng: random.Random, content: bytes) -> bytes:
    """One to three changes of a tree of XML that keeps its numbers in texts."""
    root = ElementTree.fromstring(content)
    for _ in range(rng.randint(1, 3)):
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        one, other = rng.choice(elements), rng.choice(elements)
        kind = rng.randrange(8)
        if kind <= 2:
            one.text = rng.choice((*WORDS, "true", "ground", "/bodyset/shank", "knee", "1 1", "0 0 0 0 0 0"))
        elif kind == 3 and one.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice(WORDS))
        elif kind == 4 and one in parents:
            parents[one].remove(one)
        elif kind == 5 and one in parents:
            parents[one].append(copy.deepcopy(one))
        elif kind == 6:
            one.text, other.text = other.text, one.text
        elif one in parents and other not in set(one.iter()):
            parents[one].remove(one)
            other.append(one)
    return ElementTree.tostring(root)


def check_model(content: bytes, model: kg.Model) -> None:
    """Masses of bodies that move, and names of coordinates, as a plain reading finds them."""
    root = ElementTree.fromstring(content)
    bodies = root.findall("Model/BodySet/objects/Body")
    masses = {body.get("name", "").strip(): float(body.findtext("mass") or "nan") for body in bodies}
    held = set(model.link_names) | set(model.frames)
    total = sum(m for name, m in masses.items() if name in held)
    assert model.total_mass == pytest.approx(total, rel=1e-9)
    names = {c.get("name", "").strip() for c in root.iter("Coordinate")}
    assert set(model.coordinate_names) <= names | {name for name in model.coordinate_names if "_coord_" in name}
    q = kg.random_configuration(model, 0) * 0.1
    assert np.isfinite(kg.mass_matrix(model, q)).all()


@pytest.mark.parametrize("seed", range(2))
def test_models(tmp_path: Path, seed: int) -> None:
    rng, path, right = random.Random(seed), tmp_path / "m.osim", 0
    files = [layout([*EVERYTHING, PIECES], COUPLER, markers=MARKER).encode() for layout in (new_layout, old_layout)]
    for case in range(cases(60)):
        content = rng.choice(files)
        content = damage_texts(rng, content) if case % 3 else damage(np.random.default_rng(case), content)
        path.write_bytes(content)
        try:
            found = read(path, massless=rng.random() < 0.5, inertia=rng.choice(["refuse", "project"]))
        except KinegradError:
            continue
        right += 1
        check_model(content, found.model)
    assert right  # or nothing was tested


def damage_cells(rng: random.Random, content: bytes) -> bytes:
    lines = content.decode().split("\n")
    for _ in range(rng.randint(1, 3)):
        k = rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0:
            lines.insert(k, rng.choice(lines))
        elif kind == 1:
            del lines[k : k + 1]
        else:
            cells = lines[k].split("\t")
            cells[rng.randrange(len(cells))] = rng.choice(WORDS)
            lines[k] = "\t".join(cells)
        lines = lines or [""]
    return "\n".join(lines).encode()


def plainly(content: bytes) -> list[list[float]]:
    """Lines of numbers after the last line of words."""
    found: list[list[float]] = []
    for line in content.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        cells = line.rstrip("\t ").split("\t")
        try:
            numbers = [float(cell) if cell.strip() else np.nan for cell in cells]
        except ValueError:
            found = []
            continue
        if line.strip():
            found.append(numbers)
    return found


@pytest.mark.filterwarnings("ignore::kinegrad.KinegradWarning")
@pytest.mark.parametrize("kind", ["mot", "trc"])
def test_recordings(tmp_path: Path, kind: str) -> None:
    rng, numbers = random.Random(7), np.random.default_rng(0)
    path, t = tmp_path / f"m.{kind}", np.arange(6) / 10
    if kind == "mot":
        names = tuple(f"ground_force_{a}{b}" for a in "vp" for b in "xyz")
        write_storage(path, StorageTable(t, names, numbers.normal(size=(6, 6)), in_degrees=True))
    else:
        x = numbers.normal(size=(6, 3, 3))
        x[2, 1] = np.nan
        write_trc(path, Markers(t, ("a", "b", "c"), x))
    good, right = path.read_bytes(), 0
    for case in range(cases(300)):
        content = damage_cells(rng, good) if case % 2 else damage(np.random.default_rng(case), good)
        path.write_bytes(content)
        try:
            if kind == "mot":
                found = read_storage(path, missing=rng.random() < 0.5)
                values = np.column_stack([found.t, found.values])
                plates_of(found)
            else:
                markers = read_trc(path)
                values = np.column_stack([markers.t, markers.position.reshape(len(markers.t), -1)])
        except KinegradError:
            continue
        right += 1
        rows = [row if kind == "mot" else row[1:] for row in plainly(content)]
        width = values.shape[1]
        expected = np.array([(row + [np.nan] * width)[:width] for row in rows if row])
        if (kind == "trc" and b"\tmm\t" not in content) or kind == "mot":
            assert np.array_equal(values, expected, equal_nan=True)
    assert right


# --- C3D, in a child: ezc3d is a library in C++, and crashes or takes minutes over damaged files that it is given ---


def damage_bytes(rng: random.Random, content: bytes) -> bytes:
    """One to four changes, half of them among the parameters."""
    found = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        k = rng.randrange(len(found) if rng.random() < 0.5 else min(len(found), 1500))
        kind = rng.randrange(4)
        if kind <= 1:
            found[k] = rng.randrange(256)
        elif kind == 2:
            del found[k : k + rng.randint(1, 40)]
        else:
            found[k:k] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 20)))
    return bytes(found)


def run_c3d(count: int, folder: Path) -> None:
    """Read damaged files; print each case before it is tried."""
    from tests.recordings.test_c3d_plates import SENSORS, Plate, write

    path, files, good = folder / "a.c3d", [], 0
    for plates in ([Plate(1)], [Plate(2), Plate(4, seed=1)], [SENSORS]):
        write(path, plates)
        files.append(path.read_bytes())
    for case in range(count):
        rng = random.Random(f"c3d {case}")
        path.write_bytes(damage_bytes(rng, rng.choice(files)))
        print(case, flush=True)
        try:
            markers, _ = read_c3d(path, up="z")
        except KinegradError:
            continue
        good += 1
        assert len(markers.names) == markers.position.shape[1], case
    print(f"{good} of {count} could be read")


SCRIPT = """
import resource, sys
from pathlib import Path
from tests.fuzz.test_recordings import run_c3d
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
run_c3d(int(sys.argv[2]), Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_damaged_c3d(tmp_path: Path) -> None:
    pytest.importorskip("ezc3d")
    count = cases(300)
    code, out, err = ended(child(SCRIPT, tmp_path, count))
    *tried, last = out.splitlines() or ["none"]
    assert code == 0, f"exit code {code} at case {last}\n{err}"
    assert len(tried) == count
    assert 0 < int(last.split()[0]) < count
