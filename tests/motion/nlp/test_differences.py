"""Differences against exact derivatives: their errors are those that theory gives, also at bounds."""

import casadi
import numpy as np
import pytest

from kinegrad.motion.nlp.differences import Differences, column_groups
from kinegrad.motion.nlp.evaluation import Evaluator
from tests.motion.nlp.programs import INF, Symbolic


def band(n=8):
    """Neighbours alone share rows: a Jacobian with two numbers a row."""
    return Symbolic(
        n,
        lambda x: casadi.sumsqr(casadi.sin(x)),
        lambda x: [casadi.exp(x[k]) * x[k + 1] for k in range(n - 1)],
        x=(0, 1),
        limits=(-INF, INF),
        scale=(2.0, 3.0, 5.0),
    )


@pytest.mark.parametrize(("scheme", "error"), [("forward", 1e-7), ("central", 1e-9)])
@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_against_exact(scheme, error, where):
    """Forward: √ε times curvature; central: ε^⅔ times the third derivative; at a bound without leaving it."""
    program = band()
    x = np.full(8, where) + 0.01 * np.arange(8) * (0.5 - where)
    exact, outside = Evaluator(program), []
    own = program.constraints
    program.constraints = lambda x: outside.append(((x < 0) | (x > 1)).any()) or own(x)
    scaled = x / exact.x_scale
    differences = Differences(Evaluator(program), scheme)
    assert np.abs(differences.gradient(scaled) - exact.gradient(scaled)).max() <= error
    assert np.abs(differences.jacobian(scaled) - exact.jacobian(scaled)).max() <= 5 * error
    assert not any(outside)


def test_few_evaluations_for_a_band():
    """Two groups of columns, however many there are."""
    program = band(40)
    scaled = Evaluator(program)
    Differences(scaled, "forward").jacobian(np.full(40, 0.2))
    assert scaled.evaluations.constraints == 3
    assert len(column_groups(*program.jacobian_pattern, 39, 40)) == 2


def test_narrow_bounds():
    """Narrower than a step: the step is taken all the same, since there is no other."""
    program = Symbolic(1, lambda x: x[0] ** 2, x=(1, 1 + 1e-12))
    for scheme in ("forward", "central"):
        slope = Differences(Evaluator(program), scheme).gradient(np.array([1.0]))
        assert slope[0] == pytest.approx(2, abs=1e-6)
