"""``python -m benchmarks``: run families, show tables, write JSON and Markdown.

Each family runs in a process of its own: none meets what another has left in memory, libraries that cannot share a
process (OpenSim and CasADi) do not meet, and a family that fails or does not end takes no other with it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from rich.console import Console

from benchmarks import FAMILIES
from benchmarks.report import Family, Report, environment, show
from benchmarks.timing import QUICK, REPEATS

LIMIT = 1200.0  # seconds, after which a family is ended
# threads of BLAS that wait count as processor time: of small matrices, more than the work itself
ALONE = {"KINEGRAD_QUIET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Time kinegrad beside its peers.")
    parser.add_argument("families", nargs="*", metavar="family", help=f"of {', '.join(FAMILIES)}; all if none")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks.json"), metavar="FILE")
    parser.add_argument("--markdown", type=Path, default=Path("out/benchmarks.md"), metavar="FILE")
    parser.add_argument("--rows", type=Path, metavar="FILE", help=argparse.SUPPRESS)  # of one family, for this program
    options = parser.parse_args()
    if unknown := sorted(set(options.families) - set(FAMILIES)):
        parser.error(f"there is no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    if options.rows is not None:
        _rows(options.families[0], options.quick, options.rows)
        return

    console = Console(width=None if sys.stdout.isatty() else 150)
    report = Report(environment(options.quick))
    names, start = options.families or FAMILIES, perf_counter()
    for k, name in enumerate(names, 1):
        console.print(f"[{k}/{len(names)}] {name} …", markup=False)
        family = run_apart(name, options.quick)
        if family.rows:
            show(family, console)
        ended = family.failed or f"{family.seconds:.0f} s"
        console.print(f"{name}: {ended}; {(perf_counter() - start) / 60:.1f} min so far", soft_wrap=True, markup=False)
        report.families.append(family)
        report.write_json(options.json)  # after each: what was measured is kept, whatever comes
    report.write_markdown(options.markdown)
    console.print(report.summary(), soft_wrap=True, markup=False)
    console.print(f"written: {options.json}, {options.markdown}", soft_wrap=True)
    if any(family.failed for family in report.families):
        sys.exit(1)


def run_apart(name: str, quick: bool) -> Family:
    """What a family finds, in a process of its own; whatever that has started ends with it."""
    title, _, text = _docstring(name).partition("\n")
    start, failed = perf_counter(), ""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "rows")
        command = [sys.executable, "-m", "benchmarks", name, "--rows", str(found), *(["--quick"] if quick else [])]
        process = subprocess.Popen(command, env=os.environ | ALONE, start_new_session=True)
        try:
            code = process.wait(LIMIT)
            failed = f"failed, exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            failed = f"ended after {LIMIT:.0f} s"
        finally:
            _end(process)
        rows = [] if failed else pickle.loads(found.read_bytes())
    return Family(name, title, text.strip(), rows, perf_counter() - start, failed)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it has started; on Windows, which has no groups of processes, it alone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the last of macOS, of a group that has ended
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _rows(name: str, quick: bool, path: Path) -> None:
    """The same in this process, the rows into a file."""
    module = importlib.import_module(f"benchmarks.{name}")
    path.write_bytes(pickle.dumps(module.run(QUICK if quick else REPEATS)))


def _docstring(name: str) -> str:
    """A family's heading and text, read without importing what it imports."""
    tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or name


if __name__ == "__main__":
    main()
