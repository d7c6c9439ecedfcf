"""``kinegrad analyze``: from files to files and a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad.cli.program import app
from kinegrad.io import Markers, StorageTable, read_storage, read_trc, write_storage, write_trc
from kinegrad.io.opensim import read
from tests.io.opensim.files import EVERYTHING, J, new_layout
from tests.recordings.synthetic_walk import synthetic_walk

MARKER = (
    '<Marker name="{0}{1}"><socket_parent_frame>/bodyset/{0}</socket_parent_frame><location>{2}</location></Marker>'
)


def recorded(folder: Path) -> None:
    """A body on a leg and a foot; its motion, its markers, and the forces on its foot."""
    joints = [EVERYTHING[0], J("PinJoint", "leg", "pelvis", ("hip",)), J("PinJoint", "foot", "leg", ("ankle",))]
    rng = np.random.default_rng(0)
    places = {(j.body, k): " ".join(f"{x:.2f}" for x in rng.uniform(-0.2, 0.2, 3)) for j in joints for k in range(3)}
    markers = "".join(MARKER.format(body, k, place) for (body, k), place in places.items())
    muscle = '<ForceSet><objects><Thelen2003Muscle name="soleus"/></objects></ForceSet>'
    (folder / "m.osim").write_text(new_layout(joints, muscle, markers=markers))
    file = read(folder / "m.osim")
    t = np.arange(60) / 60
    q = 0.2 * np.sin(2 * np.pi * np.outer(t, np.linspace(0.5, 1.5, file.model.nq)))
    turns = [kind != "prismatic" for kind in file.model.layout.coordinate_kinds]
    names = (*file.model.coordinate_names, "something_else")
    values = np.column_stack([np.where(turns, np.rad2deg(q), q), t])
    write_storage(folder / "walk.mot", StorageTable(t, names, values, in_degrees=True))
    x = kg.point_motion(file.model, q, link=list(file.markers.values())).position
    write_trc(folder / "walk.trc", Markers(t, tuple(file.markers), x + 0.001 * rng.normal(size=x.shape)))
    at = kg.forward_kinematics(file.model, q).at(file.model, "foot").transform[:, :3, 3]
    columns = np.column_stack([np.zeros(60), 100 + 40 * t, np.zeros(60), at, np.zeros((60, 3))])
    forces = tuple(f"ground_{a}{b}" for a in ("force_v", "force_p", "torque_") for b in "xyz")
    write_storage(folder / "grf.mot", StorageTable(t, forces, columns))


def run(folder: Path, *options: str) -> tuple[int, str]:
    given = ["analyze", "--model", str(folder / "m.osim"), "--out", str(folder / "out"), *options]
    result = CliRunner().invoke(app, given)
    return result.exit_code, result.output


@pytest.mark.parametrize("source", ["--motion", "--markers"])
def test_everything_is_written(tmp_path: Path, source: str) -> None:
    recorded(tmp_path)
    file = "walk.mot" if source == "--motion" else "walk.trc"
    code, text = run(tmp_path, source, str(tmp_path / file), "--forces", str(tmp_path / "grf.mot"), "--lowpass", "6")
    assert code == 0, text
    assert "plate ground_force_: on foot" in text
    assert "residuals" in text
    assert "not in the model: 1 × force" in text
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == [
        "analysis.nc",
        "index.html",
        "motion.mot",
        "torques.csv",
        "torques.sto",
    ]
    table = read_storage(out / "torques.sto")
    with xarray.open_dataset(out / "analysis.nc", engine="h5netcdf") as data:
        assert np.array_equal(data["tau"].sel(joint="hip").values, table.column("hip_moment"))
        bars = data["tau_error_total"].sel(joint="ankle").values
    assert (bars > 0).all()
    page = (out / "index.html").read_text()
    assert page.count("data:image/png;base64,") >= 4
    assert 'src="http' not in page
    if source == "--motion":
        assert "no coordinate of the model: something_else" in text
        model = kg.io.read_model(tmp_path / "m.osim").model
        given = read_storage(tmp_path / "walk.mot")
        motion = kg.recordings.motion_from_positions(model, given.t, given.coordinates(model)[0], lowpass=6)
        plates = kg.recordings.plates_of(read_storage(tmp_path / "grf.mot"), {"ground_force_": "foot"})
        loads = kg.recordings.plate_loads(model, motion.q, [plate.at(motion.t) for plate in plates])
        tau = kg.inverse_dynamics(model, motion.q, motion.v, motion.a, loads=loads)
        assert np.array_equal(tau, table.values)


def test_the_same_from_c3d(tmp_path: Path) -> None:
    """Markers and a plate of a file in mm whose z is up: the torques of .trc and .mot, to single precision."""
    ezc3d = pytest.importorskip("ezc3d")
    recorded(tmp_path)
    markers, count = read_trc(tmp_path / "walk.trc"), 60
    t, turn = markers.t, np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # from y up to z up
    force = np.column_stack([10 * np.sin(t), 100 + 40 * t, 5 * np.cos(t)])
    point = np.column_stack([0.1 * t, np.zeros(count), 0.05 - 0.1 * t])
    names = tuple(f"ground_{a}{b}" for a in ("force_v", "force_p", "torque_") for b in "xyz")
    values = np.column_stack([force, point, np.zeros((count, 3))])
    write_storage(tmp_path / "grf.mot", StorageTable(t, names, values))
    file, axes = ezc3d.c3d(), np.diag([1.0, -1, -1])  # of the plate: z is down
    points, analog, plate = (file["parameters"][x] for x in ("POINT", "ANALOG", "FORCE_PLATFORM"))
    points["RATE"]["value"], points["UNITS"]["value"] = [60], ["mm"]
    points["LABELS"]["value"] = markers.names
    file["data"]["points"] = np.ones((4, len(markers.names), count))
    file["data"]["points"][:3] = 1000 * (markers.position @ turn.T).transpose(2, 1, 0)
    analog["RATE"]["value"], analog["LABELS"]["value"] = [60], tuple("abcdef")
    analog["UNITS"]["value"] = ("N", "N", "N", "mm", "mm", "Nmm")
    at = 1000 * (point @ turn.T @ axes)[:, :2]
    file["data"]["analogs"] = np.column_stack([force @ turn.T @ axes, at, np.zeros(count)]).T[None]
    plate["USED"]["value"], plate["TYPE"]["value"] = np.array([1]), np.array([1])
    plate["CHANNEL"]["value"] = np.arange(1, 7)[:, None]
    corners = np.array([[200.0, 300, 0], [-200, 300, 0], [-200, -300, 0], [200, -300, 0]])
    plate["CORNERS"]["value"] = (corners @ axes).T[:, :, None]
    plate["ORIGIN"]["value"] = np.zeros((3, 1))
    file.write(str(tmp_path / "walk.c3d"))
    found = []
    for seen, forces in (("walk.trc", "grf.mot"), ("walk.c3d", "walk.c3d")):
        given = "--markers", str(tmp_path / seen), "--forces", str(tmp_path / forces), "--foot", "foot", "--up", "z"
        code, text = run(tmp_path, *given[: 6 if seen == "walk.trc" else 8], "--lowpass", "6")
        assert code == 0, text
        found.append(read_storage(tmp_path / "out" / "torques.sto").values)
    assert np.abs(found[1] - found[0]).max() < 1e-4 * np.abs(found[0]).max()


def test_a_plate_of_unknown_names(tmp_path: Path) -> None:
    """A walk on two plates, one of which has names of its own: an error with these; mapped, the torques are right."""
    walk = synthetic_walk()
    walk.write(tmp_path)
    table = walk.forces(("Kraft_", "1_ground_force_"))
    names = tuple(
        name.replace("Kraft_v", "K.").replace("Kraft_p", "O.").replace("Kraft_", "D.") for name in table.names
    )
    write_storage(tmp_path / "grf.mot", StorageTable(table.t, (*names, "sync"), np.c_[table.values, table.t]))
    given = "--motion", str(tmp_path / "walk.mot"), "--forces", str(tmp_path / "grf.mot")
    code, text = run(tmp_path, *given)
    assert code == 2
    assert "belong to no plate that is found ('1_ground_force_')" in " ".join(text.split())
    assert "--columns PLATE=FORCE,POINT,TORQUE" in " ".join(text.split())
    code, text = run(tmp_path, *given, "--columns", "right=K.,O.,D.")
    assert code == 0, text
    assert "plate right: on calcn_r" in text
    assert "no plate uses: 'sync'" in text
    assert "no plate uses: &#x27;sync&#x27;" in (tmp_path / "out" / "index.html").read_text()
    found = read_storage(tmp_path / "out" / "torques.sto").values
    assert np.abs(found - walk.motion.tau).max() < 1e-9 * np.abs(walk.motion.tau).max()
    code, text = run(tmp_path, *given, "--columns", "none")
    assert (code, "no plate uses: 'K.x'" in text, "is a plate missing" in text) == (0, True, True), text


def test_hidden_markers_are_said_with_times(tmp_path: Path) -> None:
    """In the command and on the page; bars of the ankle are wider there."""
    walk = synthetic_walk()
    x = walk.noisy().position.copy()
    x[25:55, [name.startswith("calcn_r") for name in walk.markers.names]] = np.nan
    walk.write(tmp_path, Markers(walk.markers.t, walk.markers.names, x))
    files = "--markers", str(tmp_path / "walk.trc"), "--forces", str(tmp_path / "grf.xml")
    code, text = run(tmp_path, *files, "--lowpass", "6", "--mass-error", "0", "--length-error", "0")
    assert code == 0, text
    for said in (" ".join(text.split()), (tmp_path / "out" / "index.html").read_text().replace("&#x27;", "'")):
        assert "markers do not determine 'ankle_angle_r' from 0.25 to 0.54 s: its errors there are taken to be" in said
    with xarray.open_dataset(tmp_path / "out" / "analysis.nc", engine="h5netcdf") as data:
        bars = data["tau_error_total"].sel(joint="subtalar_angle_r").values
    assert bars[35:45].max() > 5 * bars[90:].max()


def test_another_axis_is_up(tmp_path: Path) -> None:
    """Files with z upwards and --up z: the torques of those with y upwards; without it, doubts in command and page."""
    walk, options = synthetic_walk(), ("--lowpass", "6")
    walk.write(tmp_path)
    sources = {"trc": ("--markers", str(tmp_path / "walk.trc")), "mot": ("--motion", str(tmp_path / "walk.mot"))}
    forces = "--forces", str(tmp_path / "grf.mot")
    code, text = run(tmp_path, *sources["trc"], *forces, *options)
    assert (code, "warning" in text) == (0, False), text
    right = read_storage(tmp_path / "out" / "torques.sto").values

    def on_side(x: np.ndarray) -> np.ndarray:
        return np.stack([x[..., 0], -x[..., 2], x[..., 1]], axis=-1)

    write_trc(tmp_path / "walk.trc", Markers(walk.markers.t, walk.markers.names, on_side(walk.markers.position)))
    table = walk.forces()
    three = on_side(table.values.reshape(len(table.t), -1, 3)).reshape(table.values.shape)
    write_storage(tmp_path / "grf.mot", StorageTable(table.t, table.names, three))
    code, text = run(tmp_path, *sources["trc"], *forces, *options, "--up", "z")
    assert (code, "warning" in text) == (0, False), text
    assert np.abs(read_storage(tmp_path / "out" / "torques.sto").values - right).max() < 1e-6 * np.abs(right).max()
    code, text = run(tmp_path, *sources["mot"], *forces, "--up", "z")  # coordinates have no axes; forces are turned
    assert (code, "warning" in text) == (0, False), text
    for source in sources.values():
        code, text = run(tmp_path, *source, *forces, *options)
        assert code == 0, text
        page = (tmp_path / "out" / "index.html").read_text()
        for said in (" ".join(text.split()), page):
            assert "is 90° from the vertical of the model" in said
            assert ("'pelvis' is turned by 90° from upright" in said.replace("&#x27;", "'")) == (
                "walk.trc" in source[1]
            )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--motion", "walk.mot", "--up", "z"], "`--up` is for files of markers and forces"),
        (["--markers", "walk.trc", "--up", "x"], "`up` is 'x'; expected 'y' or 'z'"),
        ([], "expected one of `--motion FILE` (coordinates) and `--markers FILE`"),
        (["--markers", "walk.trc", "--units", "deg"], "`--units` is for coordinates (`--motion`)"),
        (["--motion", "walk.mot", "--units", "rad"], "`units` is 'rad', and the table has degrees (inDegrees=yes)"),
        (["--motion", "nothing.mot"], "nothing.mot: cannot be read"),
        (["--motion", "walk.trc"], "`--motion` is walk.trc, a file of markers; expected coordinates, or `--markers`"),
        (["--markers", "other.trc"], "other.trc: no marker of it is in the model; expected the names of its markers"),
        (["--motion", "walk.mot", "--filter", "magic"], "`filter` is 'magic'"),
        (["--motion", "walk.mot", "--foot", "foot"], "`--foot` is given without `--forces`"),
        (["--motion", "walk.mot", "--columns", "a=b,c"], "`--columns` is given without `--forces`"),
        (["--motion", "walk.mot", "--forces", "grf.xml", "--columns", "a=b,c"], "`--columns` is for forces in .mot"),
        (["--motion", "walk.mot", "--forces", "grf.mot", "--columns", "a=b"], "`--columns` is 'a=b'; expected PLATE="),
        (["--motion", "walk.mot", "--forces", "grf.mot", "--foot", "a", "--foot", "b"], "`--foot` is given 2 times"),
        (["--motion", "walk.mot", "--forces", "grf.mot", "--foot", "foo"], "did you mean 'foot'"),
        (["--motion", "walk.mot", "--lowpass", "50"], "expected less than 30 Hz"),
        (["--motion", "walk.mot", "--mass-error", "2"], "`mass_error` is 2"),
    ],
)
def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str) -> None:
    recorded(tmp_path)
    write_trc(tmp_path / "other.trc", Markers([0.0, 0.1], ("unknown",), np.zeros((2, 1, 3))))
    monkeypatch.chdir(tmp_path)
    code, text = run(tmp_path, *options)
    assert (code, sentence in " ".join(text.split())) == (2, True), text
    assert not (tmp_path / "out").exists()


def test_impossible_inertias_name_the_option(tmp_path: Path) -> None:
    recorded(tmp_path)
    path = tmp_path / "m.osim"
    path.write_text(path.read_text().replace("0.03 0.04 0.05 0.001 -0.002 0.003", "0.0001 0.0002 0.001 0 0 0"))
    code, said = run(tmp_path, "--motion", str(tmp_path / "walk.mot"))
    assert code != 0
    assert "or use --project-inertia for the nearest" in " ".join(said.split())
    code, said = run(tmp_path, "--motion", str(tmp_path / "walk.mot"), "--project-inertia")
    assert code == 0, said
    path.write_text(path.read_text().replace("0.0001 0.0002 0.001 0 0 0", "0.03 0.03 0.0606 0 0 0"))
    code, said = run(tmp_path, "--motion", str(tmp_path / "walk.mot"))
    assert (code, "the nearest possible one was taken" in " ".join(said.split())) == (0, True)
    assert run(tmp_path, "--motion", str(tmp_path / "walk.mot"), "--strict")[0] == 2


def test_angles_in_degrees_of_a_csv_file(tmp_path: Path) -> None:
    """A CSV file does not say its units: --units does; columns that are missing are held if --missing allows it."""
    recorded(tmp_path)
    model, table = read(tmp_path / "m.osim").model, read_storage(tmp_path / "walk.mot")
    given = [name for name in model.coordinate_names if name != "ankle"]
    columns = [table.values[:, table.names.index(name)] for name in given]
    header = ",".join(["time", *given])
    np.savetxt(tmp_path / "walk.csv", np.column_stack([table.t, *columns]), delimiter=",", header=header, comments="")
    at_rest = StorageTable(table.t, tuple(given), np.column_stack(columns), in_degrees=True)
    write_storage(tmp_path / "walk.mot", at_rest)
    code, text = run(tmp_path, "--motion", str(tmp_path / "walk.csv"), "--units", "deg")
    assert (code, "ankle" in text) == (2, True), text
    found = []
    for name, options in (("walk.mot", []), ("walk.csv", ["--units", "deg", "--missing", "neutral"])):
        code, text = run(tmp_path, "--motion", str(tmp_path / name), *options)
        assert code == 0, text
        assert f"not in {name}, held at their" in text
        found.append(read_storage(tmp_path / "out" / "torques.sto").values)
    assert np.abs(found[1] - found[0]).max() < 1e-9 * np.abs(found[0]).max()


def test_degrees_taken_for_radians_are_noted(tmp_path: Path) -> None:
    recorded(tmp_path)
    path = tmp_path / "walk.mot"
    code, said = run(tmp_path, "--motion", str(path))
    assert code == 0
    assert "inDegrees" not in said
    table = read_storage(path)
    write_storage(path, StorageTable(table.t, table.names, 10 * table.values, in_degrees=False))
    code, said = run(tmp_path, "--motion", str(path))
    assert code == 0
    assert "which looks like degrees, and the file says radians (inDegrees=no)" in " ".join(said.split())


def test_degrees_of_opensim_1(tmp_path: Path) -> None:
    """A sentence in the header, and --units of a header that says nothing, are as good as inDegrees=yes."""
    recorded(tmp_path)
    path, found = tmp_path / "walk.mot", []
    good = path.read_text()
    sentence = good.replace("version=1\n", "").replace("inDegrees=yes", "Angles are in degrees.")
    for text, options in ((good, []), (sentence, []), (good.replace("inDegrees=yes\n", ""), ["--units", "deg"])):
        path.write_text(text)
        code, said = run(tmp_path, "--motion", str(path), *options)
        assert (code, "warning" in said) == (0, False), said
        found.append(read_storage(tmp_path / "out" / "torques.sto").values)
    assert np.array_equal(found[1], found[0])
    assert np.array_equal(found[2], found[0])


def test_no_file_that_is_read_is_written_over(tmp_path: Path) -> None:
    """Results are put where the recording is, under its name."""
    recorded(tmp_path)
    (tmp_path / "walk.mot").rename(tmp_path / "motion.mot")
    before = (tmp_path / "motion.mot").read_bytes()
    code, text = run(tmp_path, "--motion", str(tmp_path / "motion.mot"), "--out", str(tmp_path))
    assert code == 2
    assert "motion.mot: is read, and would be written over" in " ".join(text.split())
    assert (tmp_path / "motion.mot").read_bytes() == before
    assert not (tmp_path / "index.html").exists()


def test_numbers_are_there_before_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a picture cannot be drawn, the work of minutes is not lost."""
    import kinegrad.cli.analysis_page as module

    def broken(*_: object) -> None:
        raise RuntimeError("no picture")

    recorded(tmp_path)
    monkeypatch.setattr(module, "_panels", broken)
    result = CliRunner().invoke(
        app,
        ["analyze", "--model", f"{tmp_path}/m.osim", "--motion", f"{tmp_path}/walk.mot", "--out", f"{tmp_path}/out"],
    )
    assert str(result.exception) == "no picture"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(module.FILES)
    assert "was not finished" in (tmp_path / "out" / "index.html").read_text()


