"""Figures and tables of models whose coordinates are not their joints: by speeds, and by their names."""

import io

import numpy as np
from rich.console import Console

import kinegrad as kg
from kinegrad.cli.console import print_torques
from kinegrad.cli.info import _coordinate_table
from kinegrad.plot import draw_skeleton, plot_error_maps, plot_torques
from tests.mixed import mixed_state, mixed_tree

MODEL = mixed_tree(3)


def test_torques_are_drawn_by_speeds():
    q, v, a = mixed_state(MODEL, 3, (4,))
    tau = kg.inverse_dynamics(MODEL, q, v, a)
    figure = plot_torques(MODEL, np.arange(4.0), tau)
    assert len(figure.axes) > 1
    named = plot_torques(MODEL, np.arange(4.0), tau, {"some": [MODEL.speed_names[-1]]})
    assert named.axes[-1].texts[0].get_text().endswith(MODEL.speed_names[-1])


def test_a_skeleton_stands_in_the_neutral_configuration():
    from matplotlib.figure import Figure

    for q in (None, kg.neutral(MODEL)):
        draw_skeleton(MODEL, q, ax=Figure().add_subplot())


def test_error_maps_have_a_row_for_each_speed():
    errors = np.full((MODEL.nv, MODEL.nv), 1e-9)
    assert plot_error_maps(MODEL, {"a": errors}).axes


def test_tables_of_the_command_line():
    text = io.StringIO()
    console = Console(file=text, width=200)
    console.print(_coordinate_table(MODEL))
    print_torques(console, MODEL, None, np.ones((3, MODEL.nv)))
    for name in (*MODEL.coordinate_names, *MODEL.speed_names):
        assert name in text.getvalue()
