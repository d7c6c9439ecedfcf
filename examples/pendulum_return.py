"""Which double pendulum, let go at rest, is back where it was after two and a half seconds?

One that comes to rest after half of that: from there it goes back the way it came.  So the pendulum of anderson2002 is
simulated for 1.25 s in steps of 10 ms; the adjoint says how much it still moves then (its kinetic energy) and how that
changes with both lengths and the lower mass; SLSQP changes these until it is at rest, with 1.8 m of rod.

Run it:  python examples/pendulum_return.py
"""

from __future__ import annotations

import numpy as np

import kinegrad as kg
from kinegrad.simulate import DesignIterate, KineticEnergy, Limit, Objective, Simulated, optimize_design, simulate

RELEASE = [0.5, 0.3]  # rad


def show(at: DesignIterate) -> None:
    L1, L2, MQ = at.values
    print(f"{at.iteration:>9} {L1:>8.4f} {L2:>8.4f} {MQ:>8.4f} {at.value:>10.1e}")


def main() -> float:
    """How far the best pendulum is from where it was let go after 2.5 s, rad."""
    design = kg.Design.from_function(kg.samples.double_pendulum, {"L1": 1.0, "L2": 0.8, "MQ": 1.0})
    motion_left = Simulated(Objective(end=[KineticEnergy()]), RELEASE, [0.0, 0.0], step=0.01, steps=125)
    rod = Limit(lambda design: (design.values[0] + design.values[1], [1.0, 1.0, 0.0]), 1.8, 1.8)
    bounds = {"L1": (0.4, 1.4), "L2": (0.4, 1.4), "MQ": (0.2, 3.0)}
    energy, gradient = motion_left(design)
    change = 1e-5 * np.eye(3)
    differences = [(motion_left(design.at(design.values + e))[0] - energy) / 1e-5 for e in change]
    print(f"energy after 1.25 s: {energy:.4f} J; its gradient by L1, L2, MQ")
    print(f"  by the adjoint {gradient.round(4)}, by forward differences {np.round(differences, 4)}\n")
    print(f"iteration {'L1, m':>8} {'L2, m':>8} {'MQ, kg':>8} {'energy, J':>10}")
    best = optimize_design(design, motion_left, bounds=bounds, constraints=[rod], tolerance=1e-12, progress=show)
    print(best.message)
    there_and_back = simulate(best.design.model, RELEASE, [0.0, 0.0], [0.0, 1.25, 2.5])
    away = float(np.abs(there_and_back.q[-1] - RELEASE).max())
    print(
        f"after 1.25 s it is at {there_and_back.q[1].round(4)} rad, after 2.5 s {away:.1e} rad from where it was let go"
    )
    return away


if __name__ == "__main__":
    main()
