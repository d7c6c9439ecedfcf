"""Between public functions and kernels: constants, one validation gate, threads.

A public function makes one call (:func:`evaluate`) of a :class:`Kernel`, which says what it takes, gives and needs:
:class:`Batch` checks arguments and flattens them to ``(states, columns)``, the kernel runs on blocks of states, results
are shaped back.  Nothing of this is public.
"""

from kinegrad._engine.call import checked, evaluate, evaluate_with, fill, no_load
from kinegrad._engine.contraction import contract, contract_fields
from kinegrad._engine.coordinates import unit
from kinegrad._engine.curvature import hessian_in_coordinates, product_in_coordinates, without_ball_dampers
from kinegrad._engine.expansion import Expansion, check_arguments, check_unit
from kinegrad._engine.gate import (
    Batch,
    check_model,
    finish,
    flag,
    free_joint,
    kernel_array,
    mapped,
    not_finite,
    one_of,
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
from kinegrad._engine.signature import QV, QVA, QVTAU, Axis, Kernel, Kind, Q, Result, Shape
from kinegrad._engine.tables import acceleration_tables, pairs, places, plan, torque_tables, tree
from kinegrad._engine.tangents import Directions, directions, run_tangents
from kinegrad._engine.threads import get_threads, run, run_directions, scratch, set_threads
from kinegrad._kernels.compiler.jit import kept as keep_compiled

__all__ = [
    "QV",
    "QVA",
    "QVTAU",
    "Axis",
    "Batch",
    "Directions",
    "Expansion",
    "Kernel",
    "Kind",
    "March",
    "Marched",
    "Q",
    "Reduced",
    "Result",
    "Reversal",
    "Segment",
    "Shape",
    "acceleration_tables",
    "check_arguments",
    "check_model",
    "check_unit",
    "checked",
    "contract",
    "contract_fields",
    "directions",
    "evaluate",
    "evaluate_with",
    "factor_pivot",
    "fill",
    "finish",
    "flag",
    "flags_if_varied",
    "free_joint",
    "get_threads",
    "hessian_in_coordinates",
    "keep_compiled",
    "kernel_array",
    "mapped",
    "march",
    "march_slopes",
    "mechanism",
    "no_load",
    "not_finite",
    "one_of",
    "overflow_passes",
    "pairs",
    "places",
    "plan",
    "positive",
    "product_in_coordinates",
    "real",
    "run",
    "run_directions",
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
    "without_ball_dampers",
    "without_springs",
]
