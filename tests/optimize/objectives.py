"""Objectives whose optima are known."""

import numpy as np

from kinegrad import Design, samples

METHODS = ["SLSQP", "trust-constr", "L-BFGS-B"]
CONSTRAINED = METHODS[:2]
MASSES = Design(samples.double_pendulum(MP=1.0, MQ=2.0), ["P.mass", "Q.mass"])
TIGHT = {"tolerance": 1e-12, "max_iterations": 500}


def bowl(centre, stretch=((3.0, 1.0), (1.0, 2.0))):
    """½ (p − centre)ᵀ H (p − centre) of a design of constants."""
    H = np.array(stretch)

    def value_and_gradient(design):
        away = design.values - centre
        return 0.5 * away @ H @ away, H @ away

    return value_and_gradient
