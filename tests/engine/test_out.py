"""Results in place: `out=` of any layout, over its inputs, and what cannot be filled."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad import InputError, inverse_dynamics, mass_matrix
from kinegrad import _engine as engine
from tests.engine.batches import MODEL, N, Subclass, read_only, same_bits, states, unaligned

Q, V, A = states(11, seed=3)
EXPECTED = inverse_dynamics(MODEL, Q, V, A)


def test_out_is_filled_and_returned():
    out = np.full((11, N), np.nan)
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(out, EXPECTED)
    M = np.full((11, N, N), np.nan)  # entries that topology makes zero are written too
    assert mass_matrix(MODEL, Q, out=M) is M
    same_bits(M, mass_matrix(MODEL, Q))
    assert (M == 0).any()


OUTS = {
    "Fortran order": lambda: np.full((11, N), np.nan, order="F"),
    "every second": lambda: np.full((22, 2 * N), np.nan)[::2, ::2],
    "reversed": lambda: np.full((11, N), np.nan)[::-1, ::-1],
    "unaligned": lambda: unaligned(np.full((11, N), np.nan)),
    "subclass": lambda: np.full((11, N), np.nan).view(Subclass),
}


@pytest.mark.parametrize("new", OUTS.values(), ids=OUTS.keys())
def test_out_of_any_layout(new):
    out = new()
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(np.array(out, order="C", subok=False), EXPECTED)


def test_out_leaves_its_surroundings_alone():
    around = np.full((13, N + 2), 7.0)
    inverse_dynamics(MODEL, Q, V, A, out=around[1:-1, 1:-1])
    same_bits(around[1:-1, 1:-1].copy(), EXPECTED)
    around[1:-1, 1:-1] = 7.0
    assert (around == 7.0).all()


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("threads", [1, 2])
def test_out_may_be_an_input(small_grain, k, threads):
    arguments = [Q.copy(), V.copy(), A.copy()]
    out = arguments[k]
    assert inverse_dynamics(MODEL, *arguments, out=out, threads=threads) is out
    same_bits(out, EXPECTED)


@pytest.mark.parametrize("shift", [1, 2, 5, -1, -3])
@pytest.mark.parametrize("rows", [True, False])
def test_out_may_overlap_an_input(shift, rows):
    """By whole states, or by single numbers, up or down."""
    step = shift * N if rows else shift
    buffer = np.full(11 * N + 5 * N, np.nan)
    place = [buffer[at : at + 11 * N].reshape(11, N) for at in (max(-step, 0), max(-step, 0) + step)]
    place[0][...] = Q
    inverse_dynamics(MODEL, place[0], V, A, out=place[1])
    same_bits(place[1], EXPECTED)


def test_out_may_overlap_what_needs_a_copy():
    """The copy is made before the result is written: a read-only view, a strided view, loads."""
    buffer = Q.copy()
    view = buffer[:]
    view.flags.writeable = False
    same_bits(inverse_dynamics(MODEL, view, V, A, out=buffer), EXPECTED)
    buffer = Q[::-1].copy()
    same_bits(inverse_dynamics(MODEL, buffer[::-1], V, A, out=buffer), EXPECTED)
    force = np.random.default_rng(4).normal(size=(11, N, 3))
    expected = inverse_dynamics(MODEL, Q, V, A, loads=kg.Loads(force=force))
    out = force.reshape(-1)[5 : 5 + 11 * N].reshape(11, N)
    same_bits(inverse_dynamics(MODEL, Q, V, A, loads=kg.Loads(force=force), out=out), expected)


def test_out_may_overlap_a_buffer_behind_a_foreign_object():
    buffer = Q.copy()
    same_bits(inverse_dynamics(MODEL, memoryview(buffer), V, A, out=buffer), EXPECTED)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((11, N), np.float32), r"`out` is a float32 array of shape \(11, 6\); expected a float64"),
        (np.empty((11, N), ">f8"), "`out` is a >f8 array .* expected a float64 array"),
        (np.empty((11, N), complex), "`out` is a complex128 array"),
        (np.empty((10, N)), r"`out` is a float64 array of shape \(10, 6\); expected .* \(11, 6\)"),
        (np.empty(11 * N), r"shape \(66,\)"),
        (np.empty((1, 11, N)), r"shape \(1, 11, 6\)"),
        ([[0.0] * N] * 11, "`out` is a list; expected a float64 array"),
        (read_only(np.empty((11, N))), "`out` is read-only; expected a writable array"),
        (np.ma.masked_equal(np.zeros((11, N)), 0.0), "`out` is a masked array, which would hide results"),
    ],
)
def test_out_that_cannot_be_filled(out, message):
    with pytest.raises(InputError, match=message):
        inverse_dynamics(MODEL, Q, V, A, out=out)


def test_results_to_fill_must_have_all_their_arrays():
    """None would ask for a new array, which nobody would get to see."""
    found = kg.inverse_dynamics_hessian(MODEL, Q, V, A, A)
    for name in vars(found):
        out = dataclasses.replace(found, **{name: None})
        with pytest.raises(InputError, match=rf"`out\.{name}` is None; expected an array to fill"):
            kg.inverse_dynamics_hessian(MODEL, Q, V, A, A, out=out)


def strided(*strides):
    """An array (11, 6) with these strides, in numbers, in memory that is large enough."""
    memory = np.full(2000, np.nan)
    return np.lib.stride_tricks.as_strided(memory[1000:], (11, N), [8 * k for k in strides])


@pytest.mark.parametrize("strides", [(1, 1), (0, 1), (5, 1), (1, 10), (-1, 1), (3, 2), (2, 4), (-5, 1), (6, -6)])
def test_out_whose_numbers_overlap(strides):
    with pytest.raises(InputError, match=r"`out` repeats its memory \(strides .*\); expected room for every number"):
        inverse_dynamics(MODEL, Q, V, A, out=strided(*strides))


@pytest.mark.parametrize("strides", [(6, 1), (1, 11), (7, 1), (-6, 1), (12, 2), (6, 11), (-6, -11), (13, 2), (2, 23)])
def test_out_whose_numbers_do_not_overlap(strides):
    """(6, 11) and (13, 2) are neither one block nor one after another, and yet all places differ."""
    places = np.add.outer(np.arange(11) * strides[0], np.arange(N) * strides[1])
    assert len(np.unique(places)) == 11 * N
    out = strided(*strides)
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(np.ascontiguousarray(out), EXPECTED)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-40, 40)), min_size=1, max_size=4),
)
def test_overlap_is_found_exactly(axes):
    """As counting places does, for strides that are no multiple of a number's size, too."""
    memory = np.zeros(4000)
    x = np.lib.stride_tricks.as_strided(memory[2000:], [k for k, _ in axes], [4 * stride for _, stride in axes])
    places = np.zeros(1, int)
    for size, stride in axes:
        places = np.add.outer(places, np.arange(size) * 4 * stride).ravel()
    places.sort()
    assert engine.memory.overlaps_itself(x) == bool((np.diff(places) < 8).any())


