"""How many operations the kernels do for one state: ``python -m benchmarks.operations`` prints them as JSON.

Kernels also run as plain Python, on numbers of any type (``NUMBA_DISABLE_JIT``): here on numbers that count what is
done with them.  Sines and cosines count as none; what the compiler leaves out, as the addition of a zero, counts.
Each operation is one instruction for all states of a register, and a multiplication with the addition that follows it
can be one, so that there are at least as many instructions as the larger of the two counts.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

KINDS = {"mul": "multiplications", "add": "additions", "sub": "additions", "truediv": "divisions"}
counts: Counter[str] = Counter()


class Counting(float):
    """A number that counts the operations with it."""

    def __neg__(self) -> Counting:
        return Counting(-float(self))

    def sin(self) -> Counting:
        return Counting(math.sin(self))

    def cos(self) -> Counting:
        return Counting(math.cos(self))


def _counted(name: str, kind: str) -> Callable[[Any, Any], Any]:
    plain = getattr(float, name)

    def operation(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        counts[kind] += 1
        return Counting(plain(self, other))

    return operation


for _name, _kind in KINDS.items():
    setattr(Counting, f"__{_name}__", _counted(f"__{_name}__", _kind))
    setattr(Counting, f"__r{_name}__", _counted(f"__r{_name}__", _kind))

counting = np.frompyfunc(Counting, 1, 1)


def of_human() -> dict[str, dict[str, int]]:
    """Operations for one state of the 43-degree-of-freedom human, by kernel; counted in a process of its own."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "KINEGRAD_LANES": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.operations"], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


def main() -> None:
    import kinegrad as kg
    from kinegrad._engine import threads
    from kinegrad._kernels.lanes import lane

    gather = lane.gather
    for module in list(sys.modules.values()):
        if getattr(module, "gather", None) is gather:
            module.gather = lambda *arguments: counting(gather(*arguments))
    aligned = threads.aligned
    threads.aligned = lambda slots: counting(aligned(slots))
    model = kg.samples.human43(thickness=0.1)
    q, v, a = np.random.default_rng(0).normal(size=(3, 1, model.n))
    functions: dict[str, Callable[[], Any]] = {
        "τ": lambda: kg.inverse_dynamics(model, q, v, a),
        "M": lambda: kg.mass_matrix(model, q),
        "a": lambda: kg.forward_dynamics(model, q, v, a),
        "∂τ": lambda: kg.inverse_dynamics_derivatives(model, q, v, a, packed=True),
        "∂a": lambda: kg.forward_dynamics_derivatives(model, q, v, a),
        "vjp": lambda: kg.inverse_dynamics_vjp(model, q, v, a, v),
        "hvp": lambda: kg.inverse_dynamics_hvp(model, q, v, a, v, q, v, a),
        "Hessian": lambda: kg.inverse_dynamics_hessian(model, q, v, a, v, packed=True),
    }
    found = {}
    for name, function in functions.items():
        counts.clear()
        function()
        found[name] = dict(counts)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        main()
    else:
        print(json.dumps(of_human(), ensure_ascii=False))
