"""Solutions in files: written whole, read strictly, and a solve that continues where another one ended or died.

A file is an NPZ archive of arrays, with a text of everything that is no array.  It appears at once or not at all, so
that after a crash it holds the last iterate that was written before it.

Whether a file belongs to a program is decided by the identity of the program, which the file holds (``identity.py``),
and by the program itself: f and g at the saved x have to be what was saved.
"""

from __future__ import annotations

import io
import json
import os
import time
import warnings
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said, shown
from kinegrad.io.whole_file import checked_path, regular_file, replacing
from kinegrad.motion.nlp.evaluation import Evaluator
from kinegrad.motion.nlp.identity import difference, program_identity
from kinegrad.motion.nlp.program import NonlinearProgram
from kinegrad.motion.nlp.solution import STATUSES, Evaluations, Iterate, NonlinearSolution

__all__ = ["Checkpoint", "load_solution", "save_solution"]

Array = NDArray[np.float64]
FORMAT = "kinegrad nonlinear solution 2"
ARRAYS = ("x", "g", "x_multipliers", "g_multipliers")
NUMBERS = ("f", "optimality", "violation", "complementarity", "curvature", "seconds")
TEXTS = ("status", "message", "solver", "hessian", "gradient", "solver_status")
EVERY = 1.0  # s between two checkpoints
SAME = 1e-9  # relative, by which f and g may differ if a file belongs to a program: another machine rounds otherwise
SAME_START = 1e-4  # of x_scale, by which a guess may differ from the one that a file began with


def save_solution(solution: NonlinearSolution, path: str | os.PathLike[str]) -> None:
    """Write a solution to a file, whole or not at all.

    Parameters
    ----------
    solution : NonlinearSolution
    path : str or pathlib.Path
        Of an NPZ file; one that is there is replaced.

    Examples
    --------
    ``save_solution(solve(program, x0), "lift.npz")``, and later, perhaps for another load,
    ``solve(program, warm_start=load_solution("lift.npz"))``.
    """
    if not isinstance(solution, NonlinearSolution):
        raise InputError(f"`solution` is a {type(solution).__name__}; expected a NonlinearSolution")
    _write(checked_path(path), _packed(solution))


def _write(target: Path, packed: bytes) -> None:
    try:
        with replacing(target) as file:
            file.write(packed)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None


def load_solution(path: str | os.PathLike[str]) -> NonlinearSolution:
    """The solution that a file holds; an InputError that names the file and what is wrong with it.

    Parameters
    ----------
    path : str or pathlib.Path
    """
    return _loaded(checked_path(path))[0]


def _loaded(source: Path) -> tuple[NonlinearSolution, dict[str, Any] | None, Array | None]:
    """The solution of a file; identity and first guess of the solve that it follows, None if it follows none."""
    try:
        regular_file(source)
        with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{source}: its arrays take more memory than there is") from None
    except InputError:
        raise
    except Exception as error:  # whatever a broken archive makes zipfile, zlib or NumPy raise
        reason = "" if "pickle" in str(error) else f": {said(error)}"  # of objects, which no file of ours holds
        raise InputError(f"{source}: is not a readable NPZ archive of kinegrad{reason}") from None
    return _unpacked(source, arrays)


def _packed(solution: NonlinearSolution, identity: Any = None, start: Array | None = None) -> bytes:
    text: dict[str, Any] = {name: getattr(solution, name) for name in (*TEXTS, "iterations")}
    text["format"], text["problem"] = FORMAT, identity
    counts = solution.evaluations
    text["evaluations"] = {field.name: getattr(counts, field.name) for field in fields(counts)}
    history = [[x.iteration, x.objective, x.violation, x.optimality, x.seconds] for x in solution.history]
    arrays: dict[str, Any] = {name: getattr(solution, name) for name in ARRAYS}
    arrays["numbers"] = np.array([getattr(solution, name) for name in NUMBERS], dtype=float)
    arrays["history"] = np.array(history, dtype=float).reshape(-1, 5)
    arrays["text"] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    if solution.iterates is not None:
        arrays["iterates"] = solution.iterates
    if start is not None:
        arrays["start"] = start
    memory = io.BytesIO()
    np.savez(memory, **arrays)
    return memory.getvalue()


