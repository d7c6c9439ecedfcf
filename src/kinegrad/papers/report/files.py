"""Numbers of a reproduction as files: JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

__all__ = ["plain", "write_json", "write_rows"]


def plain(report: Any) -> dict[str, Any]:
    """The fields of a report, a dataclass, for JSON; of its files the names alone, which hold in any folder."""
    return {name: _named(value) for name, value in asdict(report).items()}


def _named(value: Any) -> Any:
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple) and value and all(isinstance(each, Path) for each in value):
        return [each.name for each in value]
    return value


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write numbers and words as JSON; what JSON has no name for, infinity say, is an error."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(values, file, indent=1, ensure_ascii=False, allow_nan=False)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, all with the same columns, as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
