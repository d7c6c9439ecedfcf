"""The browser viewer: a server of viser with the moving model, sliders, a clock, and plots beside it.

Everything a visitor does arrives in callbacks on threads of viser; one lock guards what is shown.  A clock of its own
thread plays the motion: it asks what time it is and shows the posture of that time, so that a slow browser skips
pictures instead of slowing time down.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.view.hover import add_names_on_hover
from kinegrad.view.needs import need_viser
from kinegrad.view.panel import Panel
from kinegrad.view.scene import Scene
from kinegrad.view.shown import Shown
from kinegrad.view.windows import fit_to_windows, needed_distance

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Viewer"]

Array = NDArray[np.float64]
PICTURES = 30.0  # per second
FIELD_OF_VIEW = np.radians(45.0)
ROOM = 1.08  # around the model, in a window as wide as it is high or wider
GREY, BLUE, RED = np.array([0.75, 0.77, 0.80]), np.array([0.02, 0.32, 0.70]), np.array([0.80, 0.10, 0.08])


class Viewer:
    """A page in the browser that shows a model, and plays its motion.

    The page has a slider for each coordinate, switches for names, joint axes, centre of mass, ground and forces,
    play, pause and a slider of time, and plots of chosen torques, coordinates and sensitivities with a cursor in step.
    A click on a link chooses its joint and colours the body by the joint's column of ∂τ/∂q: which joints feel it.

    Parameters
    ----------
    model : Model
    motion : Motion, optional
        One motion of the model, to be played.
    q : array_like, shape (nq,), optional
        Posture to begin with; the motion's first, or neutral.
    loads : Loads, optional
        Forces on links, drawn as arrows: the same at all times, or one for each time of the motion.
    constraints : ConstraintSet, optional
        Contacts whose forces the motion has (:attr:`Motion.forces`), drawn as arrows.
    host : str
        Address to listen at; by default only this machine can connect.
    port : int
        0 takes one that is free.
    dark : bool
        Light on dark, to begin with; the page has a switch.

    Examples
    --------
    >>> from kinegrad import samples
    >>> with Viewer(samples.two_link()) as viewer:
    ...     viewer.set_posture([0.3, 0.5])
    ...     viewer.url.startswith("http://")
    True
    """

    def __init__(
        self,
        model: Model,
        motion: Motion | None = None,
        *,
        q: ArrayLike | None = None,
        loads: Loads | None = None,
        constraints: ConstraintSet | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        dark: bool = False,
    ) -> None:
        self.shown = Shown(model, motion, q=q, loads=loads, constraints=constraints)
        viser = need_viser()
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise InputError(f"`port` is {shown(port)}; expected a whole number from 0 to 65535")
        with _silent():
            self.server = viser.ViserServer(host=host, port=port or _free_port(host), label=model.name, verbose=False)
        self._host, self.dark = host, bool(dark)
        try:
            self._set_up(largest_force=self.shown.largest_force())
        except BaseException:
            with _silent():
                self.server.stop()
            raise

    def _set_up(self, largest_force: float) -> None:
        """Fill the page; then let time pass."""
        model, motion = self.shown.model, self.shown.motion
        self._lock = threading.RLock()
        self._q, self._v, self._a = self.shown.q, np.zeros(model.nv), np.zeros(model.nv)
        self._t = float(motion.t[0]) if motion is not None else 0.0
        self.chosen: int | None = None
        self._playing, self._closed = threading.Event(), threading.Event()
        self._began = 0.0
        self.scene = Scene(
            self.server,
            model,
            self.shown.q,
            shown=self.shown,
            postures=self.shown.postures(),
            largest_force=largest_force,
            dark=self.dark,
        )
        add_names_on_hover(self.server, model)
        self.panel = Panel(self)
        for mesh, part in zip(self.scene.meshes, self.scene.parts, strict=True):
            if part.link >= 0:
                mesh.on_click(self._chooser(part.link))
        self._look_from_the_side()
        self._show()
        self._clock = threading.Thread(target=self._tick, name="kinegrad-view-clock", daemon=True)
        self._clock.start()

    # --- what can be done with it -------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """What is shown."""
        return self.shown.model

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return f"http://{'localhost' if self._host == '127.0.0.1' else self._host}:{self.server.get_port()}"

    @property
    def q(self) -> Array:
        """The posture that is shown, (nq,)."""
        with self._lock:
            return np.array(self._q)

    @property
    def time(self) -> float:
        """The time of the motion that is shown, s."""
        return self._t

    @property
    def playing(self) -> bool:
        """Whether the motion is being played."""
        return self._playing.is_set()

    def set_posture(self, q: ArrayLike) -> None:
        """Show a posture, (nq,), at rest."""
        posture = Shown(self.model, q=q).q
        with self._lock:
            self._playing.clear()
            self._q, self._v, self._a = posture, np.zeros(self.model.nv), np.zeros(self.model.nv)
            self._show()

    def set_time(self, t: float) -> None:
        """Show the motion at a time, s."""
        if self.shown.motion is None:
            raise InputError("there is no motion whose time could be set; expected a Viewer(model, motion)")
        t = float(t)
        if not np.isfinite(t):
            raise InputError(f"`t` is {t}; expected a finite number, s")
        with self._lock:
            first, last = self.shown.motion.t[[0, -1]]
            self._t = float(np.clip(t, first, last))
            self._began = time.monotonic() - (self._t - first) / self.panel.speed
            self._q, self._v, self._a = self.shown.state(self._t)
            self._show()

    def play(self) -> None:
        """Play the motion from where it is; from its beginning at its end."""
        if self.shown.motion is None:
            raise InputError("there is no motion to play; expected a Viewer(model, motion)")
        first, last = self.shown.motion.t[[0, -1]]
        self.set_time(first if self._t >= last else self._t)
        self._playing.set()
        self.panel.refresh()

    def pause(self) -> None:
        """Hold the motion where it is."""
        self._playing.clear()
        self.panel.refresh()

    def choose(self, speed: int | None) -> None:
        """Colour the body by the column of ∂τ/∂q of a speed; as it was for None."""
        with self._lock:
            self.chosen = speed
            self._show()
            self.panel.plot()

    def speed_of(self, link: int) -> int:
        """The speed that moves a link's joint."""
        return int(self.model.layout.speed_of[link])

    def wait(self) -> None:
        """Serve until the viewer is closed, or Ctrl-C."""
        while not self._closed.wait(0.2):
            pass

    def close(self) -> None:
        """Stop the server.  May be called again."""
        if not self._closed.is_set():
            self._closed.set()
            self._playing.set()  # wakes the clock
            if self._clock is not threading.current_thread():
                self._clock.join(5)
            with _silent():
                self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- how ----------------------------------------------------------------------------------------------------

    def _chooser(self, link: int) -> Callable[[Any], None]:
        return lambda _: self.choose(self.speed_of(link))

    def _show(self) -> None:
        self.scene.pose(self._q, self.shown.arrows(self._q, None if self.shown.motion is None else self._t))
        self.scene.paint(self._feelings())
        self.panel.refresh()

    def _feelings(self) -> Array | None:
        """Colours of the links by what their torques feel of the chosen speed: red for more, blue for less."""
        if self.chosen is None:
            return None
        column = self.shown.sensitivity(self._q, self._v, self._a, self.chosen)
        largest = np.abs(column).max()
        speeds = self.model.layout.speed_of
        part = np.where(speeds < 0, 0.0, (column / largest if largest > 0 else column)[speeds])
        strength = np.sqrt(np.abs(part))[:, None]  # small ones are seen, too
        colors = (1 - strength) * GREY + strength * np.where(part[:, None] > 0, RED, BLUE)
        return self._over_joints_at_a_point(colors, strength[:, 0])

    def _over_joints_at_a_point(self, colors: Array, strength: Array) -> Array:
        """A link that is drawn shows the strongest of the joints that meet where it begins."""
        colors, strength = colors.copy(), strength.copy()
        for link in range(self.model.n):
            parent = self.model.parents[link]
            carries = parent >= 0 and self.model.mass[parent] == 0 and strength[parent] > strength[link]
            if carries:
                colors[link], strength[link] = colors[parent], strength[parent]
        return colors

    def _tick(self) -> None:
        while not self._closed.is_set():
            if not self._playing.wait(0.2):
                continue
            if self._closed.is_set():
                return
            motion = self.shown.motion
            assert motion is not None
            with self._lock:
                first, last = motion.t[[0, -1]]
                now = first + (time.monotonic() - self._began) * self.panel.speed
                if now > last and self.panel.loop:
                    now = first + (now - first) % (last - first)
                    self._began = time.monotonic() - (now - first) / self.panel.speed
                if now >= last and not self.panel.loop:
                    now = last
                    self._playing.clear()
                self._t = float(now)
                self._q, self._v, self._a = self.shown.state(self._t)
                self._show()
            time.sleep(1 / PICTURES)

    def _look_from_the_side(self) -> None:
        """So that the motion, or the model, fills most of the page; robots that look along x are seen from before."""
        up, low, high = self.scene.up, self.scene.low, self.scene.high
        side = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
        side /= np.linalg.norm(side)
        middle, half = (low + high) / 2, (high - low) / 2
        away = 0.77 * side - 0.58 * np.cross(up, side) + 0.27 * up  # a unit vector
        camera: Any = self.server.initial_camera
        right = np.cross(up, away) / np.linalg.norm(np.cross(up, away))
        axes = np.stack([right, np.cross(away, right), away], axis=-1)
        corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half @ axes
        tangent = float(np.tan(FIELD_OF_VIEW / 2))
        needed = needed_distance(corners, tangent)
        distance = ROOM * (needed or 2 * self.scene.size)
        camera.fov, camera.near, camera.far = FIELD_OF_VIEW, 1e-3 * distance, 1e2 * (distance + self.scene.size)
        camera.position = tuple(middle + distance * away)
        camera.look_at, camera.up = tuple(middle), tuple(up)
        if needed:
            fit_to_windows(self.server, corners, tangent, ROOM)


def _silent() -> contextlib.AbstractContextManager[Any]:
    """What viser prints when it starts and stops is not for the output of whoever uses this."""
    return contextlib.redirect_stdout(io.StringIO())


def _free_port(host: str) -> int:
    import socket

    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise InputError(f"`host` {shown(host)} cannot be listened at: {error.strerror or error}") from error
        return int(probe.getsockname()[1])
