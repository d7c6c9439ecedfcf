"""What ``kinegrad analyze`` writes: torques, the motion, everything labelled, and a page that needs no other file."""

from __future__ import annotations

import datetime
import io
import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import kinegrad as kg
from kinegrad import io as files
from kinegrad.papers.report.animation import animation, motion_scene
from kinegrad.papers.report.folder import unfinished_page, whole_folder
from kinegrad.papers.report.page import Page, number
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from kinegrad.recordings import Analysis, InverseKinematics

    Array = NDArray[np.float64]

__all__ = ["FILES", "write_everything"]

FILES = ("torques.sto", "torques.csv", "motion.mot", "analysis.nc", "index.html")

COLUMNS = 3
MOST = 60  # coordinates that are drawn
INK, BAND, GREY = "#1d5c96", "#9cc3e6", "#8a97a5"


def write_everything(
    out: Path, found: Analysis, kinematics: InverseKinematics | None, notes: Sequence[str], doubts: Sequence[str] = ()
) -> None:
    """Fill a folder: numbers first, then the page; notes say what was done, doubts what may be wrong."""
    model, motion = found.motion.model, found.motion
    ends = ["force" if kind == "prismatic" else "moment" for kind in model.layout.speed_kinds]
    names = tuple(f"{name}_{end}" for name, end in zip(model.speed_names, ends, strict=True))
    with whole_folder(out) as folder:
        table = files.StorageTable(motion.t, names, found.tau, title="Inverse Dynamics Generalized Forces")
        files.write_storage(folder / "torques.sto", table)
        files.write_torques(folder / "torques.csv", model, motion.t, found.tau)
        if not model.layout.balls:
            files.write_storage(folder / "motion.mot", files.coordinate_table(model, motion.t, motion.q))
        files.write_dataset(folder / "analysis.nc", found.to_xarray())
        unfinished_page(folder / "index.html", f"Torques of {model.name}")
    with whole_folder(out) as folder:
        (folder / "index.html").write_text(_page(found, kinematics, notes, doubts), encoding="utf-8")


def _page(found: Analysis, kinematics: InverseKinematics | None, notes: Sequence[str], doubts: Sequence[str]) -> str:
    model, t, errors = found.motion.model, found.motion.t, found.errors
    total = errors.total
    page = Page(
        f"Torques of {model.name}",
        f"{len(t)} instants from {t[0]:g} to {t[-1]:g} s, {model.nv} coordinates, by inverse dynamics; "
        "bands are two standard deviations.",
    )
    supplied = [i for i, name in enumerate(model.speed_names) if name not in found.residual_names]
    top = []
    for unit, what in (("N·m", "torque"), ("N", "force")):
        peaks = {i: float(np.abs(found.tau[:, i]).max()) for i in supplied if _unit(model, i) == unit}
        if peaks:
            i = max(peaks, key=peaks.__getitem__)
            top.append((f"{number(peaks[i], 3)} {unit}", f"largest {what}, of {escape(model.speed_names[i])}"))
    if kinematics is not None:
        top.append(
            (
                f"{1e3 * float(np.sqrt((kinematics.rms**2).mean())):.1f} mm",
                "from markers to the model, root mean square",
            )
        )
    if found.residual_names:
        kinds = [_unit(model, model.speed_index(name)) for name in found.residual_names]
        for unit, what in (("N", "forces"), ("N·m", "moments")):
            squares = found.residuals[:, [kind == unit for kind in kinds]] ** 2
            if squares.size:
                mean = float(np.sqrt(squares.mean()))
                top.append((f"{number(mean, 2)} {unit}", f"residual {what} at the root, root mean square"))
    page.numbers(top)
    if doubts:
        page.section("Warnings", "warnings")
        page.points([escape(text) for text in doubts])
    if len(t) > 1:
        page.section("The motion", "motion")
        page.animation(animation(motion_scene(model, t, found.motion.q), "The motion", f"{t[-1] - t[0]:.3g} s."))
    page.section("Torques", "torques")
    page.paragraph(
        "The band is twice the standard deviation by errors of measurement, masses and lengths, to first order."
    )
    driven = supplied[:MOST]
    page.figure(
        _png(_panels(model, t, found.tau, total, driven)), "Torques", "What the joints must supply, over time in s."
    )
    page.table(
        ["coordinate", "largest", "unit", "at t, s", "± measured", "± masses", "± lengths", "± in all"],
        [_row(found, i) for i in driven], "Largest torques",
        "With standard deviations at that instant, by what they come from.",
    )  # fmt: skip
    if found.residual_names:
        page.section("Residuals", "residuals")
        page.paragraph(
            "Nothing drives the root. What inverse dynamics finds there is what motion, masses and measured forces "
            "contradict each other by; within the band it is explained by their errors."
        )
        rows = [model.speed_index(name) for name in found.residual_names]
        page.figure(_png(_panels(model, t, found.tau, total, rows)), "Residuals", "At the root, over time in s.")
    page.section("Powers", "powers")
    page.figure(
        _png(_panels(model, t, found.power, None, driven, "W")), "Powers", "Torque times speed, W, over time in s."
    )
    page.section("What torques depend on", "sensitivities")
    page.paragraph("Root mean square change of each torque if one body were 1 % heavier, or one bone 1 % longer.")
    for what, slope, labels in (
        ("mass", errors.dtau_dmass, errors.body_names),
        ("length", errors.dtau_dlength, errors.bone_names),
    ):
        if labels:
            picture = _map(model, 0.01 * np.sqrt((slope[:, driven] ** 2).mean(axis=0)), labels, driven)
            page.figure(_png(picture), f"By {what}", "N·m or N for 1 %; the motion is held.")
    if kinematics is not None:
        page.section("Markers", "markers")
        far = np.sqrt(np.nanmean(kinematics.distance**2, axis=0))
        page.table(
            ["marker", "root mean square, mm", "largest, mm", "seen"],
            [[escape(name), f"{1e3 * far[k]:.1f}", f"{1e3 * np.nanmax(kinematics.distance[:, k]):.1f}",
              f"{100 * np.isfinite(kinematics.distance[:, k]).mean():.0f} %"]
             for k, name in enumerate(kinematics.marker_names)],
            "Markers", "Between where they were measured and where the model has them.",
        )  # fmt: skip
    page.section("How it was made", "made")
    made = [
        *getattr(found.motion, "made", ()),
        *(f"plate {plate.name}: on {plate.link}" for plate in found.plates),
        *notes,
    ]
    page.points([escape(line) for line in made] or ["nothing was done to the positions"])
    page.paragraph(
        "Error bars are linear propagation: independent errors of markers or coordinates at each instant through the "
        "smoothing, and independent relative errors of each body's mass and each bone's length, with the motion held."
    )
    page.about({"kinegrad": kg.__version__, "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")})
    return page.render()