NASTY = r"""a $\foo$ 100 % _{x}^2 <b>&amp;"'</script><img src=x onerror=alert(1)> """ + "long " * 30 + "$"


def test_names_of_any_letters_are_drawn_and_written(tmp_path: Path) -> None:
    """Dollars, TeX, HTML, an underscore in front, and lengths beyond any figure."""
    names = (NASTY, "_hidden", "$", "x$y$", "]]>", "{}", r"\alpha", "%s")
    builder, parent = kg.ModelBuilder(NASTY), None
    for name in names:
        body = kg.Inertia.rod(1, [0, 0, 0], [0.3, 0, 0])
        builder.add(name, parent, kg.revolute("z"), link=f"{name} link", inertia=body, placement=[0.3, 0, 0])
        parent = f"{name} link"
    model, t = builder.build(), np.linspace(0, 0.5, 51)
    q = 0.1 * np.sin(t)[:, None] * np.ones(len(names))
    kg.save(model, tmp_path / "m.toml")
    kg.io.write_trajectory(tmp_path / "m.csv", model, t, q, 0 * q, 0 * q)
    given = ["--model", str(tmp_path / "m.toml"), "--motion", str(tmp_path / "m.csv"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["analyze", *given])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert page.count("</script>") == page.count("<script")
    with xarray.open_dataset(tmp_path / "out" / "analysis.nc", engine="h5netcdf") as data:
        assert data["joint"].values.tolist() == list(names)
