"""Solves whose results are published: a solve that Ctrl-C ended is none of them."""

from __future__ import annotations

from typing import Any

from kinegrad.motion.problem import MotionProblem, MotionSolution

__all__ = ["solve_to_the_end"]


def solve_to_the_end(problem: MotionProblem, guess: Any, **options: Any) -> MotionSolution:
    """``problem.solve(guess, **options)``; where that returns the best point so far, as after Ctrl-C, raise
    KeyboardInterrupt, or tables and pages would show it among results."""
    solution = problem.solve(guess, **options)
    if solution.nonlinear.status == "interrupted":
        raise KeyboardInterrupt
    return solution
