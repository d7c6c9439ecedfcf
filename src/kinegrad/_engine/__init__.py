"""Between public functions and kernels: constants, one validation gate, threads.

A public function asks :class:`Batch` to check and flatten its arguments to ``(states, columns)``, lets :func:`run`
call a kernel on blocks of states, and shapes the result back.  Nothing of this is public.
"""

from kinegrad._engine.constants import VARIABLE, massive_if_varied, mechanism, pairs, places, slopes, without_springs
from kinegrad._engine.gate import Batch, check_model, finish, kernel_array, not_finite, one_state, real
from kinegrad._engine.steps import March, Marched, march, march_slopes
from kinegrad._engine.threads import get_threads, run, run_directions, scratch, set_threads

__all__ = [
    "VARIABLE",
    "Batch",
    "March",
    "Marched",
    "check_model",
    "finish",
    "get_threads",
    "kernel_array",
    "march",
    "march_slopes",
    "massive_if_varied",
    "mechanism",
    "not_finite",
    "one_state",
    "pairs",
    "places",
    "real",
    "run",
    "run_directions",
    "scratch",
    "set_threads",
    "slopes",
    "without_springs",
]
