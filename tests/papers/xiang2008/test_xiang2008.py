"""[xiang2008] reproduced: its numbers within 1e-4, its figures, and a page that is whole."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad import InputError, cli
from kinegrad.papers import xiang2008
from kinegrad.papers.xiang2008 import cost, experiment, regular
from kinegrad.papers.xiang2008.findings import run_of
from tests.papers.quoted import missing, numbers_of


def slides_and_hinges():
    builder, last = kg.ModelBuilder("slides"), None
    joints = [kg.prismatic([1, 2, 2]), kg.revolute("x"), kg.prismatic("-y"), kg.revolute([0, 3, 4])]
    for k, joint in enumerate(joints):
        body = kg.Inertia.box(1.0 + k, [0.1, 0.2, 0.3], [0.1, 0.0, 0.2])
        last = builder.add(f"j{k}", last, joint, placement=[0.3, 0.1 * k, 0.2], tip=[0.0, 0.1, 0.3], inertia=body)
    return builder.build()


def silent(what, done, total):
    pass


def test_sensitivities_agree_with_the_closed_form():
    """Figure 14, at the optimum of example 2: two formulations of one thing, to rounding."""
    solution, run = experiment.solve(2, solver="ipopt")
    assert run.final_time == pytest.approx(0.5191, abs=1e-4)
    found = experiment.sensitivities(solution)
    assert found.difference < 1e-13
    assert found.recursive[0].shape == (161, 2, 2)


@pytest.mark.parametrize("model", [kg.samples.two_link(), kg.samples.spatial_chain(5), slides_and_hinges()], ids=str)
def test_regular_equations_are_the_recursive_ones(model):
    """(6) to (11) and (12) to (20), with a load on the last link, against the kernels."""
    rng = np.random.default_rng(0)
    (q, v, a), (force, point) = rng.normal(size=(3, model.n)), rng.normal(size=(2, 3))
    chain, last = regular.chain_of(model, force, point), model.link_names[-1]
    exact = kg.inverse_dynamics_derivatives(model, q, v, a, loads=kg.Loads(force={last: force}, point={last: point}))
    size = np.abs(exact.tau).max()
    assert np.abs(regular.regular_torques(chain, q, v, a) - exact.tau).max() < 1e-13 * size
    assert np.abs(regular.recursive_torques(chain, q, v, a) - exact.tau).max() < 1e-13 * size
    by_q = np.asarray(exact.dtau_dq)
    assert np.abs(regular.regular_derivative(chain, q, v, a) - by_q).max() < 1e-12 * np.abs(by_q).max()


def test_equations_of_chains_refuse_other_mechanisms():
    for model, words in (
        (kg.samples.human43(), "branches"),
        (kg.samples.puma560(), "springs, dampers or rotors"),
        (kg.samples.spatial_chain(2).replace(damping=[0.1, 0.0]), "springs, dampers or rotors"),
    ):
        with pytest.raises(InputError, match=words):
            regular.chain_of(model)


def test_costs_of_the_formulations():
    rows = cost.costs((2, 4), silent)
    assert {(row.formulation, row.n) for row in rows} == {(name, n) for name in cost.FORMULATIONS for n in (2, 4)}
    assert max(row.difference for row in rows) < 1e-13


def test_distances_end_at_zero_and_the_history_at_the_objective():
    _, run = experiment.solve(1, nodes=1)
    assert run.distances[-1] < 1e-9
    assert run.history[-1] == pytest.approx(run.objective, abs=1e-6)
    assert 0 < run.excess < 0.01  # limits at knots alone are exceeded between them
    with pytest.raises(InputError, match="expected 1 or 2"):
        experiment.solve(3)


def test_the_least_time_is_found_from_several_starts():
    sweep = experiment.starts(3, silent)
    assert sweep.converged == 3
    assert sweep.most - sweep.least < 1e-4


@pytest.mark.slow
def test_lifting_has_local_minima():
    """Those near T = 1.035 and 1.42 s are known from other searches."""
    found = experiment.minima(40, silent)
    assert found[0].final_time == pytest.approx(0.5191, abs=1e-4)
    times = [one.final_time for one in found]
    assert any(abs(time - 1.035) < 2e-3 for time in times)
    assert any(abs(time - 1.415) < 5e-3 for time in times)
    assert all(one.objective > found[0].objective * 1.1 for one in found[1:])


# --- the page -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xiang2008.reproduction, "QUICK_LIMIT", 60)
        return xiang2008.reproduce(tmp_path_factory.mktemp("xiang2008"), quick=True, starts=2, minima=2)


@pytest.mark.slow
def test_the_page_is_whole(report):
    html = report.page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=[\"'](?!data:|#)", html)
    assert html.count("data:image/png;base64,") == len(report.figures) == 10
    assert all(path.exists() for path in report.figures)
    assert html.count("<canvas") == 2
    for words in (*(f"Figure {k}" for k in range(7, 15)), "0.3934", "Misprints", "Moco", "without splines"):
        assert words in html
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"base64,[^\"]*", "", html))


@pytest.mark.slow
def test_the_numbers_are_those_of_other_solvers(report):
    expected = {(1, 20, 1): 0.39266, (1, 20, 2): 0.39315, (1, 19, 1): 0.39218, (1, 19, 2): 0.39268, (2, 20, 1): 0.5188}
    for case, time in expected.items():
        assert run_of(report, *case).final_time == pytest.approx(time, abs=1e-4)
    fine = run_of(report, 1, 80, 2)
    assert report.exact.final_time < fine.final_time < report.exact.final_time + 2e-4
    assert max(one.in_segments for one in report.verification) < 1e-6
    exact, limited = run_of(report, 2), run_of(report, 2, hessian="limited-memory")
    assert exact.iterations < 40 < limited.iterations


@pytest.mark.slow
def test_the_documentation_quotes_the_page(report):
    assert {"0.39266", "0.39314", "0.39185454", "0.51881", "0.51915", "0.39219"} <= set(numbers_of("xiang2008"))
    assert missing("xiang2008", report.page.read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_files_hold_what_the_page_says(report):
    results = json.loads(report.results.read_text(encoding="utf-8"))
    assert results["findings"] == list(report.findings)
    assert results["examples"][0]["T"] == report.example1.duration
    with report.runs_file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert np.allclose([float(row["final_time"]) for row in rows], [run.final_time for run in report.runs])


@pytest.mark.slow
def test_the_command_runs_it(report, monkeypatch, tmp_path):
    monkeypatch.setattr(xiang2008, "reproduce", lambda out, quick, progress: report)
    result = CliRunner().invoke(cli.app, ["reproduce", "xiang2008", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "final times" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100 or "page:" in result.stdout


@pytest.mark.parametrize("given", [{"starts": 0}, {"minima": -1}])
def test_misuse_is_named(given, tmp_path):
    with pytest.raises(InputError, match=next(iter(given))):
        xiang2008.reproduce(tmp_path, **given)
