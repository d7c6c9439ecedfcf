"""[kudruss2019] reproduced: its closed forms are right, its modes err as they must, and its page is whole."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad import InputError, cli
from kinegrad.papers import kudruss2019
from kinegrad.papers.kudruss2019 import accuracy, effort, lifting, linear, reproduction, systems
from kinegrad.papers.kudruss2019.cart import EXTENDED, solve
from kinegrad.papers.kudruss2019.effort import BOUNDS, SOLVE, Effort
from kinegrad.papers.kudruss2019.findings import _convergence_words, disturbed_words, findings, overtaken
from kinegrad.papers.kudruss2019.systems import ALGORITHMS, MODES

H = 1e-30  # of the complex step
CARTS = pytest.mark.parametrize("cart", systems.carts(), ids=lambda cart: cart.name)


def silent(what, done, total):
    pass


def random_problem(cart, seed=0, count=20, k=3):
    """q, v, and a or τ, (count, 1, n), and directions, (count, k, n)."""
    rng, n = np.random.default_rng(seed), cart.model.n
    return rng.uniform(-3, 3, (3, count, 1, n)), rng.normal(size=(3, count, k, n))


# --- closed forms ---------------------------------------------------------------------------------------------------


@CARTS
def test_closed_forms_are_those_of_the_models(cart):
    """Two derivations of one mechanism: by hand, and by the kernels."""
    state = random_problem(cart)[0][:, :, 0]
    closed = cart.cart
    desired = {
        "CRBA": closed.mass_matrix(state[0]),
        "NEFF": closed.bias(*state[:2]),
        "RNEA": closed.inverse_dynamics(*state),
        "ABA": closed.forward_dynamics(*state),
    }
    for algorithm in cart.algorithms[:4]:
        found = cart.value(algorithm, *state[: algorithm.parts])
        np.testing.assert_allclose(found, desired[algorithm.name], rtol=1e-12, atol=1e-12 * np.abs(found).max())
    if cart.constraints is not None:
        found = cart.value(cart.algorithms[-1], *state)
        desired = closed.constrained_dynamics(*state)
        sizes = np.abs(desired).max(axis=-1, keepdims=True)
        error = np.abs(np.concatenate([found.a, found.forces], axis=-1) - desired) / sizes
        assert error.max() < 1e-10  # rounding times the condition near upright states
        np.testing.assert_allclose(cart.constraints.jacobian(state[0]), closed.jacobian(state[0]), atol=1e-15)
        np.testing.assert_allclose(cart.constraints.drift(*state[:2]), closed.gamma(*state[:2]), atol=1e-13)


@CARTS
def test_derivatives_in_closed_form_by_complex_step(cart):
    state, D = random_problem(cart, 1)
    for algorithm in cart.algorithms:
        function = getattr(cart.cart, algorithm.closed.removesuffix("_along"))
        along = getattr(cart.cart, algorithm.closed)
        some, directions = state[: algorithm.parts], D[: algorithm.parts]
        desired = np.imag(function(*(x + 1j * H * d for x, d in zip(some, directions, strict=True)))) / H
        sizes = np.abs(desired).max(axis=tuple(range(2, desired.ndim)), keepdims=True)
        assert (np.abs(along(*some, *directions) - desired) / sizes).max() < 1e-11


def test_systems_are_solved_in_extended_precision():
    rng = np.random.default_rng(2)
    A, x = rng.normal(size=(50, 5, 5)).astype(EXTENDED), rng.normal(size=(50, 5, 2)).astype(EXTENDED)
    found = solve(A, np.einsum("sij,sjk->sik", A, x))
    condition = np.linalg.cond(A.astype(float))
    assert (np.abs(found - x).max(axis=(1, 2)) < 100 * condition * np.finfo(EXTENDED).eps).all()


# --- errors ---------------------------------------------------------------------------------------------------------


def test_modes_err_as_they_must():
    rows = accuracy.accuracies(systems.carts(), 200, silent)
    assert len(rows) == 4 * (4 + 5)
    for row in rows:
        if row.algorithm == "FDCONT":  # upright states may have any error
            continue
        low, high = {"forward": (1e-10, 1e-3), "central": (1e-13, 1e-6)}.get(row.mode, (0.0, 1e-12))
        assert low <= row.mean <= high
        assert row.relative < {"forward": 1e-5, "central": 1e-8}.get(row.mode, 1e-13)
        assert list(row.quantiles) == sorted(row.quantiles)
        assert row.quantiles[-1] <= row.largest
    for mode in ("tangent", "structured"):
        assert next(row for row in rows if (row.algorithm, row.mode) == ("FDCONT", mode)).level < 1e-11


def test_errors_by_step_fall_and_rise_again():
    rows = accuracy.step_errors(systems.carts(), [1e-1, 1e-5, 1e-13], 30, silent)
    for cart in systems.CARTS:
        for mode in ("forward", "central"):
            large, best, small = (row.relative for row in rows if (row.cart, row.mode) == (cart, mode))
            assert best < min(large, small)
        assert next(row.relative for row in rows if (row.cart, row.mode) == (cart, "structured")) < 1e-13


# --- effort ---------------------------------------------------------------------------------------------------------


def test_the_linear_system_by_all_modes():
    rng = np.random.default_rng(3)
    K, b = rng.normal(size=(4, 6, 6)), rng.normal(size=(4, 6))
    dK, db = rng.normal(size=(4, 5, 6, 6)), rng.normal(size=(4, 5, 6))
    x = np.linalg.solve(K, b[..., None])[..., 0]
    desired = np.linalg.solve(K[:, None], (db - (dK * x[:, None, None]).sum(-1))[..., None])[..., 0]
    size = np.abs(desired).max()
    for h, sides, tolerance in ((0.0, 0, 1e-11), (1e-8, 1, 1e-4), (1e-6, 2, 1e-6)):
        found, slopes = linear.solutions(K, dK, b, db, h, sides)
        np.testing.assert_allclose(found, x, rtol=1e-10)
        assert np.abs(slopes - desired).max() < tolerance * size


def test_efforts_have_all_tasks_and_modes():
    rows = effort.efforts(systems.multi_pendulum(3), [1, 2], 0.0, silent)
    assert {(row.task, row.mode, row.directions) for row in rows} == {
        (task, mode, k) for task in (*(each.name for each in ALGORITHMS), SOLVE) for mode in MODES for k in (1, 2)
    }
    assert all(row.effort > 0 and row.rounds >= 6 for row in rows)
    with_points = {(row.task, row.mode) for row in rows if row.evaluations is not None}
    assert with_points == {(each.name, mode) for each in ALGORITHMS for mode in ("forward", "central")}


def made_up(disturbed=False):
    """Efforts on their bounds, ED at four evaluations."""
    return [
        Effort(task, mode, k, 1e-6 * (4 if mode == "structured" else BOUNDS[mode](k)), 1e-6, 9, disturbed)
        for task in (*(each.name for each in ALGORITHMS), SOLVE)
        for mode in MODES
        for k in (1, 5, 10)
    ]


def test_what_is_said_of_efforts():
    assert overtaken(made_up(), "ABA") == 5
    assert not disturbed_words(made_up())
    assert "72 of 72 efforts" in disturbed_words(made_up(disturbed=True))


# --- the page -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("kudruss2019")
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifting, "QUICK_METHODS", ("SQP, exact", "interior point, exact"))
        found = kudruss2019.reproduce(
            out, quick=True, progress=lambda *step: steps.append(step), samples=60, directions=[1, 3], budget=0.0
        )
    assert {what for what, _, _ in steps} >= {"errors", "effort", "steps", "figure 3"}
    return found


def test_the_page_is_whole(report):
    html = report.page.read_text(encoding="utf-8")
    assert html.count('class="animation"') == 1  # the lift
    assert not re.search(r"(src|href)=[\"'](?!data:|#)", html)  # nothing from elsewhere
    assert html.count("data:image/png;base64,") == len(report.figures) == 4  # the first is shown once
    assert all(path.exists() for path in report.figures)
    for words in ("Figure 1", "Figure 2", "Figure 3", "Table 5", "Quick run", "Misprints"):
        assert words in html
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"base64,[^\"]*", "", html))


def test_files_hold_what_the_page_says(report):
    results = json.loads(report.results.read_text(encoding="utf-8"))
    assert len(results["errors"]) == 36
    assert results["findings"] == list(findings(report))
    with report.errors_file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in rows] == [row.mean for row in report.errors]
    with report.efforts_file.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(report.efforts) == 6 * 4 * 2


def test_the_summary_has_all_algorithms(report):
    errors, efforts = kudruss2019.summary(report).tables
    assert len(errors.rows) == 9
    assert [row[0] for row in efforts.rows] == [*(each.name for each in ALGORITHMS), SOLVE, "the paper’s bound"]


def test_the_command_runs_it(report, monkeypatch, tmp_path):
    monkeypatch.setattr(kudruss2019, "reproduce", lambda out, quick, progress: report)
    result = CliRunner().invoke(cli.app, ["reproduce", "kudruss2019", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "effort along 3 directions" in result.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"directions": [2]}, "`directions` is [2]"),
        ({"directions": [0, 1]}, "`directions` is [0, 1]"),
        ({"samples": 0}, "`samples` is 0"),
        ({"masses": [-1.0]}, "`masses` is [-1.0]"),
        ({"masses": []}, "`masses` is []"),
    ],
)
def test_misuse_is_named(given, message, tmp_path):
    with pytest.raises(InputError, match=re.escape(message)):
        reproduction.reproduce(tmp_path, **given)


def test_figure_3_ends_at_one_optimum(report):
    """Both methods find the same motion; distances end at zero, and fall fast in the end."""
    rows = report.convergences
    assert {row.status for row in rows} == {"optimal"}
    assert max(row.objective for row in rows) - min(row.objective for row in rows) < 1e-4
    for row in rows:
        assert row.distances[-1] == 0
        assert row.distances[-3] < 1e-2 * row.distances[0]
    assert any("iterations with exact first derivatives" in words for words in findings(report)) is False  # no pairs


@pytest.mark.slow
def test_differences_are_compared_with_exact_derivatives():
    methods = ("quasi-Newton SQP, exact", "interior point, exact", "interior point, differences")
    rows, _ = lifting.convergences([10.0], silent, methods=methods, segments=6)
    assert [row.method for row in rows] == list(methods)
    assert {row.status for row in rows} == {"optimal"}
    assert rows[0].objective == pytest.approx(rows[1].objective, rel=1e-5)
    assert rows[1].objective == pytest.approx(rows[2].objective, rel=1e-5)
    assert rows[0].iterations > 2 * rows[1].iterations  # second derivatives are learned on the way
    words = list(_convergence_words(rows))
    assert len(words) == 1
    assert f"{rows[1].iterations} against {rows[2].iterations} with a box of 10 kg" in words[0]


def test_methods_of_figure_3_are_pairs():
    """Each kind of method with exact gradients and with differences, the Hessian the same in both."""
    for kind in lifting.KINDS:
        exact, other = (dict(lifting.METHODS[f"{kind}, {how}"]) for how in ("exact", "differences"))
        assert (exact.pop("gradient"), other.pop("gradient")) == ("exact", "forward")
        assert exact == other
    assert {kind["hessian"] for kind in lifting.KINDS.values() if kind["solver"] == "uno"} == {
        "exact",
        "limited-memory",
    }


def test_the_wheels_touch_the_ground():
    _, box = systems.carts()
    np.testing.assert_array_equal(box.constraints.error(kg.neutral(box.model)), [0, 0])
