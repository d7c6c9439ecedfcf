"""What IPOPT is given for one solve is kept for the next: nothing of the first may be seen in the second."""

import gc
import threading
import weakref

import numpy as np
import pytest

from kinegrad.motion.nlp import ipopt, solve
from tests.motion.nlp.programs import hs


def same(a, b):
    return (
        np.array_equal(a.x, b.x) and np.array_equal(a.g_multipliers, b.g_multipliers) and a.iterations == b.iterations
    )


def test_solves_repeat_bit_by_bit():
    program, x0, *_ = hs(71)
    first = solve(program, x0)
    assert program in ipopt._KEPT
    assert same(first, solve(program, x0))
    fresh, *_ = hs(71)
    assert same(first, solve(fresh, x0))


def test_other_options_other_limits_other_derivatives():
    program, x0, *_ = hs(71)
    solve(program, x0)
    assert solve(program, x0, max_iterations=2).status == "iteration-limit"
    assert solve(program, x0, hessian="limited-memory").evaluations.hessian == 0
    assert solve(program, x0).evaluations.hessian > 0
    program.x_upper = np.asarray(program.x_upper) - 3.0  # which no solver was made for
    tighter = solve(program, np.clip(x0, program.x_lower, program.x_upper))
    assert (tighter.x <= program.x_upper + 1e-9).all()


def test_programs_are_freed():
    program, x0, *_ = hs(71)
    solve(program, x0)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_a_solve_within_a_solve_and_solves_at_once():
    program, x0, *_ = hs(71)
    alone = solve(program, x0)
    inner, before = [], np.geterr()
    outer = solve(program, x0, progress=lambda iterate: inner.append(solve(program, x0)) if not inner else None)
    assert same(outer, alone)
    assert same(inner[0], alone)
    assert np.geterr() == before
    found = [None] * 4

    def work(k):
        found[k] = solve(program, x0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(one, alone) for one in found)


def test_after_an_error_a_new_one_is_made():
    program, x0, *_ = hs(71)
    alone = solve(program, x0)

    def stop(iterate):
        raise LookupError

    with pytest.raises(LookupError):
        solve(program, x0, progress=stop)
    assert program not in ipopt._KEPT
    assert same(solve(program, x0), alone)
