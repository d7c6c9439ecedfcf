"""[zhakatayev2023] reproduced: the numbers it finds, the page it writes, and that nothing half-done stays behind."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from kinegrad import InputError, cli
from kinegrad.papers import zhakatayev2023
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.folder import whole_folder
from kinegrad.papers.report.page import Page
from kinegrad.papers.zhakatayev2023 import experiment as zhakatayev2023_experiment
from kinegrad.papers.zhakatayev2023.jacobianest import jacobianest
from kinegrad.plot.skeleton import joint_points
from tests.papers.quoted import missing, numbers_of


@pytest.fixture(scope="module", autouse=True)
def _cheaper():
    """Coarse pictures, times taken once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_page, "DPI", 40)
        patch.setattr(zhakatayev2023_experiment, "REPEATS", 1)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One quick run at 13 instants, the stages it reported, and its folder."""
    out = tmp_path_factory.mktemp("papers") / "new" / "zhakatayev2023"
    stages = []
    report = zhakatayev2023.reproduce(
        out, quick=True, progress=lambda *stage: stages.append(stage), instants=13, adaptive_instants=2
    )
    return report, stages, out


@pytest.fixture(scope="module")
def results(run):
    return json.loads(run[0].results.read_text(encoding="utf-8"))


# --- numbers ------------------------------------------------------------------------------------------------


def test_topology_makes_1102_entries_exactly_zero(results):
    # 43 joints: 747 pairs (i, j) of which one is above the other or both are the same; 43² − 747
    assert (results["entries"], results["zeros"], results["zeros_exact"]) == (1849, 1102, True)
    assert all(row["at_zeros"] == 0 for row in results["matrices"])


@pytest.mark.parametrize(
    ("method", "instants", "tolerance"),
    [
        ("forward", 13, 1e-6),  # of the largest entry: √ε with a curvature of order one
        ("central", 13, 1e-9),  # ε^(2/3)
        ("numdifftools", 2, 1e-11),
        ("jacobianest_elsewhere", 6, 1e-11),
    ],
)
def test_numerical_and_analytic_derivatives_agree(results, method, instants, tolerance):
    rows = [row for row in results["matrices"] if row["method"] == method]
    assert [row["by"] for row in rows] == ["q", "v", "a"]
    for row in rows:
        assert row["instants"] == instants
        assert 0 < row["median"] < row["largest"] < tolerance * row["largest_value"]


def test_the_six_curves_agree_but_for_the_steps_in_proportion_to_q(results):
    entries = {(row["torque"], row["by"], row["joint"]) for row in results["curves"]}
    assert entries == {(20, "q", 5), (30, "v", 25), (42, "a", 22), (18, "q", 14), (18, "v", 14), (18, "a", 14)}
    broken = [row for row in results["curves"] if row["largest"] > 1e-9 * max(1, row["largest_value"])]
    assert {(row["torque"], row["by"], row["joint"], row["method"]) for row in broken} == {
        (18, "q", 14, "jacobianest"),
        (18, "a", 14, "jacobianest"),
    }


def test_spikes_come_from_coordinates_that_are_nearly_zero(results):
    first, *others = results["spikes"]
    assert first["coordinate"] == 0
    assert first["jacobianest"] == pytest.approx(first["exact"], rel=1e-11)
    for spike in others:
        assert 0 < abs(spike["coordinate"]) < 1e-15
        assert spike["jacobianest"] == 0
        assert spike["exact"] == pytest.approx(first["exact"], rel=1e-11)
        assert spike["numdifftools"] == pytest.approx(spike["exact"], rel=1e-11)
        assert spike["jacobianest_at_zero"] == pytest.approx(spike["exact"], rel=1e-11)
    assert "numdifftools does not break down" in results["spike_statement"]
    assert "the step rule of jacobianest breaks down" in results["spike_statement"]


def test_what_differs_from_figures_5_and_6_is_said(run, results):
    """Which torque vanishes, with rods and with cylinders; and spikes at all half seconds, not at two."""
    found = results["disagreements"]
    knee, ankle = found["rods"]
    assert knee == pytest.approx(245.62, abs=0.01)
    assert abs(ankle) < 1e-12
    assert found["cylinders"] == pytest.approx([245.6, -0.0251], rel=0.01)
    assert found["shifts"]  # by 2, among others: but then an entry of figure 4 is zero
    assert all(found["shifts"].values())
    assert found["seen"] == {"q": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0], "v": [], "a": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]}
    assert found["summed"] == found["seen"]
    text = re.sub(r"<[^>]*>", "", run[0].page.read_text(encoding="utf-8"))
    assert "Here it is the other way round: Q18 = 245.6 N·m, and Q20" in text
    assert "show the same instants. Nothing that was tried leaves two" in text


def test_times_are_labelled_by_what_was_measured(results):
    rows = {(row["what"].split(",")[0].split(":")[0], row["threads"]): row for row in results["timings"]}
    assert all(row["seconds"] > 0 for row in results["timings"])
    assert {threads for name, threads in rows if name == "analytic"} == {1, 2}
    assert rows["numdifftools", None]["measured"] == 2
    assert rows["central differences", None]["evaluations"] == 3 * 2 * 43
    quoted = [row["seconds"] for row in results["timings"] if not row["measured"]]
    assert quoted == [16.6e-3, 2.62e5]  # [zhakatayev2023] section 6


def test_rms_file_has_every_entry(run):
    with run[0].rms.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 1849
    zero = [row for row in rows if row["topological_zero"] == "1"]
    assert len(zero) == 3 * 1102
    assert all(float(row["rms_central"]) == 0 for row in zero)


@pytest.mark.slow
def test_a_second_run_differs_in_times_only(run, results, tmp_path):
    report = zhakatayev2023.reproduce(tmp_path, quick=True, instants=13, adaptive_instants=2)
    again = json.loads(report.results.read_text(encoding="utf-8"))
    for name in results.keys() - {"timings", "about"}:
        assert again[name] == results[name], name
    for path, old in zip(report.figures, run[0].figures, strict=True):
        assert path.read_bytes() == old.read_bytes(), path.name


def test_progress_goes_to_the_end(run):
    last = {stage: (done, total) for stage, done, total in run[1]}
    assert len(last) >= 6
    assert all(done == total for done, total in last.values())


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(run):
    html = run[0].page.read_text(encoding="utf-8")
    assert html.count('class="animation"') == 1  # the human
    assert not re.search(r"https?:|//\w|<script src|<link|@import|url\(", re.sub(r"base64,[^\"]*", "", html))
    sources = re.findall(r'(?:src|href)="([^"]{1,30})', html)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    for anchor in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{anchor}"' in html


def test_the_page_says_what_breaks_down_and_what_made_it(run):
    report, _, _ = run
    html = report.page.read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", html)
    assert "numdifftools does not break down" in text
    assert "the step rule of jacobianest breaks down" in text
    assert "1102 of 1849" in text
    assert "scaled to 13 instants from 2" in text
    for fact in ("command", "date", "processor", "versions"):
        assert report.about[fact] in text
    assert [int(k) for k in re.findall(r"<b>Figure (\d+)\.", html)] == list(range(1, 10))


def test_the_documentation_quotes_the_page(run):
    assert numbers_of("zhakatayev2023") == ["1102", "1849", "198", "245.6"]
    assert missing("zhakatayev2023", run[0].page.read_text(encoding="utf-8")) == []


def test_figures_are_files_too(run):
    report, _, out = run
    assert {path.name for path in out.iterdir()} == {
        "index.html",
        "results.json",
        "rms.csv",
        *(path.name for path in report.figures),
    }
    assert len(report.figures) == 9
    for path in report.figures:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_texts_are_escaped():
    page = Page("<a & b>", "lead")
    page.section("x < y", "x")
    page.about({"<k>": "<v>"})
    html = page.render()
    assert "<a & b>" not in html
    assert "<k>" not in html
    assert "x &lt; y" in html


# --- interrupted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["figures 4 and 5", "central differences", "page"])
def test_ctrl_c_leaves_nothing(tmp_path, stage):
    def interrupt(what, done, total):
        if what == stage and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zhakatayev2023.reproduce(
            tmp_path / "deep" / "out", quick=True, progress=interrupt, instants=7, adaptive_instants=1
        )
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_keeps_what_was_there(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("old")

    def fail():
        with whole_folder(tmp_path / "out") as folder:
            (folder / "a.txt").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [path.read_text() for path in tmp_path.rglob("*.txt")] == ["old"]
    with whole_folder(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("new")
    assert [path.read_text() for path in tmp_path.rglob("*.txt")] == ["new"]


def test_arguments_are_checked(tmp_path):
    with pytest.raises(InputError, match=r"`instants` is 300; expected 7, 13, 19"):
        zhakatayev2023.reproduce(tmp_path, instants=300)
    with pytest.raises(InputError, match=r"`adaptive_instants` is 0; expected 1 to 7"):
        zhakatayev2023.reproduce(tmp_path, instants=7, adaptive_instants=0)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        zhakatayev2023.reproduce(tmp_path / "file")


# --- the parts ----------------------------------------------------------------------------------------------


def test_jacobianest_is_exact_for_smooth_functions_and_takes_columns():
    def function(x):
        return np.stack([np.sin(x[:, 0]) * x[:, 1], np.exp(0.01 * x[:, 2]), x[:, 0] * x[:, 2]], axis=1)

    x = np.array([0.3, -1.2, 0.0])
    expected = [[np.cos(0.3) * -1.2, np.sin(0.3), 0], [0, 0, 0.01], [0, 0, 0.3]]
    np.testing.assert_allclose(jacobianest(function, x), expected, atol=1e-10)
    np.testing.assert_array_equal(jacobianest(function, x, [2, 0]), jacobianest(function, x)[:, [2, 0]])


def test_pinocchio_takes_the_same_derivatives():
    pin = pytest.importorskip("pinocchio")
    import kinegrad as kg
    from kinegrad.compare.pinocchio_model import pinocchio_model

    model = kg.samples.human43()
    q, v, a = np.random.default_rng(5).normal(size=(3, model.n))
    twin = pinocchio_model(model)
    data = twin.createData()  # what it returns are views into it
    theirs = pin.computeRNEADerivatives(twin, data, q, v, a)
    ours = kg.inverse_dynamics_derivatives(model, q, v, a)
    np.testing.assert_allclose(ours.dtau_dq, theirs[0], atol=1e-10)
    np.testing.assert_allclose(ours.dtau_dv, theirs[1], atol=1e-10)


def test_human_joints_meet_at_16_points():
    import kinegrad as kg

    points = joint_points(kg.samples.human43())
    assert sorted(i for joints in points for i in joints) == list(range(43))
    assert len(points) == 16  # pelvis, neck; hip, knee, ankle, toes, shoulder, elbow, wrist of each side
    assert points[0] == (0, 1, 2, 3, 4, 5, 13, 21)


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_prints_tables_and_the_page(run, monkeypatch):
    report, _, out = run
    given = []

    def remembered(folder, quick, progress):
        given.append((folder, quick))
        progress("stage", 1, 2)
        return report

    monkeypatch.setattr(zhakatayev2023, "reproduce", remembered)
    result = CliRunner().invoke(cli.app, ["reproduce", "zhakatayev2023", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert given == [(out, True)]
    for words in ("∂Q18/∂q14", "does not break down", "1102 are zero", "scaled to 13 instants", str(report.page)):
        assert words in re.sub(r"\s+", " ", result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= max(100, len(f"page: {report.page}"))


def test_an_unknown_paper_is_one_line():
    result = CliRunner().invoke(cli.app, ["reproduce", "zhakatayev2013"])
    assert result.exit_code == 2
    assert result.stderr == "error: paper 'zhakatayev2013' does not exist; did you mean 'zhakatayev2023'?\n"