def _unpacked(path: Path, arrays: dict[str, Any]) -> tuple[NonlinearSolution, dict[str, Any] | None, Array | None]:
    """The solution, and what a checkpoint has beside it, if everything is there and fits together."""
    needed = {*ARRAYS, "numbers", "history", "text"}
    if not needed <= arrays.keys() <= {*needed, "iterates", "start"}:
        raise InputError(f"{path}: has arrays {', '.join(sorted(arrays))}; expected {', '.join(sorted(needed))}")
    try:
        text = json.loads(arrays.pop("text").astype(np.uint8).tobytes().decode())
        wrong = not isinstance(text, dict) or text.get("format") != FORMAT
    except (ValueError, RecursionError):
        wrong = True
    if wrong:
        raise InputError(f"{path}: is not of the format {FORMAT!r}")
    for name, array in arrays.items():
        if array.dtype != np.float64 or array.ndim != (2 if name in ("history", "iterates") else 1):
            found = f"{array.dtype} of shape {array.shape}"
            raise InputError(f"{path}: array {name!r} is {found}; expected float64 in rows")
    n, m, history = len(arrays["x"]), len(arrays["g"]), arrays["history"]
    shapes = {
        "x_multipliers": (n,), "g_multipliers": (m,), "numbers": (len(NUMBERS),),
        "history": (len(history), 5), "iterates": (len(history), n), "start": (n,),
    }  # fmt: skip
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise InputError(f"{path}: array {name!r} has shape {arrays[name].shape}; expected {shape}")
    for name in (*ARRAYS, "iterates", "start"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            raise InputError(f"{path}: array {name!r} has numbers that are not finite")
    for name in TEXTS:
        if not isinstance(text.get(name), str):
            raise InputError(f"{path}: {name!r} is {shown(text.get(name))}; expected a text")
    if text["status"] not in STATUSES:
        raise InputError(f"{path}: the status is {shown(text['status'])}; expected one of {', '.join(STATUSES)}")
    counts, names = text.get("evaluations"), [field.name for field in fields(Evaluations)]
    whole = isinstance(counts, dict) and sorted(counts) == sorted(names)
    if not whole or not all(type(x) is int and x >= 0 for x in (*counts.values(), text.get("iterations"))):
        raise InputError(f"{path}: 'evaluations' or 'iterations' are not whole numbers")
    numbers: dict[str, Any] = dict(zip(NUMBERS, map(float, arrays["numbers"]), strict=True))
    given: dict[str, Any] = {name: arrays[name] for name in ARRAYS} | {name: text[name] for name in TEXTS}
    past = tuple(Iterate(int(row[0]), *map(float, row[1:])) for row in history)
    identity = text.get("problem")
    if identity is not None and not isinstance(identity, dict):
        raise InputError(f"{path}: 'problem' is {shown(identity)}; expected what the program is, by name")
    solution = NonlinearSolution(
        **given, **numbers, iterations=text["iterations"], evaluations=Evaluations(**counts), history=past,
        iterates=arrays.get("iterates"),
    )  # fmt: skip
    return solution, identity, arrays.get("start")


class Checkpoint:
    """A file that follows a solve: read at its start if it is there, written about once in a second, and at its end.

    A file that is there is replaced only if it is of the same program.

    Parameters
    ----------
    path : path
    program : NonlinearProgram
    x0 : ndarray, shape (n,), or None
        The guess, which has to be the one that the file began with.
    """

    def __init__(self, path: Any, program: NonlinearProgram, x0: Array | None) -> None:
        self.path = checked_path(path, "checkpoint")
        self.found: NonlinearSolution | None = None
        self.start = x0
        self._written = time.perf_counter()
        if self.path.parent != Path() and not self.path.parent.is_dir():
            raise InputError(f"`checkpoint` is {self.path}, and there is no folder {self.path.parent}")
        there = self.path.exists()
        if there:
            self.found, identity, self.start = _loaded(self.path)
            self._check_program(program, self.found)
        self.identity = program_identity(program)
        if there:
            if identity is None:
                found = f"`checkpoint` {self.path} is a solution that save_solution wrote, which names no program"
                raise InputError(f"{found}; expected a new file, and `warm_start` for the solution")
            if text := difference(identity, self.identity):
                raise InputError(f"`checkpoint` {self.path} is of another program: {text}, or a new file")
            self._check_start(program, x0)

    def _check_start(self, program: NonlinearProgram, x0: Array | None) -> None:
        """Refuse the solve from another guess, whose optimum may be another one."""
        if x0 is None or self.start is None:
            return
        off = np.abs(x0 - self.start) / program.x_scale
        if (off > SAME_START).any():
            k = int(np.argmax(off))
            found = f"variable {k} of `x0` is {x0[k]:.6g} and was {self.start[k]:.6g}"
            what = f"`checkpoint` {self.path} is of a solve from another guess: {found}"
            raise InputError(f"{what}; expected that guess, none, or a new file")

    @np.errstate(all="ignore")  # what overflows is not finite, and so not as it was saved
    def _check_program(self, program: NonlinearProgram, found: NonlinearSolution) -> None:
        """Refuse a file of another program."""
        sizes, expected = (len(found.x), len(found.g)), (program.n, program.m)
        if sizes != expected:
            text = f"{sizes[0]} variables and {sizes[1]} rows; the program has {expected[0]} and {expected[1]}"
            raise InputError(f"`checkpoint` {self.path} has {text}: it is of another program")
        exact = Evaluator(program)
        try:
            x = found.x / exact.x_scale
            f, g = exact.objective(x), exact.constraints(x)
        except Exception:  # whatever it is, it did not happen when the file was written
            f, g = np.nan, np.full(program.m, np.nan)
        if exact.error is not None:
            raise exact.error
        there = np.array([found.f / exact.f_scale, *(found.g / exact.g_scale)])
        here = np.array([f, *g])
        if not (np.abs(here - there) <= SAME * np.maximum(1.0, np.abs(there))).all():
            text = "whose objective or constraints have other values at the saved point"
            raise InputError(f"`checkpoint` {self.path} is of another program, {text}; expected its own, or a new file")

    def follow(self, scaled: Evaluator, solver: str, hessian: str, gradient: str) -> None:
        """Write the last iterate, if the last time was long enough ago."""
        if time.perf_counter() - self._written < EVERY or scaled.last is None:
            return
        self._written = time.perf_counter()
        x, rows, bounds = scaled.last
        at = scaled.history[-1]
        state = NonlinearSolution(
            x * scaled.x_scale, at.objective, scaled.constraints(x) * scaled.g_scale,
            bounds * scaled.f_scale / scaled.x_scale, rows * scaled.f_scale / scaled.g_scale,
            at.optimality, at.violation, np.nan, np.nan, "interrupted", "saved during the solve",
            at.iteration, scaled.evaluations, tuple(scaled.history), scaled.seconds(), solver, hessian, gradient,
            "running", None if scaled.iterates is None else np.array(scaled.iterates),
        )  # fmt: skip
        with suppress(InputError):  # of a disk that is full, perhaps for a while
            self._save(state)

    def _save(self, solution: NonlinearSolution) -> None:
        _write(self.path, _packed(solution, self.identity, self.start))

    def close(self, solution: NonlinearSolution) -> None:
        """Write how it ended; a solution is not lost for a disk that is full."""
        try:
            self._save(solution)
        except InputError as error:
            warnings.warn(f"the solution is not in its checkpoint: {error}", RuntimeWarning, stacklevel=3)
