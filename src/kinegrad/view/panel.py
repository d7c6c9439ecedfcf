"""The controls beside the model: clock, sliders, switches, and plots with a cursor in step."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.model.units import NUMBER, joint_units, kind_units, printed

if TYPE_CHECKING:
    from kinegrad.view.viewer import Viewer

__all__ = ["Panel"]

Array = NDArray[np.float64]
NONE = "none"
CURVES = ("#0072b2", "#d55e00", "#009e73")
SPEEDS = {"¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0}
SWITCHES = {
    "names": "link names",
    "axes": "joint axes",
    "com": "centre of mass",
    "ground": "ground",
    "forces": "forces",
}
FIRST_ON = ("ground", "forces")
QUANTITIES = ("torques", "coordinates", "speeds", "sensitivities")
LETTERS = {"torques": "tau", "coordinates": "q", "speeds": "v"}
MANY = 1000  # samples of a plot


class Panel:
    """What a visitor can set, and what is told beside the picture."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer, gui = viewer, viewer.server.gui
        gui.configure_theme(show_logo=False, dark_mode=viewer.dark)
        gui.main_panel.dock_right()
        self._own = threading.local()  # set while the panel itself moves a slider
        model, shown = viewer.model, viewer.shown
        mass = f", {model.total_mass:.4g} kg" if model.total_mass else ""
        self.about = gui.add_markdown(f"**{_escaped(model.name)}** · {model.nv} degrees of freedom{mass}")
        if shown.motion is not None:
            self._add_clock(gui, shown)
            self._add_plot(gui)
        with gui.add_folder("Which joints feel it?"):
            self.joint = gui.add_dropdown("∂τ/∂q of", (NONE, *model.speed_names), hint="or click a link")
            self.felt = gui.add_markdown("Click a link, or choose a coordinate.")
        self.joint.on_update(lambda _: self._chosen())
        with gui.add_folder("Show", expand_by_default=False):
            for what, text in SWITCHES.items():
                switch = gui.add_checkbox(text, what in FIRST_ON)
                switch.on_update(lambda event, what=what: viewer.scene.show(what, event.target.value))
            dark = gui.add_checkbox("dark page", viewer.dark)
            dark.on_update(lambda event: self._darken(event.target.value))
        self._add_sliders(gui)

    @property
    def speed(self) -> float:
        """How fast time passes."""
        return SPEEDS[self._speed.value]

    @property
    def loop(self) -> bool:
        """Whether the motion begins again at its end."""
        return bool(self._loop.value)

    # --- parts --------------------------------------------------------------------------------------------------

    def _add_clock(self, gui: Any, shown: Any) -> None:
        first, last = (float(x) for x in shown.motion.t[[0, -1]])
        with gui.add_folder("Motion"):
            self._button = gui.add_button("Play")
            self._time = gui.add_slider("time, s", first, last, _step(last - first), first)
            self._speed = gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1×")
            self._loop = gui.add_checkbox("repeat", True)
        viewer = self.viewer
        self._button.on_click(lambda _: viewer.pause() if viewer.playing else viewer.play())
        self._time.on_update(lambda _: self._by_visitor(lambda: self._scrub()))
        self._speed.on_update(lambda _: viewer.set_time(viewer.time))

    def _add_plot(self, gui: Any) -> None:
        names = self.viewer.model.speed_names
        with gui.add_folder("Plot"):
            self._quantity = gui.add_dropdown("of", QUANTITIES)
            start = self.viewer.shown.strongest()[:3]
            self._curves = [
                gui.add_dropdown(
                    f"curve {k + 1}", (NONE, *names), initial_value=names[start[k]] if k < len(start) else NONE
                )
                for k in range(len(CURVES))
            ]
            self._figure = gui.add_uplot(aspect=1.4, **self._drawn())
        for choice in (self._quantity, *self._curves):
            choice.on_update(lambda _: self.plot())

    def _add_sliders(self, gui: Any) -> None:
        shown, model = self.viewer.shown, self.viewer.model
        start, ranges = shown.tangent(shown.q), shown.slider_ranges()
        units = [kind_units("q", kind) for kind in model.layout.speed_kinds]
        with gui.add_folder("Coordinates", expand_by_default=model.nv <= 12):
            self._home = gui.add_button("Back to the first posture")
            self._sliders = [
                gui.add_slider(f"{name}, {unit}", *_rounded(low, high), _step(high - low), float(x))
                for name, unit, (low, high), x in zip(model.speed_names, units, ranges, start, strict=True)
            ]
            self._told = start  # what sliders say, with the digits they have
        for slider in self._sliders:
            slider.on_update(lambda _: self._by_visitor(self._slid))
        self._home.on_click(lambda _: self.viewer.set_posture(shown.q))

    # --- what a visitor does ------------------------------------------------------------------------------------

    def _by_visitor(self, act: Any) -> None:
        """Do something unless the panel itself moved the slider: a browser never reports those, callbacks here do."""
        if not getattr(self._own, "busy", False):
            act()

    def _darken(self, dark: bool) -> None:
        self.viewer.server.gui.configure_theme(show_logo=False, dark_mode=dark)
        self.viewer.scene.darken(dark)

    def _scrub(self) -> None:
        self.viewer._playing.clear()  # pause() would first set the slider back to the time that is shown
        self.viewer.set_time(float(self._time.value))

    def _slid(self) -> None:
        said = np.array([slider.value for slider in self._sliders], dtype=float)
        x = np.where(said == self._told, self.viewer.shown.tangent(self.viewer.q), said)  # others stay, to all digits
        self.viewer.set_posture(self.viewer.shown.posture(x))

    def _chosen(self) -> None:
        name = self.joint.value
        self.viewer.choose(None if name == NONE else self.viewer.model.speed_names.index(name))

    # --- what is shown ------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Everything that follows the posture and the time."""
        viewer = self.viewer
        self._own.busy = True
        try:
            with viewer.server.atomic():
                digits = [_digits(slider.step) for slider in self._sliders]
                told = [round(float(x), d) for x, d in zip(viewer.shown.tangent(viewer.q), digits, strict=True)]
                for slider, x in zip(self._sliders, told, strict=True):
                    if slider.value != x:
                        slider.value = float(np.clip(x, slider.min, slider.max))
                self._told = np.array([slider.value for slider in self._sliders], dtype=float)
                if viewer.shown.motion is not None:
                    self._time.value = round(viewer.time, _digits(self._time.step))
                    self._button.label = "Pause" if viewer.playing else "Play"
                    self._figure.data = self._with_cursor()
                self._tell()
        finally:
            self._own.busy = False

    def plot(self) -> None:
        """Draw the chosen curves anew."""
        if self.viewer.shown.motion is not None:
            drawn = self._drawn()
            with self.viewer.server.atomic():
                for name in ("series", "title", "scales", "data"):
                    setattr(self._figure, name, drawn[name])

    def _tell(self) -> None:
        viewer, chosen = self.viewer, self.viewer.chosen
        names = viewer.model.speed_names
        if chosen is None:
            self.felt.content = "Click a link, or choose a coordinate."
            return
        if self.joint.value != names[chosen]:
            self.joint.value = names[chosen]
        column = viewer.shown.sensitivity(viewer._q, viewer._v, viewer._a, chosen)
        strongest = np.argsort(-np.abs(column))[:5]
        units = [self._slope_unit(k, chosen) for k in strongest]
        rows = "\n".join(
            f"| {_escaped(names[k])} | {_number(column[k])} {unit} |"
            for k, unit in zip(strongest, units, strict=True) if column[k]
        )  # fmt: skip
        told = f"| joint | ∂τ/∂q |\n|:--|:--|\n{rows}" if rows else "No torque changes with it here."
        self.felt.content = f"Red: the torque grows with **{_escaped(names[chosen])}**; blue: it falls.\n\n{told}"

    def _slope_unit(self, of: int, by: int) -> str:
        """The unit of one entry of ∂τ/∂q."""
        kinds = self.viewer.model.layout.speed_kinds
        below = printed(kind_units("q", kinds[by]))
        return (
            f"{printed(kind_units('tau', kinds[of]))}/{below}"
            if below != NUMBER
            else printed(kind_units("tau", kinds[of]))
        )

    def _drawn(self) -> dict[str, Any]:
        """Data, series and title of the plot."""
        motion, model = self.viewer.shown.motion, self.viewer.model
        assert motion is not None
        quantity = self._quantity.value
        values = self._values(quantity)
        chosen = [model.speed_names.index(c.value) for c in self._curves if c.value != NONE] or [0]
        seen = _extremes(values[:, chosen])
        self._times = np.asarray(motion.t, dtype=float)[seen]
        self._lines = [np.ascontiguousarray(values[seen, k], dtype=float) for k in chosen]
        self._low, self._high = _span(self._lines)
        series: list[dict[str, Any]] = [{"label": "time, s"}]
        series += [
            {"label": model.speed_names[k], "stroke": color, "width": 2}
            for k, color in zip(chosen, (CURVES * len(chosen))[: len(chosen)], strict=True)
        ]
        series.append({"label": "now", "stroke": "#808080", "width": 1, "points": {"show": False}})
        scales = {"x": {"time": False}, "y": {"auto": False, "range": (self._low, self._high)}}
        return {"data": self._with_cursor(), "series": tuple(series), "title": self._title(quantity), "scales": scales}

    def _title(self, quantity: str) -> str:
        """What is drawn, and its unit."""
        model = self.viewer.model
        if quantity == "sensitivities":
            return f"∂τ/∂q of {model.speed_names[self.viewer.chosen or 0]}"
        kinds = model.layout.speed_kinds
        drawn = [kinds[model.speed_names.index(c.value)] for c in self._curves if c.value != NONE] or kinds[:1]
        return f"{quantity}, {printed(joint_units(LETTERS[quantity], drawn))}"

    def _values(self, quantity: str) -> Array:
        """What is drawn over time, (m, nv)."""
        shown = self.viewer.shown
        motion = shown.motion
        assert motion is not None
        if quantity == "torques":
            return shown.tau
        if quantity == "coordinates":
            return shown.tangent(motion.q)
        if quantity == "speeds":
            return np.asarray(motion.v)
        return shown.sensitivity(motion.q, motion.v, motion.a, self.viewer.chosen or 0)

    def _with_cursor(self) -> tuple[Array, ...]:
        """The curves with an upright line at the time that is shown: two samples of that time among the others."""
        now = self.viewer.time
        k = int(np.searchsorted(self._times, now))
        line = np.full(len(self._times) + 2, np.nan)
        line[k : k + 2] = self._low, self._high
        curves = [np.insert(x, k, [np.interp(now, self._times, x)] * 2) for x in self._lines]
        return (np.insert(self._times, k, [now, now]), *curves, line)


