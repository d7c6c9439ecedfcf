"""Motions that come to postures in which rows of the constraints depend on each other: they end, with a sentence."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import SolveError
from kinegrad.simulate import KineticEnergy, Objective, UnilateralContact, adjoint_gradient, simulate, simulate_fixed

FLAT = r"of the constraints (is singular|depend on each other) in a posture close by \(crank = 1\.571, "


def linkage(rocker=0.2, directions="xz"):
    """Two bars of 0.2 m, the second of which may be longer, and a coupler of 0.4 m between axes 0.4 m apart."""
    builder = kg.ModelBuilder("linkage", gravity=(0, 0, 0))

    def bar(mass, length):
        return kg.Inertia.rod(mass, [0, 0, 0], [0, 0, length])

    builder.add("crank", None, kg.revolute("y"), link="crank", inertia=bar(0.5, 0.2))
    builder.add("coupler", "crank", kg.revolute("y"), link="coupler", placement=[0, 0, 0.2], inertia=bar(1.0, 0.4))
    builder.add("rocker", None, kg.revolute("y"), link="rocker", placement=[0.4, 0, 0], inertia=bar(0.5, rocker))
    model = builder.build()
    loop = kg.Loop("coupler", [0, 0, 0.4], "rocker", [0, 0, rocker], directions=directions, name="pin")
    return model, kg.ConstraintSet(model, [loop])


def turning(speed=3.0, angle=0.3):
    """The state of a parallelogram."""
    return np.array([angle, np.pi / 2 - angle, angle]), speed * np.array([1.0, -1.0, 1.0])


def energies(model, motion):
    return kg.kinetic_energy(model, motion.q, motion.v)


EXACT = (np.pi / 2 - 0.3) / 3.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rtol": 1e-4, "atol": 1e-4},
        {"method": "Radau"},
        {"method": "RK45"},
        {"stabilisation": 20.0},
        {"contacts": []},
        {"speed": 7.3},
        {"redundant": "least-squares", "directions": "xyz"},
    ],
    ids=str,
)
def test_a_parallelogram_ends_before_it_is_flat(options):
    """From there it may go on as a parallelogram, or fold: whatever the integrator does depends on rounding."""
    speed = options.get("speed", 3.0)
    model, pin = linkage(directions=options.get("directions", "xz"))
    options = {name: x for name, x in options.items() if name not in ("speed", "directions")}
    with pytest.warns(kg.errors.UnfinishedWarning, match=FLAT):
        motion = simulate(model, *turning(speed), np.linspace(0, 2, 81), constraints=pin, **options)
    assert (motion.success, motion.status) == (False, -2)
    end = motion.phases[-1].end if motion.phases else motion.t[-1]
    assert 0 <= EXACT * 3 / speed - end < (1e-3 if motion.phases else 0.026)
    np.testing.assert_allclose(energies(model, motion), energies(model, motion)[0], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("directions", ["xz", "xyz"])
def test_fixed_steps_end_too_and_other_states_go_on(directions):
    """Of three states two come to the posture, at different times; the third stands still."""
    model, pin = linkage(directions=directions)
    states = [turning(), turning(6.0), turning(0.0)]
    q0, v0 = (np.array(x) for x in zip(*states, strict=True))
    options = {"constraints": pin, "redundant": "least-squares" if directions == "xyz" else "error"}
    with pytest.warns(kg.errors.UnfinishedWarning, match=r"2 of 3 states did not reach the end; the first: .*" + FLAT):
        motion = simulate_fixed(model, q0, v0, step=0.01, steps=60, **options)
    assert motion.status == -2
    lost = np.isnan(motion.q).any(axis=-1)
    np.testing.assert_array_equal(lost.argmax(axis=0), [int(EXACT / 0.01) + 1, int(EXACT / 0.02) + 1, 0])
    assert not lost[:, 2].any()
    with pytest.warns(kg.errors.UnfinishedWarning, match=FLAT):
        alone = simulate_fixed(model, *turning(), step=0.01, steps=60, contacts=[], **options)
    assert (alone.status, alone.steps) == (-2, int(EXACT / 0.01))
    for contacts in ({}, {"contacts": []}):
        with pytest.raises(SolveError, match=FLAT):
            adjoint_gradient(
                model, *turning(), Objective(end=[KineticEnergy()]), step=0.01, steps=60, **options, **contacts
            )


@pytest.mark.parametrize("method", ["simulate", "simulate_fixed"])
def test_linkages_that_only_come_near_go_on(method):
    """Bars that differ by 5 %: one is a crank, the other cannot follow all around; every posture is regular."""
    model, pin = linkage(rocker=0.21)
    q0 = kg.assemble(model, pin, turning()[0], keep=["crank"])
    v0 = kg.project_velocity(model, pin, q0, turning()[1])
    if method == "simulate":
        motion = simulate(model, q0, v0, np.linspace(0, 1.5, 31), constraints=pin)
    else:
        motion = simulate_fixed(model, q0, v0, step=0.01, steps=150, constraints=pin)
    assert motion.success, motion.message
    assert np.ptp(motion.q[:, 0]) > 2.0
    np.testing.assert_allclose(energies(model, motion), energies(model, motion)[0], rtol=1e-3)


def test_redundant_rows_of_constant_rank_go_on():
    """A planar linkage whose loop is tied in space: one row is redundant in every posture."""
    model, pin = linkage(rocker=0.21, directions="xyz")
    q0 = kg.assemble(model, pin, turning()[0], keep=["crank"])
    v0 = kg.project_velocity(model, pin, q0, turning()[1])
    loose = {"rtol": 1e-6, "atol": 1e-8}
    motion = simulate(model, q0, v0, [0, 0.8], constraints=pin, redundant="least-squares", **loose)
    plain = simulate(*(model, q0, v0), [0, 0.8], **loose, constraints=linkage(rocker=0.21)[1])
    assert motion.success
    np.testing.assert_allclose(motion.q, plain.q, atol=1e-5)


def test_a_posture_behind_an_impact_is_not_reached():
    """A stop before the flat posture turns the crank back."""
    model, pin = linkage()
    stop = kg.Contact("crank", [0, 0, 0.2], directions=[[-1, 0, 0]], other_point=[0.19, 0, 0], name="stop")
    bounce = [UnilateralContact(stop, 1.0)]
    for motion in (
        simulate(model, *turning(), [0, 0.5], constraints=pin, contacts=bounce),
        simulate_fixed(model, *turning(), step=0.25, steps=2, constraints=pin, contacts=bounce),
    ):
        assert motion.success, motion.message
        assert motion.impacts[0].t == pytest.approx((np.arcsin(0.95) - 0.3) / 3.0, rel=1e-3)
