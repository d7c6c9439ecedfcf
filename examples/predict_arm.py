"""How fast can this arm get from here to there?  Motion prediction with a two-link arm, stated from nothing.

The arm of xiang2008, example 1: torques of at most 10 N·m, at rest at both ends, the least time.  Then the same arm
with weaker motors, and how the least time changes with them.

    python examples/predict_arm.py
"""

from kinegrad import samples
from kinegrad.motion.problem import Boundary, Limits, MotionProblem, Phase, Time


def problem(torque=10.0):
    """From (0, −2) to (1, −1) rad with torques of at most `torque`, N·m."""
    arm = samples.two_link(gravity=(0, 0, 0))
    return MotionProblem(
        arm,
        Phase(duration=(0.1, 2.0), segments=20),
        [
            Boundary("start", q={"shoulder": 0.0, "elbow": -2.0}, v=0.0),
            Boundary("end", q={"shoulder": 1.0, "elbow": -1.0}, v=0.0),
            Limits(tau=torque),
        ],
        Time(),
    )


def main():
    """Solve it for three motors; times by torque."""
    print(problem().describe())
    times = {}
    for torque in (10.0, 8.0, 5.0):
        solution = problem(torque).solve()
        assert solution.success, solution.message
        times[torque] = solution.duration
        print(f"motors of {torque:4.1f} N·m: T = {solution.duration:.5f} s, {solution.iterations} iterations")
    print("without gravity, T grows as one over the square root of the torque")
    return times


if __name__ == "__main__":
    main()
