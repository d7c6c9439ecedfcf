"""What a motion problem is as a nonlinear program, in words and numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.terms import Term
from kinegrad.motion.problem.transcription import Transcription


def described(parts: Transcription, program: MotionProgram) -> str:
    """Several lines."""
    model, u, variables = parts.model, parts.actuators, parts.variables
    lines = [f"motion problem of {model.name!r}, {model.nv} coordinates, {len(u.names)} actuators"]
    if len(u.row_names):
        lines.append(f"  without motors: {'; '.join(u.row_names)}")
    for phase, part in zip(parts.phases, parts.parts, strict=True):
        least, most = phase.duration  # type: ignore[misc]
        time = f"{least:g} s" if least == most else f"{least:g} to {most:g} s"
        count = len(phase.basis.breakpoints) - 1
        text = f"{time}, {count} segments of degree {phase.degree}, {len(part.nodes)} nodes"
        if phase.attached:
            text += "; carries " + ", ".join(f"{mass:g} kg on {link}" for link, (mass, _) in phase.attached.items())
        if part.forced is not None:
            text += f"; {len(part.forced_rows)} unknown forces"
        lines.append(f"  phase {phase.name!r}: {text}")
    forces = sum(x.size for x in variables.forces)
    kinds = {
        "control point": int(sum((p.points >= 0).any() for p in variables.phases) and _points(parts)),
        "force": forces,
        "duration": int((variables.durations >= 0).sum()),
        "parameter": int((variables.parameters >= 0).sum()),
    }
    each = ", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in kinds.items() if n)
    lines.append(f"  {program.n} unknowns: {each}")
    families: Counter[str] = Counter()
    if parts.spline_rows:
        families["of splines"] = len(parts.spline_rows)
    for grid, k, block in program.blocks():
        families[block.label] += grid.row_numbers(k).size
    equal = int((program.g_lower == program.g_upper).sum())
    rows = ", ".join(f"{n} {name}" for name, n in families.items())
    lines.append(f"  {program.m} rows: {rows}" + (f"; {equal} of them equations" if equal else ""))
    n = program.n
    lines.append(f"  non-zeros: Jacobian {len(program.jacobian_pattern[0])} of {n * program.m}, "
                 f"Hessian {len(program.hessian_pattern[0])} of {n * (n + 1) // 2}")  # fmt: skip
    lines.append("  objective: " + " + ".join(_term(term) for term in parts.terms))
    lines += [f"  note: {note}" for note in parts.notes]
    return "\n".join(lines)


def _points(parts: Transcription) -> int:
    return len(np.setdiff1d(np.concatenate([p.points.ravel() for p in parts.variables.phases]), [-1]))


def _term(term: Term) -> str:
    where = "" if term.phase is None else f" of {term.phase!r}"
    name = getattr(term, "name", type(term).__name__.lower())
    relative = " relative to limits" if getattr(term, "relative", False) else ""
    return f"{term.weight:g} {name}{relative}{where}"
