"""Every lane width computes the same: 7 states, so that every width but one has an incomplete last block."""

import numpy as np
import pytest

from kinegrad._kernels.width import ALLOWED
from tests.kernels.child import child, output

SCRIPT = """
import numba
import numpy as np
import kinegrad as kg
from kinegrad._kernels.lanes import unload
from kinegrad._kernels.width import WIDTH
from kinegrad.simulate import simulate_fixed

model = kg.samples.random_tree(6, seed=7)
q, v, a = np.random.default_rng(3).normal(size=(3, 7, 6))
print(WIDTH)
model = model.replace(armature=model.armature + 0.5)
results = [kg.inverse_dynamics(model, q, v, a), kg.mass_matrix(model, q)]
if WIDTH in %r:
    design = kg.Design(model, ["gravity.z", f"{model.joint_names[1]}.stiffness"])
    motion = simulate_fixed(model, q, v, tau=a[0], step=0.01, steps=2, design=design)
    models = [design.at(design.values * (1 + 0.1 * k)).model for k in range(7)]
    designs = simulate_fixed(models, q, v, tau=a[0], step=0.01, steps=2)
    results += [motion.q, motion.dv_dp, designs.a]
for x in results:
    print(*(number.hex() for number in x.ravel()))

@numba.njit
def unload_to(x, scratch):
    unload(x, 0, scratch, 0)

scratch, rows = np.random.default_rng(4).normal(size=(2 * WIDTH + 1, WIDTH)), np.empty((WIDTH, 2 * WIDTH + 1))
unload_to(rows, scratch)
assert (rows == scratch.T).all()
"""


# the widths of AVX2 and AVX-512: duals and mechanisms that differ by lane take half a minute to compile for each
THOROUGH = (4, 8)


@pytest.mark.slow
def test_all_widths_agree(tmp_path):
    results = {}
    for pair in (ALLOWED[k : k + 2] for k in range(0, len(ALLOWED), 2)):  # two at a time
        started = [child(SCRIPT % (THOROUGH,), KINEGRAD_LANES=str(w), KINEGRAD_CACHE_DIR=str(tmp_path)) for w in pair]
        for process in started:
            width, *rows = output(process).splitlines()
            results[int(width)] = [np.array([float.fromhex(x) for x in row.split()]) for row in rows]
    assert tuple(sorted(results)) == ALLOWED
    assert len(list(tmp_path.glob("compiled-*"))) == len(ALLOWED)  # each width has a cache of its own
    for width, found in results.items():
        assert [len(x) for x in found] == ([42, 252, 126, 252, 126] if width in THOROUGH else [42, 252])
        # order of summation may differ between widths: a few roundings of the largest term
        for x, x4 in zip(found, results[4], strict=False):
            np.testing.assert_allclose(x, x4, rtol=1e-13, atol=1e-13 * np.abs(x4).max())


def test_a_wrong_width_stops_the_import():
    process = child("import kinegrad", KINEGRAD_LANES="3")
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert err.splitlines()[-1] == (
        "ImportError: KINEGRAD_LANES is '3'; expected one of (1, 2, 4, 8, 16), or leave it unset"
    )
