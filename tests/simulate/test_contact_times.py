"""When contacts close and open: between long steps, and several at the same time."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import (
    KineticEnergy,
    Objective,
    UnilateralContact,
    adjoint_gradient,
    contact_steps,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
    stretches,
)
from tests.simulate.test_contacts import G, block

ENERGY = Objective(end=[KineticEnergy()], integral=[KineticEnergy()])


def door():
    """A door of 1 m that turns freely."""
    builder = kg.ModelBuilder("door")
    leaf = kg.Inertia(1.0, [0.5, 0, 0], np.diag([0.1, 0.1, 0.1]))
    builder.add("hinge", None, kg.revolute("z"), link="leaf", inertia=leaf)
    return builder.build()


@pytest.mark.parametrize(("speed", "depth"), [(0.5, 0.8), (1.3, 0.8), (0.5, 0.9), (30.0, 0.95), (2.0, 0.999999)])
def test_no_impact_is_skipped_however_long_steps_become(speed, depth):
    """Nothing accelerates the door but its stop: steps grow to several turns, with the edge beyond the stop shortly."""
    stop = [UnilateralContact(kg.Contact("leaf", [1.0, 0, 0], directions="y", other_point=[0, -depth, 0]))]
    exact = (np.pi + np.arcsin(depth) - 0.01) / speed
    adaptive = simulate(door(), [0.01], [speed], [0, 2 * exact, 4 * exact], contacts=stop)
    fixed = simulate_fixed(door(), [0.01], [speed], step=4 * exact, steps=1, contacts=stop)
    for motion in (adaptive, fixed):
        assert motion.impacts[0].t == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("count", [1, 3, 5, 50])
def test_an_impact_where_a_step_begins(count):
    """The edge arrives at the stop with the end of a step, and is inside it for a small part of the next."""
    depth = 0.999999
    stop = [UnilateralContact(kg.Contact("leaf", [1.0, 0, 0], directions="y", other_point=[0, -depth, 0]))]
    exact = np.pi + np.arcsin(depth) - 0.01
    motion = simulate_fixed(door(), [0.01], [1.0], step=exact / count, steps=2 * count, contacts=stop)
    assert [impact.t for impact in motion.impacts][:1] == pytest.approx([exact], rel=1e-9)


def test_no_release_is_skipped_between_long_steps():
    """A rotor out of balance pulls its base off the floor near the top of each turn, for a tenth of a turn."""
    builder = kg.ModelBuilder("shaker", gravity=(0, 0, 0))
    builder.add("lift", None, kg.prismatic("z"), link="base", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    builder.add("spin", "base", kg.revolute("y"), link="rotor", inertia=kg.Inertia.point(0.1, [0, 0, 0.2]))
    model, speed, push = builder.build(), 10.0, 1.9
    floor = [UnilateralContact(kg.Contact("base", directions="z", name="floor"))]
    loads = kg.Loads(force={"base": [0, 0, -push]})
    exact = (2 * np.pi - np.arccos(push / (0.1 * 0.2 * speed**2)) - 1.0) / speed
    state = [0.0, 1.0], [0.0, speed]
    adaptive = simulate(model, *state, [0, 1.0], loads=loads, contacts=floor)
    fixed = simulate_fixed(model, *state, step=0.7, steps=1, loads=loads, contacts=floor)
    for motion in (adaptive, fixed):
        assert motion.phases[0].closed == ("floor",)
        assert motion.phases[0].end == pytest.approx(exact, abs=1e-8)


# --- at the same time -------------------------------------------------------------------------------------------------


def balls(*masses):
    """Balls that do not touch each other, above floors that return different parts of their speeds."""
    builder = kg.ModelBuilder("balls")
    for k, mass in enumerate(masses):
        builder.add(f"h{k}", None, kg.prismatic("z"), link=f"b{k}", inertia=kg.Inertia.point(mass, [0, 0, 0]))
    contacts = [
        UnilateralContact(kg.Contact(f"b{k}", directions="z", name=f"f{k}"), 0.8 / mass)
        for k, mass in enumerate(masses)
    ]
    return builder.build(), contacts


def test_impacts_of_independent_bodies_at_one_time_have_slopes_of_their_own():
    """Three balls that start at one height: slopes are those of each alone, in steps of both kinds and backwards."""
    masses, n = (1.0, 2.0, 1.6), 3
    model, contacts = balls(*masses)
    design = kg.Design(model, [f"b{k}.mass" for k in range(n)])
    start, steps = (np.ones(n), np.zeros(n)), {"step": 0.05, "steps": 12, "contacts": contacts}
    more = {"design": design, "dq0_dp": np.eye(n)}
    adaptive = simulate(model, *start, [0, 0.6], contacts=contacts, **more)
    fixed = simulate_fixed(model, *start, **steps, **more)
    for k, mass in enumerate(masses):
        one = balls(mass)[0]
        floor = [UnilateralContact(kg.Contact("b0", directions="z"), 0.8 / mass)]
        alone = simulate(one, [1.0], [0], [0, 0.6], contacts=floor, design=kg.Design(one, ["b0.mass"]), dq0_dp=[[1.0]])
        for motion in (adaptive, fixed):
            for name in ("dq_dp", "dv_dp"):
                slopes = getattr(motion, name)[-1, k]
                np.testing.assert_allclose(slopes, np.eye(n)[k] * getattr(alone, name)[-1, 0, 0], atol=1e-7)
            times = np.array([x.dt_dp for x in motion.impacts if x.touching == (f"f{k}",)])
            np.testing.assert_allclose(times[0], np.eye(n)[k] * alone.impacts[0].dt_dp, atol=1e-7)
    assert all(motion.message == "reached the end" for motion in (adaptive, fixed))
    assert [x.closed for x in fixed.phases] == [(), ()]
    back = adjoint_gradient(model, *start, ENERGY, **steps)
    assert back.note == ""
    wanted = [
        (value(model, start, steps, step) - value(model, start, steps, -step)) / 2e-6 for step in 1e-6 * np.eye(n)
    ]
    np.testing.assert_allclose(back.dvalue_dq0, wanted, rtol=1e-7)
    forwards = objective_gradient(fixed, ENERGY).dvalue_dp
    explicit = objective_gradient(simulate_fixed(model, *start, **steps, design=design), ENERGY).dvalue_dp
    np.testing.assert_allclose(forwards - explicit, back.dvalue_dq0, rtol=1e-10)


def value(model, start, steps, change):
    return objective_value(simulate_fixed(model, start[0] + change, start[1], **steps), ENERGY)


def test_two_walls_of_a_corner_are_independent():
    """A point mass runs into a corner: one body, but what one wall does the other does not notice."""
    builder = kg.ModelBuilder("bead", gravity=(0, 0, 0))
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"), link="bead", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    model = builder.build()
    walls = [UnilateralContact(kg.Contact("bead", directions=u, name=u), 0.5) for u in "xz"]
    found = simulate(
        model, [1.0, 1.0], [-1.0, -1.0], [0, 2.0], contacts=walls, design=kg.Design(model, ["gravity.x", "gravity.z"]),
        dq0_dp=np.eye(2),
    )  # fmt: skip
    assert found.message == "reached the end"
    np.testing.assert_allclose(found.dq_dp[-1], np.diag(np.diag(found.dq_dp[-1])), atol=1e-9)


def landing_flat():
    """A wide block on two smooth corners, which falls flat; its tilt follows the second parameter."""
    model, corners = block(wide=1.0)
    smooth = [kg.Contact("block", x.contact.point, directions="z", name=x.contact.name) for x in corners]
    design = kg.Design(model, ["gravity.z", "block.mass"])
    start = [0.0, 0.6, 0.0], [0.0, 0.0, 0.0]
    return model, [UnilateralContact(x, 0.5) for x in smooth], design, start


@pytest.mark.parametrize("kind", ["adaptive", "fixed"])
def test_where_the_order_of_impacts_matters_that_is_noted(kind):
    """Slopes by gravity exist, because both corners stay together; those by a tilt do not."""
    model, contacts, design, start = landing_flat()
    tilt = np.zeros((3, 2))
    tilt[2, 1] = 1.0

    def run(**more):
        if kind == "adaptive":
            return simulate(model, *start, [0, 0.3], contacts=contacts, design=design, **more)
        return simulate_fixed(model, *start, step=0.05, steps=6, contacts=contacts, design=design, **more)

    assert run().message == "reached the end"
    assert run().impacts[0].touching == ("left", "right")
    t = np.sqrt(0.2 / G)
    message = run(dq0_dp=tilt).message
    assert f"derivatives with respect to 'block.mass' do not exist from t = {t:.6g} s on" in message
    assert "contacts 'left', 'right' touch at the same time" in message
    assert "gravity" not in message


def test_the_adjoint_notes_it_too():
    """Backwards all states before are parameters, so that a tilt is among them."""
    model, contacts, _, start = landing_flat()
    back = adjoint_gradient(model, *start, ENERGY, step=0.05, steps=6, contacts=contacts)
    assert "derivatives with respect to states and torques before do not exist from t = 0.14" in back.note


def test_many_impacts_at_one_time_are_not_without_end(monkeypatch):
    """More bodies land at one time than events are allowed without progress."""
    monkeypatch.setattr(stretches, "MOST", 3)
    monkeypatch.setattr(contact_steps, "MOST", 3)
    model, contacts = balls(*[1.0] * 6)
    state = np.ones(6), np.zeros(6)
    for motion in (
        simulate(model, *state, [0, 0.5], contacts=contacts),
        simulate_fixed(model, *state, step=0.5, steps=1, contacts=contacts),
    ):
        assert motion.success
        assert len(motion.impacts) == 6


def test_a_motion_without_bounds_does_not_take_all_memory():
    """Speeds of 1e12 rad/s in a step that diverges once asked for billions of instants of it, 21 GB."""
    from kinegrad.simulate.crossings import MOST, instants, parts_of

    assert len(instants(0.0, 1.0, 1e12, 1)) == 4 * MOST + 1
    assert parts_of(1.0, 1) == 4
    assert parts_of(float("inf"), 3) == 3
