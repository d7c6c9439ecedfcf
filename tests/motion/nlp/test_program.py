"""What is no program is refused by name, before any work starts."""

import numpy as np
import pytest

from kinegrad import InputError
from kinegrad.motion.nlp import NonlinearProgram, solve
from tests.motion.nlp.programs import hs


def test_the_protocol_is_what_is_checked():
    assert isinstance(hs(71)[0], NonlinearProgram)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("n", 0, "`program.n` is 0"),
        ("m", -1, "`program.m` is -1"),
        ("objective", 3, "`program.objective` is 3; expected a method"),
        ("x_lower", np.zeros(3), r"`program.x_lower` has shape \(3,\); expected \(4,\)"),
        ("x_lower", np.full(4, 9.0), "a lower limit above its upper one for x0: 9 and 5"),
        ("x_upper", np.full(4, np.nan), "limits that are not numbers for x0"),
        ("g_upper", np.full(2, -np.inf), "for row 0 at t = 0.0 s"),
        ("g_lower", np.array([np.inf, 0.0]), "limits that no number is within"),
        ("x_scale", np.zeros(4), "`program.x_scale` is 0 for x0; expected a positive number"),
        ("g_scale", np.array([1.0, np.inf]), "`program.g_scale` is inf for row 1 at t = 0.1 s"),
        ("f_scale", -1, "`program.f_scale` is -1"),
        ("jacobian_pattern", None, "`program.jacobian_pattern` is None; expected two arrays"),
        ("jacobian_pattern", (np.array([0.0]), np.array([0])), "expected two integer arrays of one length"),
        ("jacobian_pattern", (np.array([2]), np.array([0])), "entries outside 2 rows and 4 columns"),
        (
            "jacobian_pattern",
            (np.array([1, 0]), np.array([0, 0])),
            r"entry 1 \(row 0, column 0\) after row 1, column 0",
        ),
        ("jacobian_pattern", (np.array([0, 0]), np.array([0, 0])), "none twice"),
        ("hessian_pattern", (np.array([0]), np.array([1])), "row 0, column 1, above the diagonal"),
    ],
)
def test_wrong_programs(name, value, text):
    program, x0, *_ = hs(71)
    if name == "g_lower":
        program.g_upper = np.array([np.inf, 0.0])
    setattr(program, name, value)
    with pytest.raises(InputError, match=text):
        solve(program, x0)


def test_what_is_missing_is_named():
    program, x0, *_ = hs(71)
    del program.f_scale
    with pytest.raises(InputError, match="`program` is a Symbolic without `f_scale`; expected a NonlinearProgram"):
        solve(program, x0)


@pytest.mark.parametrize("name", ["objective", "gradient", "constraints", "jacobian", "hessian"])
@pytest.mark.parametrize("solver", ["ipopt", "uno"])
def test_wrong_results_are_named(name, solver):
    """A function that gives another number of values than its pattern has: found at its first call."""
    program, x0, *_ = hs(71)
    setattr(program, name, lambda *_: np.zeros(3))
    with pytest.raises(InputError, match=rf"`program.{name}` gives an array of shape \(3,\); expected"):
        solve(program, x0, solver=solver)


def test_gauss_newton_has_to_be_there():
    program, x0, *_ = hs(71)

    class Without:
        def __getattr__(self, name):
            if name == "gauss_newton":
                raise AttributeError(name)
            return getattr(program, name)

    with pytest.raises(InputError, match="`program` has no method gauss_newton"):
        solve(Without(), x0, hessian="gauss-newton")