def test_outs_may_be_interleaved_but_not_overlap():
    both = np.full((11, N, N, 2), np.nan)
    wanted = kg.inverse_dynamics_derivatives(MODEL, Q, V, A)
    tau, by_a = np.empty((11, N)), np.empty((11, N, N))
    out = kg.InverseDynamicsDerivatives(tau, both[..., 0], both[..., 1], by_a)
    kg.inverse_dynamics_derivatives(MODEL, Q, V, A, out=out)
    same_bits(both[..., 0].copy(), wanted.dtau_dq)
    same_bits(both[..., 1].copy(), wanted.dtau_dv)
    out = kg.InverseDynamicsDerivatives(tau, both[..., 0], both[::-1, ..., 0], by_a)
    with pytest.raises(InputError, match=r"`out.dtau_dq` and `out.dtau_dv` share memory"):
        kg.inverse_dynamics_derivatives(MODEL, Q, V, A, out=out)


def test_derivatives_may_be_written_over_their_inputs():
    """State and loads: all is read before anything is written there."""
    force = np.random.default_rng(4).normal(size=(11, N, 3))
    wanted = kg.inverse_dynamics_derivatives(MODEL, Q, V, A, loads=kg.Loads(force=force))
    room = np.zeros((11, N, N))
    room.reshape(-1)[: force.size] = force.ravel()
    view = room.reshape(-1)[: force.size].reshape(force.shape)
    q = Q.copy()
    out = kg.InverseDynamicsDerivatives(q, room, np.empty((11, N, N)), np.empty((11, N, N)))
    kg.inverse_dynamics_derivatives(MODEL, q, V, A, loads=kg.Loads(force=view), out=out)
    for x, y in zip(vars(out).values(), vars(wanted).values(), strict=True):
        same_bits(x, y)
