"""Published models, as a user's first call reads them.

``python -m tests.robots`` prints the tables of ``docs/files.md``: which URDF files of example-robot-data are refused,
and why, or are read with a warning; and the same of the models of gymnasium, dm_control, pose2sim and osim-rl, if they
were fetched (``python -m tests.published``).
"""

import functools
import importlib.metadata
import re
from collections.abc import Sequence
from pathlib import Path

import kinegrad as kg
from tests.published import published

# files that are refused, and a part of the sentence that says why
REFUSED = {
    "romeo_description/urdf/romeo_laas_small.urdf": "kg·m² about the centre of mass: -0.00272042 is negative",
    "romeo_description/urdf/romeo_small.urdf": "kg·m² about the centre of mass violate the triangle inequality",
    "ur_description/urdf/ur3.urdf": "has no <link>",
}
WORDS = {
    "impossible inertia": "impossible inertias of parts of possible bodies",
    "inertia projected": "impossible inertias within 1 % of a possible one",
    "joint without mass": "joints that move no mass",
    "mimic of an absent joint": "joints that mimic an absent one",
    "limit without a value": "limits that are missing or −1",
}


@functools.cache
def robots() -> Path:
    files = importlib.metadata.files("example-robot-data") or []
    found = next(f for f in files if f.name == "panda.urdf")
    return Path(found.locate()).resolve().parents[2]


@functools.cache
def urdf_files() -> list[str]:
    try:
        return sorted(str(path.relative_to(robots())) for path in robots().rglob("*.urdf"))
    except importlib.metadata.PackageNotFoundError:
        return []


@functools.cache
def others() -> list[Path]:
    """Models of MJCF and OpenSim."""
    files = importlib.metadata.files("gymnasium") or []
    found = [Path(f.locate()) for f in files if f.match("mujoco/assets/*.xml")]
    found += [path for path in published("dm_control", ".xml") if path.parent.name == "suite"]
    return [*found, *published("pose2sim", ".osim"), *published("osim-rl", ".osim")]


@functools.cache
def read(path: str | Path) -> kg.io.ModelFile | kg.FileError:
    """What is in a file, of a robot with a free root, or why it is refused."""
    try:
        return kg.io.read_model(robots() / path, **({"root": "free"} if isinstance(path, str) else {}))
    except kg.FileError as error:
        return error


def _told(path: str | Path) -> str:
    """What is told of a file; "" if nothing is."""
    found = read(path)
    if isinstance(found, kg.FileError):
        return f"refused: {_why(found)}"
    kinds = [repair.what for repair in found.report.repairs]
    counts = {kind: sum(note.what == kind for note in found.report) for kind in kinds}
    return "; ".join(f"{WORDS[kind]}: {count}" for kind, count in counts.items())


def _why(error: kg.FileError) -> str:
    links = [problem.split('"')[1] for problem in error.problems if "inertia" in problem]
    change = [problem.rpartition(" by ")[2] for problem in error.problems if "inertia" in problem]
    if not links:
        said = "; ".join(re.sub(r".*>: |line \d+: ", "", problem).partition(";")[0] for problem in error.problems)
        return said.replace("<", "`<").replace(">", ">`")
    each = ", ".join(f"`{link}` ({by})" for link, by in zip(links, change, strict=True))
    return f"impossible inertia, and how far the nearest possible one is: {each}"


def _short(name: str) -> str:
    """The file without its ending, with the folder where others are called so, too."""
    stem = Path(name).stem
    several = sum(Path(other).stem == stem for other in urdf_files()) > 1
    return f"{Path(name).parts[0].removesuffix('_description')}/{stem}" if several else stem


def table(paths: Sequence[str | Path]) -> str:
    """All files of which something is told, those with the same to tell in one row."""
    found: dict[str, list[str]] = {}
    for path in paths:
        if text := _told(path):
            found.setdefault(text, []).append(f"`{_short(path) if isinstance(path, str) else path.name}`")
    rows = sorted(found.items(), key=lambda row: (row[0].startswith("refused"), row[1]))
    head = ["| files | what is said |", "|---|---|"]
    return "\n".join([*head, *(f"| {', '.join(names)} | {text} |" for text, names in rows)])


if __name__ == "__main__":
    print(table(urdf_files()), table(others()), sep="\n\n")
