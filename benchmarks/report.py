"""What a run found: as a table on the terminal, as JSON, as Markdown."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Comparison, Row, Timing
from kinegrad import get_threads
from kinegrad._kernels.compiler.width import WIDTH

BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"
HEADER = ("what", "against", "kinegrad", "peer", "faster, best", "median", "target", "")


@dataclass(frozen=True)
class Family:
    """What a family found, in how many seconds; `failed` says why it found nothing."""

    name: str
    title: str
    text: str
    rows: list[Row]
    seconds: float
    failed: str = ""


@dataclass(frozen=True)
class Report:
    environment: dict[str, Any]
    families: list[Family] = field(default_factory=list)

    def write_json(self, path: Path) -> None:
        families = {family.name: [_record(row) for row in family.rows] for family in self.families}
        seconds = {family.name: round(family.seconds, 1) for family in self.families}
        failed = {family.name: family.failed for family in self.families if family.failed}
        record = {"environment": self.environment, "seconds": seconds, "failed": failed, "families": families}
        _write(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    def write_markdown(self, path: Path) -> None:
        """Between the markers, where the file has them; otherwise as the whole file."""
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if BEGIN not in old or END not in old:
            old = f"{BEGIN}\n{END}\n"
        before, after = old.split(BEGIN)[0], old.split(END, 1)[1]
        _write(path, f"{before}{BEGIN}\n{self.markdown()}\n{END}{after}")

    def markdown(self) -> str:
        parts = [self.summary()]
        for family in self.families:
            table = family.failed or _table([_cells(row) for row in family.rows])
            parts += [f"### {family.title}", family.text, table]
        return "\n\n".join(parts)

    def summary(self) -> str:
        """Where and when, and which targets were missed by how much."""
        e = self.environment
        versions = ", ".join(f"{name} {number}" for name, number in e["versions"].items())
        where = (
            f"{e['date']}, {e['cpu']}, {e['cores']} cores (load {e['load']:.1f} at the start), "
            f"{e['lanes']} lanes; {versions}.{' A quick run: noisy.' if e['quick'] else ''}"
        )
        rows = [row for family in self.families for row in family.rows]
        aims = [(row.name, row.missed_by) for row in rows if row.missed_by is not None]
        missed = [f"- {name} by {by:.0%}" for name, by in aims if by > 0]
        met = f"{len(aims) - len(missed)} of {len(aims)} targets met"
        met += "; missed are\n\n" + "\n".join(missed) if missed else "."
        failed = [f"{family.name} {family.failed}" for family in self.families if family.failed]
        minutes = sum(family.seconds for family in self.families) / 60
        took = (
            f"{len(self.families)} families in one run of {minutes:.0f} min{'; ' if failed else ''}{'; '.join(failed)}."
        )
        return f"{where} {took}\n\n{met}"


def environment(quick: bool) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "date": datetime.now().strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan,
        "lanes": WIDTH,
        "threads": get_threads(),
        "quick": quick,
        "versions": {
            "Python": platform.python_version(),
            **_versions("numpy", "numba", "pin", "casadi", "mujoco", "opensim"),
        },
    }


def _versions(*names: str) -> dict[str, str]:
    """Of the packages that are installed."""
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def show(family: Family, console: Console) -> None:
    table = Table(title=family.title, title_justify="left")
    for name in HEADER:
        table.add_column(name, overflow="fold")
    for row in family.rows:
        table.add_row(*_cells(row), style="red" if (row.missed_by or 0) > 0 else None)
    console.print(table)


def _table(rows: list[tuple[str, ...]]) -> str:
    """As Markdown, without columns that are empty in all rows; signs and numbers of a target stay together."""
    kept = [k for k, name in enumerate(HEADER) if any(row[k] for row in rows)]
    lines = [HEADER, ("---",) * len(HEADER), *rows]
    glued = ([line[k].replace("≥ ", "≥\u00a0").replace("≤ ", "≤\u00a0") for k in kept] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in glued)


def _cells(row: Row) -> tuple[str, ...]:
    verdict = ""
    if row.missed_by is not None:
        verdict = "met" if row.missed_by <= 0 else f"missed by {row.missed_by:.0%}"
    target = "" if row.target is None else f"{row.target:g}"
    if isinstance(row, Comparison):
        times = _time(row.ours), _time(row.peer), f"{row.ratio:.1f}×", f"{row.ratio_of_medians:.1f}×"
        return row.name, row.against, *times, target and f"≥ {target}×", verdict
    value = f"{row.value:.2f} {row.unit}".strip()
    return row.name, row.note, value, "", "", "", target and f"≤ {target} {row.unit}".strip(), verdict


def _time(t: Timing) -> str:
    """Best (median, quartiles), in a fitting unit."""
    unit, scale = ("s", 1.0) if t.best >= 1 else ("ms", 1e3) if t.best >= 1e-3 else ("µs", 1e6)
    scaled = (scale * x for x in (t.best, t.median, t.lower, t.upper))
    best, median, lower, upper = (f"{x:.0f}" if x >= 100 else f"{x:#.3g}".rstrip(".") for x in scaled)
    return f"{best} {unit} ({median}, {lower}–{upper})"


def _record(row: Row) -> dict[str, Any]:
    record = asdict(row) | {"missed_by": row.missed_by}
    if isinstance(row, Comparison):
        record |= {"ratio": row.ratio, "ratio_of_medians": row.ratio_of_medians}
    return record


def _cpu() -> str:
    """The model of the processor, where the system tells."""
    lines: Iterable[str] = ()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
