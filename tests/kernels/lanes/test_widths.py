"""Every lane width computes the same: 7 states, so that every width but one has an incomplete last block.

From two lanes on, the same bits: calls of few states have narrower kernels than others (decision 141).
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad._kernels.compiler.width import ALLOWED
from kinegrad.simulate import simulate_fixed
from tests.kernels.child import child, ended, output, stopping

SCRIPT = """
import numba
import numpy as np
from kinegrad._kernels.lanes.lane import unload
from kinegrad._kernels.compiler.width import WIDTH
from tests.kernels.lanes.test_widths import results

print(WIDTH)
for x in results(WIDTH):
    print(*(number.hex() for number in x.ravel()))

@numba.njit
def unload_to(x, scratch):
    unload(x, 0, scratch, 0)

scratch, rows = np.random.default_rng(4).normal(size=(2 * WIDTH + 1, WIDTH)), np.empty((WIDTH, 2 * WIDTH + 1))
unload_to(rows, scratch)
assert (rows == scratch.T).all()
"""

WIDER = 8  # the width of AVX-512, for which steps of designs, constants in every lane, are worth compiling too
BOTH = (4, 8)  # that of few states there, and that of many: derivatives are compared, too


def results(width):
    """Torques and mass matrices; at two widths also derivatives, at one fixed steps of seven designs."""
    model = kg.samples.random_tree(6, seed=7)
    q, v, a = np.random.default_rng(3).normal(size=(3, 7, 6))
    model = model.replace(armature=model.armature + 0.5)
    found = [kg.inverse_dynamics(model, q, v, a), kg.mass_matrix(model, q)]
    if width not in BOTH:  # those two are looked at in all functions (tests/test_same_bits.py)
        hessian = kg.inverse_dynamics_hessian(model, q, v, a, v)
        alone = kg.inverse_dynamics_hessian(model, q[0], v[0], a[0], v[0])
        assert all((x == y[0]).all() for x, y in zip(vars(alone).values(), vars(hessian).values(), strict=True))
    if width in BOTH:
        found += vars(kg.inverse_dynamics_derivatives(model, q, v, a)).values()
        found += vars(kg.forward_dynamics_derivatives(model, q, v, a)).values()
    if width == WIDER:
        models = [model.replace(gravity=model.gravity * (1 + 0.1 * k)) for k in range(7)]
        found.append(simulate_fixed(models, q, v, tau=a[0], step=0.01, steps=2).a)
    return found


@pytest.mark.slow
def test_all_widths_agree(tmp_path):
    found = {}
    for pair in (ALLOWED[k : k + 2] for k in range(0, len(ALLOWED), 2)):  # two at a time
        started = [child(SCRIPT, KINEGRAD_LANES=str(w), KINEGRAD_CACHE_DIR=str(tmp_path)) for w in pair]
        with stopping(*started):
            for process in started:
                width, *rows = output(process).splitlines()
                found[int(width)] = [np.array([float.fromhex(x) for x in row.split()]) for row in rows]
    assert tuple(sorted(found)) == ALLOWED
    assert len(list(tmp_path.glob("compiled-*"))) == len(ALLOWED)  # each width has a cache of its own
    usual = [x.ravel() for x in results(WIDER)]
    for width, arrays in found.items():
        assert len(arrays) == (2 if width not in BOTH else len(usual) if width == WIDER else len(usual) - 1)
        for x, expected in zip(arrays, usual, strict=False):
            # a single lane is a number to the compiler, which sums in another order: a few roundings of the largest
            np.testing.assert_allclose(x, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())
        if width > 1:
            assert all((x == y).all() for x, y in zip(arrays, found[2], strict=False))
        if width == WIDER:
            assert all((x == y).all() for x, y in zip(found[4], arrays, strict=False))


EXPECTED = "the environment variable KINEGRAD_LANES is '3'; expected one of (1, 2, 4, 8, 16), or leave it unset"


def test_a_wrong_width_is_an_error_of_whoever_computes():
    """A sentence that can be caught, on the command line as well, and not a failed import."""
    script = """
import kinegrad as kg
try:
    kg.mass_matrix(kg.samples.two_link(), [0, 0])
except kg.InputError as error:
    print(error)
"""
    assert output(child(script, KINEGRAD_LANES="3")) == EXPECTED + "\n"


def test_a_wrong_width_on_the_command_line():
    code, _, err = ended(child("import kinegrad.cli as cli; cli.main()", "demo", KINEGRAD_LANES="3"))
    assert (code, err) == (2, f"error: {EXPECTED}\n")
