"""Lengths by name: they move what follows along the link, and their slopes are those of complex steps."""

import numpy as np
import pytest

import kinegrad as kg


def rod(mass, length):
    return kg.Inertia.rod(mass, [0, 0, 0], [length, 0, 0])


def arm(**options):
    builder = kg.ModelBuilder("arm", gravity=(0, -9.81, 0))
    upper = builder.add(
        "shoulder", None, kg.revolute("z"), link="upper", inertia=kg.Inertia.rod(2.0, [0, 0, 0], [0.3, 0, 0])
    )
    fore = builder.add(
        "elbow", upper, kg.revolute("z"), link="fore", placement=[0.3, 0.1, 0],
        inertia=rod(1.0, 0.25), **options,
    )  # fmt: skip
    builder.add_frame("tool", fore, [0.25, 0, 0])
    return builder.build()


def test_a_length_is_the_distance_to_the_next_joint_or_to_the_tool():
    design = kg.Design(arm(), ["upper.length", "fore.length"])
    np.testing.assert_allclose(design.values, [np.hypot(0.3, 0.1), 0.25])
    longer = design.at([2 * np.hypot(0.3, 0.1), 0.5]).model
    np.testing.assert_allclose(longer.placement[1, :3, 3], [0.6, 0.2, 0])
    np.testing.assert_allclose(longer.frames["tool"].placement[:3, 3], [0.5, 0, 0])
    np.testing.assert_array_equal(longer.mass, arm().mass)


def test_slopes_are_those_of_differences():
    design = kg.Design(arm(), ["upper.length", "fore.length"])
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    exact = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    point = kg.point_motion_design_derivatives(design, q, link="tool").dposition_dp
    h = 1e-6
    for k in range(2):
        step = h * np.eye(2)[k]
        more, less = design.at(design.values + step).model, design.at(design.values - step).model
        change = (kg.inverse_dynamics(more, q, v, a) - kg.inverse_dynamics(less, q, v, a)) / (2 * h)
        np.testing.assert_allclose(exact[..., k], change, atol=1e-8)
        places = [kg.point_motion(model, q, link="tool").position for model in (more, less)]
        np.testing.assert_allclose(point[:, k], (places[0] - places[1]) / (2 * h), atol=1e-9)


def test_lengths_of_links_with_their_frame_at_the_far_end():
    builder = kg.ModelBuilder("leg")
    thigh = builder.add(
        "hip", None, kg.revolute("x"), link="thigh", tip=[0, 0, -0.4], inertia=kg.Inertia.point(1.0, [0, 0, 0.2])
    )
    builder.add("knee", thigh, kg.revolute("x"), link="shank", inertia=kg.Inertia.point(1.0, [0, 0, -0.2]))
    design = kg.Design(builder.build(), ["thigh.length"])
    np.testing.assert_allclose(design.values, [0.4])
    np.testing.assert_allclose(design.at([0.5]).model.tip[0, :3, 3], [0, 0, -0.5])


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (kg.samples.two_link(), "forearm.length", "placed by a Denavit–Hartenberg row; expected elbow.a or elbow.d"),
        (kg.samples.cart_pendulum(), "bob.length", "has no length|does not exist"),
        (kg.samples.human43(), "nothing.length", "does not exist"),
    ],
)
def test_links_without_a_length(model, name, message):
    with pytest.raises(kg.InputError, match=message):
        kg.Design(model, [name])


def test_a_length_and_what_it_moves_are_not_two_parameters():
    with pytest.raises(kg.InputError, match="are one constant"):
        kg.Design(arm(), ["upper.length", "elbow.placement.x"])
    kg.Design(arm(), {"reach": {"upper.length": 1.0, "fore.length": 1.0}})
