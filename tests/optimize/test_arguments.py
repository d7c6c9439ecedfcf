"""Malformed bounds, limits and objectives are refused by name."""

import numpy as np
import pytest

from kinegrad import Design, samples
from kinegrad.errors import InputError, SolveError
from kinegrad.simulate import (
    KineticEnergy,
    Limit,
    Objective,
    Simulated,
    TorqueEffort,
    optimize_design,
)
from tests.optimize.objectives import MASSES, bowl

FINE = bowl([1.0, 1.0])
WHOLE = Limit(lambda design: (0.0, np.zeros(2)), 0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": samples.two_link()}, "`design` is a Model; expected a Design"),
        ({"objective": 3}, "`objective` is a int; expected a callable"),
        ({"objective": Objective()}, r"Simulated\(objective, q0, v0, step=…, steps=…\) makes one"),
        ({"objective": lambda design: 1.0}, "`objective` gives float; expected two things"),
        ({"objective": lambda design: (1.0, np.zeros(3))}, r"gives shapes \(\) and \(3,\); expected \(\) and \(2,\)"),
        ({"objective": lambda design: (np.ones(1), np.zeros((1, 2)))}, r"gives shapes \(1,\) and \(1, 2\); expected"),
        ({"objective": lambda design: (1j, np.zeros(2))}, "`value of objective` holds complex numbers"),
        ({"method": "Nelder-Mead"}, "`method` is 'Nelder-Mead'; expected one of 'SLSQP', 'trust-constr', 'L-BFGS-B'"),
        ({"method": "L-BFGS-B", "constraints": [WHOLE]}, "takes no `constraints`"),
        ({"constraints": WHOLE}, "`constraints` is a Limit; expected a list of Limit"),
        ({"constraints": [3]}, r"`constraints\[0\]` is a int; expected Limit"),
        ({"constraints": [Limit(lambda design: (np.zeros(3), np.zeros((2, 2))))]}, r"`constraints\[0\]` gives shapes"),
        ({"constraints": [Limit(WHOLE.function, [0, 0, 0])]}, r"`lower` of constraints\[0\] has shape \(3,\)"),
        ({"tolerance": 0}, "`tolerance` is 0; expected a number between 0 and 1"),
        ({"tolerance": "tight"}, "`tolerance` is 'tight'"),
        ({"max_iterations": 0}, "`max_iterations` is 0; expected a whole number"),
        ({"max_iterations": 2.5}, "`max_iterations` is 2.5"),
        ({"progress": 1}, "`progress` is a int"),
        ({"bounds": {"R.mass": (0, 1)}}, "`bounds` has 'R.mass'; expected names of parameters: P.mass, Q.mass"),
        ({"bounds": [(0, 1)]}, "expected pairs .*, one for each of the 2 parameters"),
        ({"bounds": 3}, "`bounds` is 3"),
        ({"bounds": {"P.mass": 3}}, "`bounds` of 'P.mass' is 3; expected \\(lower, upper\\)"),
        ({"bounds": {"P.mass": (2, 3)}}, "`bounds` of 'P.mass' are 2 and 3; the design has 1"),
        ({"bounds": {"P.mass": (3, 0)}}, "`bounds` of 'P.mass' are 3 and 0; the design has 1"),
        ({"bounds": {"P.mass": (np.nan, 3)}}, "`bounds` of 'P.mass' are nan and 3"),
        ({"bounds": [(1, 1), (2, 2)]}, "`bounds` leave no parameter free"),
        ({"scale": [1.0]}, "`scale` is .*; expected positive numbers, one for each"),
        ({"scale": {"P.mass": 0}}, "`scale` of 'P.mass' is 0; expected a positive number"),
    ],
)  # fmt: skip
def test_malformed(arguments, message):
    given = {"design": MASSES, "objective": FINE} | arguments
    with pytest.raises(InputError, match=message):
        optimize_design(given.pop("design"), given.pop("objective"), **given)


def test_malformed_limits():
    with pytest.raises(InputError, match="`function` of a Limit is 3"):
        Limit(3)
    for edges in ((2.0, 1.0), (np.nan, 1.0), ([[0.0]], 1.0)):
        with pytest.raises(InputError, match="expected numbers, lower ≤ upper"):
            Limit(FINE, *edges)
    with pytest.raises(InputError, match="no number is within them"):
        Limit(FINE, np.inf, np.inf)

    def changing(design):
        k = 1 if design.values[0] == 1.0 else 2
        return np.zeros(k), np.zeros((k, 2))

    with pytest.raises(InputError, match=r"give \(2,\) numbers .* expected \(1,\), as at the start"):
        optimize_design(MASSES, bowl([0.7, 3.1]), constraints=[Limit(changing, -1.0, 1.0)])


def test_malformed_objectives():
    with pytest.raises(InputError, match="`objective` is a KineticEnergy; expected an Objective"):
        Simulated(KineticEnergy(), [0, 0], [0, 0], step=0.1, steps=1)
    with pytest.raises(InputError, match="`gradient` is 'backward'; expected 'adjoint' or 'direct'"):
        Simulated(Objective(), [0, 0], [0, 0], step=0.1, steps=1, gradient="backward")
    good = np.zeros((3, 2))
    with pytest.raises(InputError, match="`t` has shape"):
        TorqueEffort(good, good, good, [0, 0, 1])
    with pytest.raises(InputError, match=r"`v` has shape \(3, 3\); expected \(3, 2\)"):
        TorqueEffort(good, np.zeros((3, 3)), good, [0, 1, 2])
    with pytest.raises(InputError, match=r"`q` has shape \(3, 2\); expected \(4, 2\)"):
        TorqueEffort(good, good, good, [0, 1, 2, 3])
    with pytest.raises(InputError, match=r"`weight` has shape \(3,\); expected a number, or \(2,\) of them"):
        TorqueEffort(good, good, good, [0, 1, 2], weight=[1, 2, 3])


def test_an_effort_that_overflows_is_refused():
    """Without a warning, and by the objective itself."""
    design, q = Design(samples.double_pendulum(), ["gravity.z"]), np.ones((3, 2))
    for hold in (TorqueEffort(q, q, q, [0, 1, 2], weight=1e308), TorqueEffort(q, q, 1e200 * q, [0, 1, 2])):
        with pytest.raises(SolveError, match="not finite"):
            hold(design)


class _Refuses:
    def __iter__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("bounds", [_Refuses(), [_Refuses()] * 2, [(1j, 2)] * 2, [("0", "9")] * 2, [(0, [9, 9])] * 2])
def test_bounds_that_are_no_numbers_are_named(bounds):
    with pytest.raises(InputError, match="`bounds`"):
        optimize_design(MASSES, lambda design: (0.0, [0.0, 0.0]), bounds=bounds)
