"""The URDF files of example-robot-data, as a user's first call reads them.

``python -m tests.robots`` prints the table of ``docs/files.md``: what is refused, and why, and what is read with a
warning.
"""

import functools
import importlib.metadata
from pathlib import Path

import kinegrad as kg

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
def read(name: str) -> kg.io.ModelFile | kg.FileError:
    """What is in a file, with a free root, or why it is refused."""
    try:
        return kg.io.read_model(robots() / name, root="free")
    except kg.FileError as error:
        return error


def _told(name: str) -> str:
    """What is told of a file; "" if nothing is."""
    found = read(name)
    if isinstance(found, kg.FileError):
        return f"refused: {_why(found)}"
    kinds = [repair.what for repair in found.report.repairs]
    counts = {kind: sum(note.what == kind for note in found.report) for kind in kinds}
    return "; ".join(f"{WORDS[kind]}: {count}" for kind, count in counts.items())


def _why(error: kg.FileError) -> str:
    links = [problem.split('"')[1] for problem in error.problems if "inertia" in problem]
    change = [problem.rpartition(" by ")[2] for problem in error.problems if "inertia" in problem]
    if not links:
        said = "; ".join(problem.partition(">: ")[2].partition(";")[0] for problem in error.problems)
        return said.replace("<", "`<").replace(">", ">`")
    each = ", ".join(f"`{link}` ({by})" for link, by in zip(links, change, strict=True))
    return f"impossible inertia, and how far the nearest possible one is: {each}"


def _short(name: str) -> str:
    """The file without its ending, with the folder where others are called so, too."""
    stem = Path(name).stem
    several = sum(Path(other).stem == stem for other in urdf_files()) > 1
    return f"{Path(name).parts[0].removesuffix('_description')}/{stem}" if several else stem


def table() -> str:
    """All files of which something is told, those with the same to tell in one row."""
    found: dict[str, list[str]] = {}
    for name in urdf_files():
        if text := _told(name):
            found.setdefault(text, []).append(f"`{_short(name)}`")
    rows = sorted(found.items(), key=lambda row: (row[0].startswith("refused"), row[1]))
    head = ["| files | what is said |", "|---|---|"]
    return "\n".join([*head, *(f"| {', '.join(names)} | {text} |" for text, names in rows)])


if __name__ == "__main__":
    print(table())
