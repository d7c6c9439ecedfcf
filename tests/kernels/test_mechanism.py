"""The table of a mechanism's constants says what models give to kernels, and what is derived from it is consistent."""

import numpy as np
import pytest

from kinegrad import _engine as engine
from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.mechanism import (
    COLUMNS,
    FLAGS,
    VARIED,
    Mechanism,
    Numbers,
    Slopes,
    first_columns,
    varied_numbers,
)
from tests.conftest import tree

MODEL = tree(5)


def test_the_table_has_the_shapes_that_models_give():
    constants = Mechanism(*engine.mechanism(MODEL))
    said = Mechanism.__annotations__
    for name, x in constants._asdict().items():
        what = next(iter(getattr(said[name], "__metadata__", ())), None)
        if isinstance(what, Numbers):
            assert x.shape == (MODEL.n if what.each_joint else 1, what.columns), name
            assert x.dtype == np.float64
        else:
            assert x.shape == (MODEL.n,), name
            assert x.dtype == np.int64


def test_what_varies_is_written_without_gaps():
    """Columns of gradients, and slots of copies, follow each other in the order of the table."""
    n = MODEL.n
    first = Slopes(*(plain(k, n) for k in range(len(VARIED))))
    after = [*first[1:], varied_numbers(n)]
    rows = [n if said.each_joint else 1 for said in VARIED.values()]
    assert first[0] == 0
    assert [end - begin for begin, end in zip(first, after, strict=True)] == [
        k * columns for k, columns in zip(rows, COLUMNS, strict=True)
    ]


def plain(k, n):
    """An entry of ``first_columns``, which with the JIT is a building block and runs only within a kernel."""
    if not JIT:
        return first_columns(n)[k]
    import numba

    return numba.njit(lambda n: first_columns(n)[k])(n)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_set_by_each_of_its_columns(flag):
    """Kernels skip a massless link, or a joint at its parent's origin; not where a direction changes that."""
    n, constants = MODEL.n, Mechanism(*engine.mechanism(MODEL))
    joint = int(np.flatnonzero(MODEL.parents >= 0)[0])
    quiet = tuple(constants._replace(**{name: np.zeros(n, dtype=np.int64) for name in FLAGS}))
    for what, said in VARIED.items():
        for column in range(said.columns):
            slopes = {name: np.zeros((1, constants._asdict()[name].size)) for name in VARIED}
            if said.each_joint:
                slopes[what].reshape(n, -1)[joint, column] = 1.0
            else:
                slopes[what][0, column] = 1.0
            found = getattr(Mechanism(*engine.flags_if_varied(quiet, tuple(slopes.values()))), flag)
            wanted = any(what == name and first <= column < after for name, first, after in FLAGS[flag].columns)
            assert found.tolist() == [int(wanted and i == joint) for i in range(n)], (what, column)


def test_roots_are_never_apart():
    n, constants = MODEL.n, Mechanism(*engine.mechanism(MODEL))
    slopes = tuple(np.ones((1, constants._asdict()[name].size)) for name in VARIED)
    found = Mechanism(*engine.flags_if_varied(tuple(constants), slopes))
    assert found.apart.tolist() == [int(parent >= 0) for parent in MODEL.parents]
    assert found.massive.tolist() == [1] * n
