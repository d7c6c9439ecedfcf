"""Names in figures: every figure draws every name that a model can have, as it is."""

import io

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import plot
from kinegrad.plot.names import drawn_name

NAMES = (r"knee $\foo$", "$", "a$b$c$", "_hidden", "__", r"\$x$", "100 % {^_}", "x" * 500, "<b>&", "ñ 角")


def named():
    builder, parent = kg.ModelBuilder(r"model $\bar$"), None
    for name in NAMES:
        builder.add(name, parent, kg.revolute("z"), link=f"{name}!", placement=[0.3, 0, 0],
                    inertia=kg.Inertia.rod(1, [0, 0, 0], [0.3, 0, 0]))  # fmt: skip
        parent = f"{name}!"
    return builder.build()


@pytest.mark.parametrize("name", NAMES)
def test_matplotlib_draws_the_name_itself(name):
    from matplotlib.cbook import is_math_text

    drawn = drawn_name(name)
    assert not is_math_text(drawn)
    text = drawn.replace(r"\$", "$").strip()  # what matplotlib does with text that is no mathematics
    assert text == name or (len(name) > 40 and len(text) == 40)


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # of a script that matplotlib's own font does not have
def test_every_figure_draws_every_name(tmp_path):
    model, t = named(), np.linspace(0, 1, 5)
    motion = kg.Motion(model, t, *np.random.default_rng(0).uniform(size=(4, 5, len(NAMES))))
    figures = {
        "motion": plot.plot_motion(motion, names=list(NAMES)),
        "torques": plot.plot_torques(motion, groups={name: [name] for name in NAMES}),
        "map": plot.plot_sensitivity_map(motion),
        "topology": plot.plot_topology(model),
        "skeleton": plot.plot_skeleton(model),
    }
    for figure in figures.values():
        figure.savefig(io.BytesIO(), format="svg")
    (legend,) = figures["motion"].legends
    assert [text.get_text() for text in legend.get_texts()] == [drawn_name(name) for name in NAMES]  # none left out
    plot.animate(model, motion, tmp_path / "a.gif", fps=5)
