"""Published optima are found by every solver, with every kind of derivatives, and are optima by our own word."""

import numpy as np
import pytest

from kinegrad.motion.nlp import solve
from tests.motion.nlp.programs import PROBLEMS, hs

SOLVERS = ("ipopt", "uno", "slsqp")


@pytest.mark.parametrize("number", [k for k in PROBLEMS if k != 100])
@pytest.mark.parametrize("solver", SOLVERS)
def test_published_optimum(number, solver):
    """Objectives within the tolerance times the multipliers, which are up to 1750 in problem 15."""
    program, x0, f, x = hs(number)
    found = solve(program, x0, solver=solver)
    assert found.success, found.message
    assert found.f == pytest.approx(f, rel=1e-6, abs=1e-6)
    if x is not None:
        np.testing.assert_allclose(found.x, x, atol=1e-3)
    assert max(found.optimality, found.violation, found.complementarity) <= 1e-5
