"""A nonlinear program: what every solver here is given, and what of it is checked before any work starts.

    minimise f(x)    subject to    x_lower ≤ x ≤ x_upper,    g_lower ≤ g(x) ≤ g_upper

Derivatives are sparse.  Their patterns are fixed, and each is a pair of integer arrays (rows, columns) ordered by
column and then by row, without repetitions: the order of compressed columns.  Values are given in that order.  The
Hessian is that of the Lagrangian

    L(x) = σ f(x) + Σᵢ λᵢ gᵢ(x),

its lower triangle alone.  Multipliers are positive where an upper limit holds and negative where a lower one does, so
that at an optimum ∇f + Jᵀλ + z = 0, z being those of the bounds of x.

Solvers see scaled numbers, x̂ = x / x_scale, ĝ = g / g_scale, f̂ = f / f_scale, in which a tolerance means the same for
every variable and every row whatever its unit.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp.messages import named

__all__ = ["NonlinearProgram", "Pattern", "check_program", "check_start"]

Array = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]
Pattern = tuple[Indices, Indices]
CALLED = ("objective", "gradient", "constraints", "jacobian", "hessian", "row_name", "variable_name")


@runtime_checkable
class NonlinearProgram(Protocol):
    """What an object has to have to be solved by :func:`solve`.

    Attributes
    ----------
    n, m : int
        Numbers of variables and of rows of constraints.
    x_lower, x_upper : ndarray, shape (n,)
        Bounds of variables, −inf and inf where there are none; equal where a variable is fixed.
    g_lower, g_upper : ndarray, shape (m,)
        Limits of rows; equal for equations.
    x_scale, g_scale : ndarray, shapes (n,) and (m,)
        Sizes of variables and rows, positive.
    f_scale : float
        Size of the objective, positive.
    jacobian_pattern, hessian_pattern : tuple of two int arrays
        Rows and columns of the entries that may differ from zero, by column and then by row; of the Hessian the lower
        triangle, rows ≥ columns.

    Notes
    -----
    All methods get x of shape (n,) in its own units, an array that cannot be written to, and give values in their
    own units.  Where something cannot be evaluated they give NaN, or raise a :class:`~kinegrad.errors.SingularError`
    or :class:`~kinegrad.errors.SolveError`: the solver is told to try a shorter step.  Any other exception ends the
    solve and is raised from it.  An optional method ``gauss_newton(x, sigma, multipliers)`` gives the values of an
    approximate Hessian in the pattern of the exact one, and ``row_name_at(i, x)`` the name of a row where it depends on
    the point, as its time does if durations are unknown.  An optional attribute ``identity``, a mapping from names to
    texts, tells files of results what the program is; without it, its bounds, scales and patterns do.
    """

    n: int
    m: int
    x_lower: Array
    x_upper: Array
    g_lower: Array
    g_upper: Array
    x_scale: Array
    g_scale: Array
    f_scale: float
    jacobian_pattern: Pattern
    hessian_pattern: Pattern

    def objective(self, x: Array) -> float:
        """f(x)."""
        ...

    def gradient(self, x: Array) -> Array:
        """∂f/∂x, (n,)."""
        ...

    def constraints(self, x: Array) -> Array:
        """g(x), (m,)."""
        ...

    def jacobian(self, x: Array) -> Array:
        """∂g/∂x, the values of its pattern."""
        ...

    def hessian(self, x: Array, sigma: float, multipliers: Array) -> Array:
        """∂²L/∂x², the values of its pattern."""
        ...

    def row_name(self, i: int) -> str:
        """What row i is and where in time, as a message says it: "torque of elbow at t = 0.35 s"."""
        ...

    def variable_name(self, j: int) -> str:
        """The same of variable j."""
        ...


def check_program(program: Any) -> None:
    """Refuse what is no program, with a sentence that names the attribute.

    >>> check_program(3)
    Traceback (most recent call last):
    kinegrad.errors.InputError: `program` is an int without `n`; expected a NonlinearProgram
    """
    kind = type(program).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    needed = (*NonlinearProgram.__annotations__, *CALLED)
    for name in needed:
        if not hasattr(program, name):
            raise InputError(f"`program` is {article} {kind} without `{name}`; expected a NonlinearProgram")
        if name in CALLED and not callable(getattr(program, name)):
            raise InputError(f"`program.{name}` is {shown(getattr(program, name))}; expected a method")
    n, m = engine.whole("program.n", program.n), engine.whole("program.m", program.m, least=0)
    for letter, size in (("x", n), ("g", m)):
        lower, upper, scale = (_vector(program, f"{letter}_{each}", size) for each in ("lower", "upper", "scale"))
        name_of = partial(named, program, "variable" if letter == "x" else "row")
        for bad, text in (
            (np.isnan(lower) | np.isnan(upper), "limits that are not numbers"),
            (lower > upper, "a lower limit above its upper one"),
            ((lower == np.inf) | (upper == -np.inf), "limits that no number is within"),
        ):
            if bad.any():
                k = int(np.argmax(bad))
                between = f"{lower[k]:.12g} and {upper[k]:.12g}"
                raise InputError(f"`program` has {text} for {name_of(k)}: {between}; expected lower ≤ upper")
        if not (np.isfinite(scale).all() and (scale > 0).all()):
            k = int(np.argmin(np.isfinite(scale) & (scale > 0)))
            raise InputError(f"`program.{letter}_scale` is {scale[k]:g} for {name_of(k)}; expected a positive number")
    engine.positive("program.f_scale", program.f_scale)
    _check_pattern("program.jacobian_pattern", program.jacobian_pattern, m, n)
    rows, columns = _check_pattern("program.hessian_pattern", program.hessian_pattern, n, n)
    if (rows < columns).any():
        k = int(np.argmax(rows < columns))
        found = f"entry {k} at row {rows[k]}, column {columns[k]}, above the diagonal"
        raise InputError(f"`program.hessian_pattern` has {found}; expected the lower triangle")


def check_start(program: NonlinearProgram, x0: Any) -> Array:
    """A guess within the bounds: what was given, moved onto a bound where it is outside."""
    x = engine.real("x0", x0)
    if x.shape != (program.n,):
        raise InputError(
            f"`x0` has shape {x.shape}; the program has {program.n} variables, so ({program.n},) is expected"
        )
    if not np.isfinite(x).all():
        k = int(np.argmin(np.isfinite(x)))
        raise InputError(f"`x0` is {x[k]} for {named(program, 'variable', k)}; expected finite numbers")
    inside: Array = np.clip(x, program.x_lower, program.x_upper)
    return inside


def _vector(program: Any, name: str, size: int) -> Array:
    x = engine.real(f"program.{name}", getattr(program, name))
    if x.shape != (size,):
        raise InputError(f"`program.{name}` has shape {x.shape}; expected ({size},)")
    return x


def _check_pattern(name: str, pattern: Any, rows: int, columns: int) -> Pattern:
    if not isinstance(pattern, tuple | list) or len(pattern) != 2:
        raise InputError(f"`{name}` is {shown(pattern)}; expected two arrays: rows, columns")
    r, c = np.asarray(pattern[0]), np.asarray(pattern[1])
    if r.ndim != 1 or r.shape != c.shape or r.dtype.kind not in "iu" or c.dtype.kind not in "iu":
        found = f"{r.dtype} {r.shape} and {c.dtype} {c.shape}"
        raise InputError(f"`{name}` has arrays {found}; expected two integer arrays of one length")
    if r.size and not (r.min() >= 0 and r.max() < rows and c.min() >= 0 and c.max() < columns):
        raise InputError(f"`{name}` has entries outside {rows} rows and {columns} columns")
    place = c.astype(np.int64) * max(rows, 1) + r
    if not (np.diff(place) > 0).all():
        k = int(np.argmin(np.diff(place) > 0)) + 1
        found = f"entry {k} (row {r[k]}, column {c[k]}) after row {r[k - 1]}, column {c[k - 1]}"
        raise InputError(f"`{name}` has {found}; expected entries by column, then by row, none twice")
    return r, c