def _unit(model: kg.Model, i: int) -> str:
    return "N" if model.layout.speed_kinds[i] == "prismatic" else "N·m"


def _row(found: Analysis, i: int) -> list[str]:
    k, errors, model = int(np.argmax(np.abs(found.tau[:, i]))), found.errors, found.motion.model
    bars = [getattr(errors, what)[k, i] for what in ("measured", "mass", "length", "total")]
    numbers = [number(float(x), 3) for x in bars]
    return [
        escape(model.speed_names[i]),
        number(float(found.tau[k, i]), 4),
        _unit(model, i),
        f"{found.motion.t[k]:.3f}",
        *numbers,
    ]


def _panels(
    model: kg.Model, t: Array, values: Array, error: Array | None, which: Sequence[int], unit: str | None = None
) -> Figure:
    """A small graph for each of some speeds."""
    from matplotlib.figure import Figure

    rows = max(math.ceil(len(which) / COLUMNS), 1)
    figure = Figure(figsize=(9.6, 1.75 * rows + 0.3), layout="constrained")
    for k, i in enumerate(which):
        axes: Any = figure.add_subplot(rows, COLUMNS, k + 1)
        axes.axhline(0.0, color=GREY, lw=0.6)
        if error is not None:
            axes.fill_between(t, values[:, i] - 2 * error[:, i], values[:, i] + 2 * error[:, i], color=BAND, lw=0)
        axes.plot(t, values[:, i], color=INK, lw=1.3)
        axes.set_title(f"{drawn_name(model.speed_names[i])}, {unit or _unit(model, i)}", fontsize=10, loc="left")
        axes.tick_params(labelsize=8.5)
        axes.margins(x=0)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _map(model: kg.Model, values: Array, labels: Sequence[str], rows: Sequence[int]) -> Figure:
    """Numbers as colours, torques by parameters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.9 + 0.19 * len(rows)), layout="constrained")
    axes: Any = figure.add_subplot()
    picture = axes.imshow(np.maximum(values, 1e-12), aspect="auto", cmap="Blues")
    names = [drawn_name(label.split(" of ", 1)[-1]) for label in labels]
    axes.set_xticks(range(len(labels)), names, rotation=60, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), [drawn_name(model.speed_names[i]) for i in rows], fontsize=7)
    bar = figure.colorbar(picture, ax=axes, pad=0.01)
    bar.ax.tick_params(labelsize=7)
    return figure


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return buffer.getvalue()
