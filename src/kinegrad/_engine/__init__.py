"""Between public functions and kernels: constants, one validation gate, threads.

A public function asks :class:`Batch` to check and flatten its arguments to ``(states, columns)``, lets :func:`run`
call a kernel on parts of the states, and shapes the result back.  Nothing of this is public.
"""

from kinegrad._engine.coordinates import Chart, pose_angles, unit
from kinegrad._engine.expansion import Expansion, check_arguments, check_unit
from kinegrad._engine.gate import (
    Batch,
    check_model,
    finish,
    flag,
    kernel_array,
    mapped,
    not_finite,
    one_of,
    one_state,
    overflow_passes,
    positive,
    real,
    whole,
)
from kinegrad._engine.kernel_constants import (
    flags_if_varied,
    mechanism,
    slopes,
    tame,
    variable_fields,
    without_springs,
)
from kinegrad._engine.marching import March, Marched, march, march_slopes
from kinegrad._engine.marching_reverse import Reversal, Segment
from kinegrad._engine.memory import share_memory, streams
from kinegrad._engine.reduction import Reduced, factor_pivot, solve_hybrid
from kinegrad._engine.tables import acceleration_tables, pairs, places, plan, torque_tables, tree
from kinegrad._engine.tangents import Directions, directions, run_tangents
from kinegrad._engine.threads import get_threads, run, run_directions, run_pivots, scratch, set_threads
from kinegrad._kernels.compiler.compiling import apart as compile_apart

__all__ = [
    "Batch",
    "Chart",
    "Directions",
    "Expansion",
    "March",
    "Marched",
    "Reduced",
    "Reversal",
    "Segment",
    "acceleration_tables",
    "check_arguments",
    "check_model",
    "check_unit",
    "compile_apart",
    "directions",
    "factor_pivot",
    "finish",
    "flag",
    "flags_if_varied",
    "get_threads",
    "kernel_array",
    "mapped",
    "march",
    "march_slopes",
    "mechanism",
    "not_finite",
    "one_of",
    "one_state",
    "overflow_passes",
    "pairs",
    "places",
    "plan",
    "pose_angles",
    "positive",
    "real",
    "run",
    "run_directions",
    "run_pivots",
    "run_tangents",
    "scratch",
    "set_threads",
    "share_memory",
    "slopes",
    "solve_hybrid",
    "streams",
    "tame",
    "torque_tables",
    "tree",
    "unit",
    "variable_fields",
    "whole",
    "without_springs",
]
