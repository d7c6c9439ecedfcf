"""How fast kinegrad is, beside its peers in the same run.

``python -m benchmarks [family …] [--quick] [--json FILE] [--markdown FILE]``, from the repository's root.

To add a family: write ``benchmarks/<family>.py`` with

- a docstring whose first line is the heading of its table, and whose rest is printed below that heading;
- ``run(repeats: int) -> list[Row]``, usually ``return compare([Case(…), …], repeats)``;

and put its name into :data:`FAMILIES`.
"""

FAMILIES = (
    "inverse_dynamics",
    "derivatives",
    "hessian",
    "forward_dynamics",
    "constrained",
    "mass_matrix",
    "coordinates",
    "kinematics",
    "scaling",
    "derivative_scaling",
    "design",
    "simulate",
    "adjoint",
    "motion",
    "profile",
    "floor",
    "second_thread",
    "opensim",
    "startup",
)
