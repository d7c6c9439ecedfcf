"""The human of 43 degrees of freedom lifts a box, ahead and to one side, and takes a step; and a five-bar arm.

    python examples/predict_human.py [human43-lift | human43-lift-aside | human43-step | five-bar]

The problems are stated in kinegrad.predictions.human and .five_bar, a page each; this solves one, and says how good it
is between its nodes.
"""

import sys

from kinegrad.predictions import prediction


def main(name="human43-lift", **changes):
    """Solve a problem of the catalogue; its solution."""
    chosen = prediction(name)
    problem = chosen.make(**changes)
    print(chosen.title)
    print(problem.describe())
    solution = problem.solve(problem.guess(**chosen.guess))
    print(solution.message)
    print(f"T = {solution.duration:.4f} s, {solution.iterations} iterations, {solution.nonlinear.seconds:.1f} s")
    for one in solution.between:
        print(f"  {one.family:10s} at most {one.value:.2e} over, tolerance {one.tolerance:g}")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:2])
