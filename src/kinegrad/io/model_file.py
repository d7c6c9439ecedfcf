"""What a file of a model holds: the model, its constraints and loads, and a report of what could not be taken over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import KinegradWarning
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["LeftOutWarning", "ModelFile", "Note", "Repair", "Report", "named"]

SHOWN = 4  # names in a sentence


class LeftOutWarning(KinegradWarning):
    """A file has something that the result of reading it does not have, or has otherwise."""


@dataclass(frozen=True)
class Note:
    """Something in a file that its model does not have, or has otherwise.

    Parameters
    ----------
    what : str
        Its kind, in a few words: ``"joint friction"``.
    text : str
        A sentence with names and values.
    line : int
        Where it is, from 1; 0 if that is not known.
    matters : bool
        Whether the described mechanism would move otherwise than the model, and no option asked for that: a muscle
        does, a camera does not.
    """

    what: str
    text: str
    line: int = 0
    matters: bool = True

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True)
class Repair:
    """What a file states and no model can have, and how it was read.

    Parameters
    ----------
    what : str
        Kind of the notes that it sums up.
    text : str
        A sentence with names and values.
    option : str
        The option that accepts it without a warning; "" if there is none.
    """

    what: str
    text: str
    option: str = ""


@dataclass(frozen=True)
class Report:
    """What of a file could not be taken over as it is, in the order of the file; empty if all of it was.

    Parameters
    ----------
    path : str
        Of the file.
    format : str
        "URDF", "MJCF", "OpenSim" or "kinegrad TOML".
    notes : tuple of Note
    repairs : tuple of Repair
        What ``strict=True`` refuses, summed up.

    Examples
    --------
    >>> print(Report("arm.urdf", "URDF", (Note("joint friction", "joint 'elbow' has friction 0.1 N·m", 12),)))
    arm.urdf (URDF), not in the model:
      line 12: joint 'elbow' has friction 0.1 N·m
    """

    path: str
    format: str
    notes: tuple[Note, ...] = ()
    repairs: tuple[Repair, ...] = ()

    def __iter__(self) -> Iterator[Note]:
        return iter(self.notes)

    def __len__(self) -> int:
        return len(self.notes)

    @property
    def counts(self) -> dict[str, int]:
        """How many notes there are of each kind that matters for the motion."""
        found: dict[str, int] = {}
        for note in self.notes:
            if note.matters:
                found[note.what] = found.get(note.what, 0) + 1
        return found

    @property
    def left_out(self) -> list[str]:
        """Kinds of notes that matter for the motion, each with its number, without those that are repairs."""
        repaired = {repair.what for repair in self.repairs}
        return [f"{count} × {what}" for what, count in self.counts.items() if what not in repaired]

    def __str__(self) -> str:
        if not self.notes:
            return f"{self.path} ({self.format}): all of it is in the model"
        return "\n  ".join([f"{self.path} ({self.format}), not in the model:", *map(str, self.notes)])


@dataclass(frozen=True, eq=False)
class ModelFile(Result):
    """What :func:`read_model` finds in a file.

    Attributes
    ----------
    model : Model
    constraints : ConstraintSet
        Of that model; without rows if the file has none.
    report : Report
        What could not be taken over.
    loads : Loads or None
    design : Design or None
    """

    model: Model
    constraints: ConstraintSet
    report: Report
    loads: Loads | None = None
    design: Design | None = None

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        format: str,
        model: Model,
        notes: tuple[Note, ...] = (),
        repairs: tuple[Repair, ...] = (),
    ) -> ModelFile:
        """Return a model without constraints, loads and designs."""
        return cls(model, ConstraintSet(model, ()), Report(os.fspath(path), format, notes, repairs))

    @property
    def left_out(self) -> list[str]:
        """Kinds of parts that affect the motion and are not in the model, constraints and loads among them."""
        parts = self.report.left_out + ([f"{len(self.constraints.names)} × constraint"] if self.constraints.m else [])
        return parts + (["loads"] if self.loads is not None else [])

    @property
    def warning(self) -> str:
        """What :func:`load` warns of; "" if there is nothing."""
        parts, repairs = self.left_out, self.report.repairs
        said = [f"not in the model: {', '.join(parts)}; see kinegrad.io.read_model"] if parts else []
        said += [repair.text for repair in repairs]
        if repairs:
            options = dict.fromkeys(repair.option for repair in repairs)
            accept = " and ".join(options) if all(options) else "kinegrad.io.read_model"
            said.append(f"to accept it silently: {accept}; to refuse it: strict=True")
        return f"{self.report.path}: {'; '.join(said)}" if said else ""


def named(names: Iterable[str]) -> str:
    """Return names in a row: the first few, and how many there are.

    >>> named("abcdef")
    'a, b, c, d, … (6)'
    """
    each = list(names)
    return ", ".join([*each[:SHOWN], *([f"… ({len(each)})"] if len(each) > SHOWN else [])])
