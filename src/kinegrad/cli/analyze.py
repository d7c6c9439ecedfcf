"""``kinegrad analyze``: from a recorded motion, or from markers, to torques with error bars, in files and on a page."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import find_file, open_console, plain, print_section, print_torques, text_table
from kinegrad.cli.info import Strict, file_options
from kinegrad.cli.inverse_dynamics import Missing, Units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from kinegrad.io import Markers
    from kinegrad.recordings import Analysis, ForcePlate, InverseKinematics

    Array = NDArray[np.float64]

__all__ = ["analyze"]


@dataclass
class Recording:
    """What the command was given, read."""

    model: kg.Model
    t: Array
    q: Array
    plates: list[ForcePlate]
    kinematics: InverseKinematics | None = None
    notes: list[str] = field(default_factory=list)


def analyze(
    model: Annotated[str, typer.Option(metavar="MODEL", help="A file (.osim, .urdf, .xml, .toml), or a sample.")],
    motion: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded coordinates: .mot, .sto, .csv, .npz or .nc.")
    ] = None,
    markers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded markers instead: .trc or .c3d.")
    ] = None,
    marker_set: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markers of the model, if they are in a separate file (OpenSim)."),
    ] = None,
    forces: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Force plates: .mot, .sto, .c3d, or OpenSim's ExternalLoads .xml."),
    ] = None,
    foot: Annotated[
        list[str] | None,
        typer.Option(metavar="LINK", help="The link on each plate, in their order; by default the nearest foot."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLATE=FORCE,POINT,TORQUE",
            help="A plate of unusual names in .mot or .sto: what the names of its columns begin with. Repeatable. "
            "Or none: what is not recognised is no plate.",
        ),
    ] = None,
    units: Annotated[
        Units | None,
        typer.Option(help="Unit of angles in files of --motion that do not state it; by default rad."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Coordinates without a column in a CSV file: an error, or their neutral value.")
    ] = Missing.refuse,
    lowpass: Annotated[float | None, typer.Option(metavar="HZ", help="Cut-off frequency; for walking 4 to 8.")] = None,
    filter: Annotated[str, typer.Option(metavar="butterworth|opensim", help="Kind of filter.")] = "butterworth",
    up: Annotated[
        str | None,
        typer.Option(
            metavar="y|z",
            help="The axis of markers and forces that points upwards; they are turned if the model has another.",
        ),
    ] = None,
    marker_error: Annotated[
        float | None, typer.Option(metavar="M", help="Standard deviation of markers; by default estimated from them.")
    ] = None,
    coordinate_error: Annotated[
        float | None, typer.Option(metavar="RAD", help="Standard deviation of recorded coordinates, rad and m.")
    ] = None,
    mass_error: Annotated[
        float, typer.Option(metavar="PART", help="Relative standard deviation of the mass of each body.")
    ] = 0.05,
    length_error: Annotated[
        float, typer.Option(metavar="PART", help="Relative standard deviation of the length of each bone.")
    ] = 0.01,
    project_inertia: Annotated[
        bool, typer.Option("--project-inertia", help="Replace an impossible inertia by the nearest possible one.")
    ] = False,
    strict: Strict = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for all results; by default out/analyze.")
    ] = None,
) -> None:
    """Compute the torques of a recorded motion, with residuals, powers and error bars, as files and one HTML page.

    Writes torques.sto, torques.csv, analysis.nc (everything, labelled), motion.mot (as smoothed) and index.html.
    """
    from kinegrad.cli.analysis_page import FILES, write_everything
    from kinegrad.io.whole_file import check_kept
    from kinegrad.recordings import analyze_recording

    target = out or Path("out", "analyze")
    check_kept([target / name for name in FILES], [Path(model), motion, markers, marker_set, forces])
    with _collected() as doubts:
        recording = _read(
            model, motion, markers, marker_set, lambda world: _plates(world, forces, foot, columns, up), up,
            project_inertia, strict, units, missing,
        )  # fmt: skip
        found = analyze_recording(
            recording.model, recording.t, recording.q, lowpass=lowpass, filter=filter, plates=recording.plates,
            kinematics=recording.kinematics, marker_error=marker_error, coordinate_error=coordinate_error,
            mass_error=mass_error, length_error=length_error,
        )  # fmt: skip
    for text in doubts:
        open_console(stderr=True).print(f"[bold]warning:[/] {plain(text)}", soft_wrap=True)
    write_everything(target, found, recording.kinematics, recording.notes, doubts)
    _print(found, recording, target)


@contextlib.contextmanager
def _collected() -> Iterator[list[str]]:
    """Warnings of kinegrad as texts for the page; shown as usual if an error ends the work, as others are anyway."""
    texts = list[str]()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", kg.KinegradWarning)
            yield texts
    except BaseException:
        for each in caught:
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
        raise
    for each in caught:
        if not issubclass(each.category, kg.KinegradWarning):
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
        elif str(each.message) not in texts:
            texts.append(str(each.message))


def _read(
    model: str, motion: Path | None, markers: Path | None, marker_set: Path | None,
    plates_of_model: Callable[[kg.Model], list[ForcePlate]], up: str | None, project: bool, strict: bool,
    units: Units | None, missing: Missing,
) -> Recording:  # fmt: skip
    """Everything that is named; errors before any work."""
    from kinegrad import io
    from kinegrad.recordings import inverse_kinematics, turn_upright

    if (motion is None) == (markers is None):
        raise kg.InputError("expected one of `--motion FILE` (coordinates) and `--markers FILE`")
    if units is not None and motion is None:
        raise kg.InputError("`--units` is for coordinates (`--motion`); files of markers state their units")
    if motion is not None and motion.suffix.lower() in (".trc", ".c3d"):
        raise kg.InputError(f"`--motion` is {motion}, a file of markers; expected coordinates, or `--markers`")
    mechanism, types, defaults, notes = _model(model, marker_set, project, strict)
    plates = plates_of_model(mechanism)
    if up is not None and markers is None and not plates:
        raise kg.InputError("`--up` is for files of markers and forces; coordinates (`--motion`) are turned by no axis")
    if motion is not None:
        if motion.suffix.lower() in (".mot", ".sto"):
            table = io.read_storage(motion)
            unit = units and units.value
            q, held, unused = table.coordinates(mechanism, motion_types=types, defaults=defaults, units=unit)
            t = table.t
            if held:
                notes.append(f"not in {motion.name}, held at their defaults: {', '.join(held)}")
            if unused:
                notes.append(f"in {motion.name}, but no coordinate of the model: {', '.join(unused)}")
        else:
            positions = io.read_positions(motion, mechanism, units=units and units.value, missing=missing.value)
            if positions.held:
                notes.append(f"not in {motion.name}, held at their neutral values: {', '.join(positions.held)}")
            if positions.t is None:
                raise kg.InputError(f"{motion}: has no times; expected a column `t`")
            t, q = positions.t, positions.q
        return Recording(mechanism, t, q, plates, None, notes)
    assert markers is not None
    if markers.suffix.lower() == ".c3d":
        recorded = _c3d(markers, mechanism, up, plates=False)[0]
    else:
        recorded = io.read_trc(markers)
        recorded = recorded if up is None else turn_upright(mechanism, recorded, up=up)
    start = {name: value for name, value in (defaults or {}).items() if name in mechanism.coordinate_names}
    if not set(recorded.names) & {*mechanism.frames, *mechanism.link_names}:
        hint = "expected the names of its markers, or their file by --marker-set"
        raise kg.InputError(f"{markers}: no marker of it is in the model; {hint}")
    fitted = inverse_kinematics(mechanism, recorded, start=start)
    if not fitted.success:
        notes.append(f"inverse kinematics: {fitted.message}")
    if fitted.unused:
        notes.append(f"markers that the model does not have: {', '.join(fitted.unused)}")
    return Recording(mechanism, fitted.t, fitted.q, plates, fitted, notes)


def _model(
    name: str, marker_set: Path | None, project: bool, strict: bool
) -> tuple[kg.Model, Mapping[str, str] | None, Mapping[str, float] | None, list[str]]:
    """The model, motion types and defaults of its coordinates (OpenSim), and what is to be known of it."""
    osim = name.lower().endswith(".osim")
    if marker_set is not None and not osim:
        raise kg.InputError("`--marker-set` is for .osim models; expected none")
    options = file_options(None, False, False, project, strict)
    if osim:
        options |= {"locked": "free", "markers": marker_set}
    try:
        file = find_file(name, **options)
    except kg.FileError as error:
        said = [text.replace("use --massless", "use kinegrad convert --massless") for text in error.problems]
        raise kg.FileError(error.path, said) from None
    if file is None:
        return kg.samples.SAMPLES[name](), None, None, []
    notes = [f"not in the model: {what}" for what in file.report.left_out]
    notes += [repair.text for repair in file.report.repairs]
    if file.constraints.m:
        notes.append(f"not held, and without forces: constraints {', '.join(file.constraints.names)}")
    return file.model, getattr(file, "motion_types", None), getattr(file, "defaults", None), notes


def _c3d(path: Path, model: kg.Model, up: str | None, *, plates: bool) -> tuple[Markers, list[ForcePlate]]:
    """A C3D file in the world of a model, as if `up` were its vertical axis unless it is given."""
    from kinegrad.recordings import read_c3d, turn_upright
    from kinegrad.recordings.upright import up_axis

    vertical = up_axis(model)
    markers, found = read_c3d(path, up=up or (vertical if vertical == "z" else "y"), plates=plates)
    if vertical != "z":
        return markers, found
    return turn_upright(model, markers, up="y"), [turn_upright(model, plate, up="y") for plate in found]


def _plates(
    model: kg.Model, forces: Path | None, foot: list[str] | None, columns: list[str] | None, up: str | None
) -> list[ForcePlate]:
    import dataclasses

    from kinegrad import io
    from kinegrad.recordings import plates_of, read_external_loads, turn_upright

    if forces is None:
        for name, given in (("--foot", foot), ("--columns", columns)):
            if given:
                raise kg.InputError(f"`{name}` is given without `--forces`; expected both, or neither")
        return []
    kind = forces.suffix.lower()
    if columns and kind in (".xml", ".c3d"):
        raise kg.InputError(f"`--columns` is for forces in .mot and .sto files; {forces} names its columns itself")
    if kind == ".xml":
        plates = read_external_loads(forces)
    elif kind == ".c3d":
        plates = _c3d(forces, model, up, plates=True)[1]
    else:
        plates = plates_of(io.read_storage(forces, missing=True), columns=_mapped(columns) if columns else None)
    if up is not None and kind != ".c3d":
        plates = [turn_upright(model, plate, up=up) for plate in plates]
    if not plates:
        raise kg.InputError(f"`--forces` is {forces}, which has no force plates; expected a file with some, or none")
    if foot and len(foot) != len(plates):
        names = ", ".join(repr(plate.name) for plate in plates)
        raise kg.InputError(f"`--foot` is given {len(foot)} times; {forces} has {len(plates)} plates: {names}")
    return [dataclasses.replace(plate, link=link) for plate, link in zip(plates, foot, strict=True)] if foot else plates


def _mapped(columns: list[str]) -> dict[str, dict[str, str]]:
    """``PLATE=FORCE,POINT,TORQUE`` as `columns` of plates_of."""
    found = dict[str, dict[str, str]]()
    for text in [] if columns == ["none"] else columns:
        plate, equals, names = text.partition("=")
        parts = [part.strip() for part in names.split(",")]
        if not (plate and equals and len(parts) in (2, 3) and all(parts)):
            expected = "expected PLATE=FORCE,POINT or PLATE=FORCE,POINT,TORQUE"
            raise kg.InputError(f"`--columns` is {text!r}; {expected}, by what the names of columns begin with")
        if plate in found:
            raise kg.InputError(f"`--columns` has plate {plate!r} twice; expected once")
        found[plate] = dict(zip(("force", "point", "torque"), parts, strict=False))
    return found


def _print(found: Analysis, recording: Recording, target: Path) -> None:
    import numpy as np

    console, model = open_console(), recording.model
    for line in (*recording.notes, *getattr(found.motion, "made", ())):
        console.print(plain(line), soft_wrap=True)
    for plate in found.plates:
        console.print(plain(f"plate {plate.name}: on {plate.link}"))
    if recording.kinematics is not None:
        fit = recording.kinematics
        console.print(f"markers: {1e3 * float(np.sqrt((fit.rms**2).mean())):.2f} mm root mean square")
    print_torques(console, model, found.motion.t, found.tau)
    if found.residual_names:
        table = text_table(["at the root, where nothing drives"], ["root mean square", "largest", "unit"])
        for name, x in zip(found.residual_names, found.residuals.T, strict=True):
            unit = "N" if model.layout.speed_kinds[model.speed_index(name)] == "prismatic" else "N·m"
            table.add_row(plain(name), f"{np.sqrt((x * x).mean()):.4g}", f"{np.abs(x).max():.4g}", unit)
        print_section(console, "residuals", table)
    console.print(f"page: {plain(target / 'index.html')}", soft_wrap=True)
