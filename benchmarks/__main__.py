"""``python -m benchmarks``: run families, show tables, write JSON and Markdown."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import FAMILIES
from benchmarks.report import Family, Report, environment, show
from benchmarks.timing import QUICK, REPEATS


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Time kinegrad beside its peers.")
    parser.add_argument("families", nargs="*", metavar="family", help=f"of {', '.join(FAMILIES)}; all if none")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks.json"), metavar="FILE")
    parser.add_argument("--markdown", type=Path, default=Path("out/benchmarks.md"), metavar="FILE")
    options = parser.parse_args()
    if unknown := sorted(set(options.families) - set(FAMILIES)):
        parser.error(f"there is no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")

    console = Console(width=None if sys.stdout.isatty() else 150)
    report = Report(environment(options.quick))
    for name in options.families or FAMILIES:
        module = importlib.import_module(f"benchmarks.{name}")
        title, _, text = (module.__doc__ or name).partition("\n")
        family = Family(name, title, text.strip(), module.run(QUICK if options.quick else REPEATS))
        show(family, console)
        report.families.append(family)
    report.write_json(options.json)
    report.write_markdown(options.markdown)
    console.print(report.summary(), soft_wrap=True)
    console.print(f"written: {options.json}, {options.markdown}", soft_wrap=True)


if __name__ == "__main__":
    main()