def _extremes(values: Array) -> NDArray[np.int64]:
    """Samples to draw of curves (m, k): all, or of a long record the lowest and highest in many short intervals.

    >>> _extremes(np.sin(np.linspace(0, 9, 8))[:, None]).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    m = len(values)
    if m <= MANY:
        return np.arange(m)
    width = -(-2 * m * values.shape[1] // MANY)
    kept = {0, m - 1}
    for first in range(0, m, width):
        part = values[first : first + width]
        kept |= {first + int(k) for k in (*part.argmin(axis=0), *part.argmax(axis=0))}
    return np.array(sorted(kept))


def _step(span: float) -> float:
    """Of a slider: a power of ten, so that numbers beside it have few digits, and five hundred steps at least.

    >>> _step(6.28), _step(2.0)
    (0.01, 0.001)
    """
    return float(f"1e{int(np.floor(np.log10(max(span, 1e-9) / 500)))}")


def _digits(step: float) -> int:
    return max(0, -round(float(np.log10(step))))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """The ends of a slider, outwards to its digits.

    >>> _rounded(-0.523599, 0.785398)
    (-0.524, 0.786)
    """
    step = _step(high - low)
    digits = _digits(step)
    return round(float(np.floor(low / step)) * step, digits), round(float(np.ceil(high / step)) * step, digits)


def _number(x: float) -> str:
    """Four digits, with a proper minus.

    >>> _number(-19.06412)
    '−19.06'
    """
    return f"{x:.4g}".replace("-", "−")


def _span(curves: list[Array]) -> tuple[float, float]:
    """From below the lowest value of all curves to above the highest."""
    low, high = min(float(x.min()) for x in curves), max(float(x.max()) for x in curves)
    spare = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - spare, high + spare


def _escaped(text: str) -> str:
    """Text in which Markdown sees no marks."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+-.!|" else c for c in text)
