"""Digits where they are easily lost: links far from each other, frames far from their links, long chains.

The expected numbers are those of the oracle in extended precision (80 bits on x86; where NumPy has no wider type these
tests compare with double precision and are weaker), or of the same mechanism where nothing is far.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, Model, ModelBuilder, samples
from kinegrad.simulate import KineticEnergy, Objective, adjoint_gradient
from tests.conftest import assert_close, difference
from tests.reference import oracle

WIDE = np.longdouble


def arm(builder: ModelBuilder, side: str, parent: str | None, base: np.ndarray) -> None:
    """Six hinges about oblique directions, links of 0.3 m."""
    for k, axis in enumerate("zyyzyx"):
        builder.add(
            f"{side}{k}",
            parent,
            kg.revolute(axis),
            link=f"{side} link {k}",
            placement=base if k == 0 else kg.translate(0.05, 0.02, 0.3) @ kg.rotate("x", 0.4),
            inertia=Inertia.box(2.0 / (k + 1), [0.06, 0.07, 0.3], [0.0, 0.01, 0.15]),
        )
        parent = f"{side} link {k}"


def two_arms(distance: float) -> Model:
    builder = ModelBuilder("two arms")
    for side, x in (("left", 0.0), ("right", distance)):
        arm(builder, side, None, kg.translate(x, -0.3 * x, 0.1 * x))
    return builder.build()


def everything(model: Model, q, v, x) -> dict[str, np.ndarray]:
    """All of the dynamics that does not depend on where in the world a mechanism is."""
    tau, a = kg.inverse_dynamics_derivatives(model, q, v, x), kg.forward_dynamics_derivatives(model, q, v, x)
    design = Design(model, [f"{model.joint_names[1]}.placement.x", f"{model.link_names[-1]}.mass"])
    found = {
        "tau": tau.tau, "dtau_dq": tau.dtau_dq, "dtau_dv": tau.dtau_dv, "M": kg.mass_matrix(model, q),
        "a": kg.forward_dynamics(model, q, v, x), "a by crba": kg.forward_dynamics(model, q, v, x, method="crba"),
        "da_dq": a.da_dq, "da_dv": a.da_dv, "da_dtau": a.da_dtau,
        "vjp": np.array(list(vars(kg.inverse_dynamics_vjp(model, q, v, x, x)).values())),
        "dtau_dp": kg.inverse_dynamics_design_derivatives(design, q, v, x),
        "ydtau_dp": kg.inverse_dynamics_design_vjp(design, q, v, x, x),
        "energy": kg.kinetic_energy(model, q, v),
    }  # fmt: skip
    return {name: np.asarray(value) for name, value in found.items()}


@pytest.mark.parametrize("distance", [10.0, 1e3, 1e5, 1e7])
def test_two_arms_do_not_feel_how_far_apart_they_are(distance):
    """About one common point, M was off by 5e-10 at 1 km and forward dynamics saw a free joint at 100 km."""
    near, far = two_arms(0.0), two_arms(distance)
    q, v, x = np.random.default_rng(0).normal(size=(3, near.n))
    expected = everything(near, q, v, x)
    for name, found in everything(far, q, v, x).items():
        assert difference(found, expected[name]) <= 1e-14, name


@pytest.mark.parametrize("travel", [1.0, 100.0, 1e4])
def test_a_gantry_keeps_the_digits_of_its_wrist(travel):
    """A wrist of 50 g at the end of three long slides: the slides do not care about moments, the wrist does."""
    builder = ModelBuilder("gantry")
    parent = None
    for axis in "xyz":
        builder.add(axis, parent, kg.prismatic(axis), link=f"carriage {axis}", inertia=Inertia.box(200.0, [1, 1, 1]))
        parent = f"carriage {axis}"
    for k, axis in enumerate("zyx"):
        builder.add(
            f"wrist {axis}",
            parent,
            kg.revolute(axis),
            link=f"part {k}",
            placement=kg.rotate("x", 0.3) @ kg.translate(0.0, 0.01, 0.02),
            inertia=Inertia.box(0.05, [0.02, 0.03, 0.04], [0.005, 0.0, 0.01]),
        )
        parent = f"part {k}"
    gantry = builder.build()
    q, v, x = np.random.default_rng(1).normal(size=(3, gantry.n))
    near = everything(gantry, q, v, x)
    q = q + np.array([travel, -2 * travel, travel / 3, 0, 0, 0])
    for name, found in everything(gantry, q, v, x).items():
        assert difference(found, near[name]) <= 1e-13, name


def wide(model: Model):
    """The model for the oracle, in extended precision."""
    constants = ("placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature")
    return oracle.with_constants(model, **{name: getattr(model, name).astype(WIDE) for name in constants})


def scaled(M: np.ndarray) -> np.ndarray:
    """M with ones on its diagonal: each joint in the unit that suits it."""
    size = np.sqrt(np.diag(M))
    return M / np.outer(size, size)


@pytest.mark.parametrize("offset", [0.1, 10.0, 1000.0])
def test_where_on_its_axis_a_joint_has_its_frame_does_not_matter(offset):
    """Frames of files are often far from the link along an oblique axis; then m z² hides the inertia about it."""
    builder = ModelBuilder("far frame")
    there = kg.rotate("x", 0.7) @ kg.rotate("y", -0.4)
    builder.add("mast", None, kg.revolute("z"), link="boom", placement=there, inertia=Inertia.box(3, [1, 0.2, 0.2]))
    builder.add(
        "pin",
        "boom",
        kg.revolute("y"),
        link="hook",
        placement=kg.translate(0.5, -offset, 0.0),
        inertia=Inertia.box(0.2, [0.01, 0.02, 0.01], [0.01, offset, 0.0]),
    )
    model = builder.build()
    q = np.array([0.4, 1.1])
    expected = oracle.mass_matrix(wide(model), q.astype(WIDE))
    assert_close(scaled(kg.mass_matrix(model, q)), scaled(expected).astype(float), 1e-14 + 1e-15 * offset)


@pytest.mark.parametrize("name", ["human43", "puma560", "spatial_chain"])
def test_every_entry_of_the_mass_matrix_has_its_digits(name):
    """Also the small ones, of fingers beside a trunk.  About one common point this was some 1e-13 to 1e-11."""
    model = samples.SAMPLES[name]()
    q = np.random.default_rng(2).normal(size=model.n)
    expected = oracle.mass_matrix(wide(model), q.astype(WIDE))
    assert_close(scaled(kg.mass_matrix(model, q)), scaled(expected).astype(float), 1e-14)


@pytest.mark.parametrize("n", [50, 100, 200, 500])
def test_the_inverse_mass_matrix_of_a_long_chain(n):
    """As exact as M can be inverted in double precision: the residual is the condition of M times rounding.

    Rows filled by symmetry and a recursion with L alone gave residuals of 4e-3 at n = 100 and 1e10 at 200.
    """
    chain = samples.spatial_chain(n)
    q, v, tau = np.random.default_rng(3).normal(size=(3, n))
    M = kg.mass_matrix(chain, q)
    inverse = kg.forward_dynamics_derivatives(chain, q, v, tau).da_dtau
    assert np.array_equal(inverse, inverse.T)
    assert np.abs(inverse @ M - np.eye(n)).max() <= np.linalg.cond(M) * np.finfo(float).eps


@pytest.mark.parametrize("n", [150, 200])
def test_the_adjoint_of_a_long_chain(n):
    """dJ/d(gravity.z) by the adjoint was −2.0 for −1.2 at n = 150 and 22256 for 0.6 at 200."""
    chain = samples.spatial_chain(n)
    q, v = 0.3 * np.random.default_rng(4).normal(size=(2, n))
    motion = {"objective": Objective(integral=[KineticEnergy()]), "step": 1e-3, "steps": 5}

    def value(gravity: float) -> float:
        return adjoint_gradient(chain.replace(gravity=(0, 0, gravity)), q, v, **motion).value

    found = adjoint_gradient(chain, q, v, design=Design(chain, ["gravity.z"]), **motion).dvalue_dp[0]
    h = 1e-2
    expected = (8 * (value(-9.81 + h) - value(-9.81 - h)) - (value(-9.81 + 2 * h) - value(-9.81 - 2 * h))) / (12 * h)
    # the sum of energies is some joules, its difference of h and rounding leaves 1e-9 of them
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_oracle_is_in_extended_precision():
    """Otherwise the comparisons above would say nothing."""
    if np.finfo(WIDE).eps >= np.finfo(float).eps:
        pytest.skip("NumPy has no type wider than float64 here")
    model = samples.puma560()
    q = np.linspace(0.1, 1, model.n)
    M = oracle.mass_matrix(wide(model), q.astype(WIDE))
    assert M.dtype == WIDE
    assert 0 < difference(M.astype(float), M) < 1e-15
