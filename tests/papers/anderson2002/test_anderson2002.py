"""[anderson2002] reproduced: its methods agree with each other, with kinegrad and with an oracle; its page is whole."""

import csv
import json
import re
import secrets
import threading

import numpy as np
import pytest
from numba.core.event import Listener, install_listener
from typer.testing import CliRunner

from kinegrad import (
    InputError,
    cli,
    samples,
)
from kinegrad._kernels.compiler.jit import JIT
from kinegrad.papers import anderson2002
from kinegrad.papers.anderson2002 import experiment as anderson2002_experiment
from kinegrad.papers.anderson2002 import pendulum as anderson2002_pendulum
from kinegrad.papers.anderson2002 import reproduction
from kinegrad.papers.anderson2002.experiment import (
    Closest,
    Timing,
    agreement,
    chain_design,
    closest,
    crossings,
    exponents,
    prepare,
)
from kinegrad.papers.anderson2002.extended import WIDER, extended_derivatives
from kinegrad.papers.anderson2002.findings import agreed_until, largest_difference
from kinegrad.papers.anderson2002.methods import METHODS
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.compiled import compiled
from kinegrad.papers.report.page import number
from tests.papers.anderson2002.chains import relative
from tests.reference import oracle


def test_exponents_are_fitted_to_large_sizes_only():
    rows = [Timing("partially recursive", n, 4, (1e-3 if n < 8 else 1e-6 * n**3), 1) for n in (2, 4, 8, 16, 32)]
    (fit,) = exponents(rows)
    assert fit.exponent == pytest.approx(3)
    assert (fit.smallest, fit.largest, fit.order, fit.products) == (8, 32, 3, None)


@pytest.mark.parametrize(("factor", "at"), [(0.5, None), (16.0, 4.0), (1e9, np.inf)])
def test_crossings(factor, at):
    rows = [Timing("fully recursive", n, 1, factor * n, 1) for n in (2, 3, 5, 8)]
    rows += [Timing("conventional", n, 1, float(n**3), 1) for n in (2, 3, 5, 8)]
    (row,) = crossings(rows, 1)
    assert row.at == (at if at in (None, np.inf) else pytest.approx(at))


def test_closest_is_the_least_ratio():
    rows = [Timing("fully recursive", n, p, n * p, 1) for n in (2, 3) for p in (1, 4)]
    rows += [Timing("frugal conventional", n, p, n * p * (7 - n - p / 2), 1) for n in (2, 3) for p in (1, 4)]
    assert closest(rows) == Closest("frugal conventional", 3, 4, 2.0)


def test_products_grow_between_the_third_and_the_fourth_power():
    """(25), (27), (28) of the conventional method: n³ + 3 p n³ + 2 n⁴."""
    counts = {n: n**3 + 3 * 4 * n**3 + 2 * n**4 for n in (8, 32)}
    (fit,) = exponents([Timing("conventional", n, 4, 1e-9 * count, 1) for n, count in counts.items()])
    assert fit.products == pytest.approx(fit.exponent)
    assert fit.products == pytest.approx(np.log(counts[32] / counts[8]) / np.log(4))


@pytest.mark.parametrize("n", [4, 12])
def test_any_two_methods_are_compared(n):
    """Against the differences taken anew; and what is said about them is the largest of all pairs."""
    case = prepare(chain_design(n))
    roundings, pairs = agreement(case, METHODS)
    given = [(case.chain, case.q[k], case.v[k], *case.slopes) for k in range(anderson2002_experiment.CHECKED)]
    found = {name: np.array([method(*each)[1] for each in given]) for name, method in METHODS.items()}
    found["kinegrad"] = case.library(anderson2002_experiment.CHECKED).transpose(0, 2, 1)
    exact = np.array([extended_derivatives(*each) for each in given])
    names = [*METHODS, "kinegrad"]
    assert {frozenset((row.first, row.second)) for row in pairs} == {
        frozenset((one, two)) for one in names for two in names if one != two
    }
    assert len(pairs) == 10
    for row in pairs:
        assert row.difference == np.abs(found[row.first] - found[row.second]).max() / np.abs(exact).max()
    assert {row.method: row.error for row in roundings} == {name: relative(x, exact) for name, x in found.items()}
    assert largest_difference(pairs, inverted=True) == max(row.difference for row in pairs)
    rest = [row.difference for row in pairs if "conventional" not in (row.first, row.second)]
    assert largest_difference(pairs) == max(rest)
    assert agreed_until(pairs) == n


@pytest.mark.skipif(not WIDER, reason="longdouble is double here")
def test_factors_lose_digits_and_an_inverse_more():
    """At n = 24 the condition of M is 1e7: rounding separates what forms no matrix, what factors and what inverts."""
    roundings, _ = agreement(prepare(chain_design(24)), METHODS)
    error = {row.method: row.error for row in roundings}
    assert roundings[0].condition > 1e6
    assert error["fully recursive"] < 1e-12
    for name in ("partially recursive", "frugal conventional"):
        assert 5 * error["fully recursive"] < error[name] < error["conventional"] / 5
    assert error["conventional"] < 4 * np.finfo(float).eps * roundings[0].condition


def test_states_are_the_same_at_every_run():
    first, second = prepare(chain_design(4)), prepare(chain_design(4))
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(first.dv, second.dv)


def test_kinetic_energy_is_that_of_two_particles():
    """dT/dp against (71) written out and differentiated by complex step, at states that follow the parameters."""
    random = np.random.default_rng(71)
    q, v = random.normal(size=(2, 5, 2))
    dq, dv = random.normal(size=(2, 5, 2, 4))

    def kinetic(p, q, v):
        L1, L2, MP, MQ = p
        first, second = q[0], q[0] + q[1]
        P = L1 * v[0] * np.array([np.cos(first), np.sin(first)])
        Q = P + L2 * (v[0] + v[1]) * np.array([np.cos(second), np.sin(second)])
        return (MP * P @ P + MQ * Q @ Q) / 2  # [anderson2002] (71)

    found = anderson2002_pendulum._sensitivity(anderson2002_pendulum._design(), np.arange(5.0), q, v, dq, dv)
    values = np.array(list(anderson2002_pendulum.VALUES.values()))
    for k in range(5):
        for j in range(4):
            step = 1j * oracle.STEP
            moved = kinetic(values + step * np.eye(4)[j], q[k] + step * dq[k, :, j], v[k] + step * dv[k, :, j])
            assert found[k, j] == pytest.approx(moved.imag / oracle.STEP, rel=1e-12, abs=1e-12)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One quick run on small chains, the stages it reported, and its folder."""
    out = tmp_path_factory.mktemp("papers") / "new" / "anderson2002"
    stages = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_page, "DPI", 40)
        patch.setattr(reproduction, "QUICK_BUDGET", 0.01)
        patch.setattr(reproduction, "QUICK_LIMIT", 1e6)  # s: no method is given up because the machine is busy
        patch.setattr(anderson2002_experiment, "FEWEST", 1)
        report = anderson2002.reproduce(
            out, quick=True, progress=lambda *stage: stages.append(stage), sizes=(2, 4, 8, 12), steps=(1e-2, 1e-5, 1e-9)
        )
    return report, stages, out


@pytest.fixture(scope="module")
def results(run):
    return json.loads(run[0].results.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_all_methods_agree_at_all_sizes(results):
    names = {*METHODS, "kinegrad"}
    assert {(row["method"], row["n"]) for row in results["roundings"]} == {(x, n) for x in names for n in (2, 4, 8, 12)}
    assert len(results["pairs"]) == 4 * 10
    assert max(row["difference"] for row in results["pairs"]) < 1e-10  # the condition of M, 5e5, times 2e-16
    assert max(row["error"] for row in results["roundings"] if row["method"] == "fully recursive") < 1e-12
    assert results["epsilon"] == np.finfo(np.longdouble).eps


@pytest.mark.slow
def test_choices_are_in_the_file(results):
    pendulum, spatial = results["chosen"]["double_pendulum"], results["chosen"]["chains"]
    assert pendulum["values"] == {"L1": 1.0, "L2": 1.0, "MP": 1.0, "MQ": 1.0}
    assert pendulum["start"] == {"q": [pytest.approx(np.pi / 6), 0.0], "v": [0.0, 0.0]}
    assert pendulum["gravity"] == samples.double_pendulum().gravity.tolist()
    assert pendulum["paper_perturbations"] == {
        "L1": 1e-5,
        "L2": 1e-5,
        "MP": 5e-4,
        "MQ": 1e-5,
    }  # [anderson2002] section 5
    assert pendulum["tolerances"] == {"tight": 1e-11, "loose": 1e-6, "reference": 1e-13}
    assert (spatial["length"], spatial["mass"]) == (1.0, 1.0)
    assert spatial["gravity"] == samples.spatial_chain(2).gravity.tolist()


@pytest.mark.slow
def test_everything_is_timed(results):
    timed = {(row["method"], row["n"]) for row in results["timings"]}
    assert timed == {(name, n) for name in (*METHODS, "kinegrad") for n in (2, 4, 8, 12)}
    assert all(row["seconds"] > 0 and row["evaluations"] > 0 for row in results["timings"])
    assert {(row["n"], row["p"]) for row in results["small"] if row["n"] == 4} == {(4, 1), (4, 4), (4, 8)}
    orders = {row["method"]: row["order"] for row in results["exponents"]}
    assert [orders[name] for name in METHODS] == [1, 3, 4, 4]
    ratio = {(row["method"], row["n"], row["p"]): row["seconds"] for row in results["small"]}
    near = results["closest"]
    key = near["n"], near["p"]
    assert near["ratio"] == ratio[near["method"], *key] / ratio["fully recursive", *key]
    # times of a loaded machine say nothing, so neither do exponents: that they are fitted, and to these times
    for row in results["exponents"]:
        points = [
            (each["n"], each["seconds"])
            for each in results["timings"]
            if each["method"] == row["method"] and row["smallest"] <= each["n"] <= row["largest"]
        ]
        n, seconds = np.log(points).T
        assert row["exponent"] == pytest.approx(np.polyfit(n, seconds, 1)[0], rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_exact_sensitivities_agree_and_differences_err_as_theory_says(results):
    rows = {(row["parameter"], row["method"]): row["relative"] for row in results["deviations"]}
    assert results["integration_error"] < 1e-10  # tolerance 1e-11 for 20 s
    for name, step in anderson2002_pendulum.STEPS.items():
        assert rows[name, "conventional"] < 1e-12  # same steps of the integrator, so rounding alone
        assert rows[name, "central differences"] < rows[name, "forward differences"] / 10
        assert 1e-6 < rows[name, "forward differences"] < 20 * step  # curvature over slope is about 2π·20 s / period
    error = {(row["method"], row["tolerance"], row["step"]): row["error"] for row in results["perturbations"]}
    tight, loose = 1e-11, 1e-6
    assert error["forward", tight, 1e-5] == pytest.approx(error["forward", tight, 1e-2] / 1e3, rel=0.1)  # truncation
    assert error["central", tight, 1e-9] > 5 * error["central", tight, 1e-5]  # rounding
    assert error["fully recursive", tight, 0.0] < 1e-10 < error["central", tight, 1e-5]
    assert error["fully recursive", loose, 0.0] < error["central", loose, 1e-5]
    wild = results["wild"]
    assert wild["largest_value"] > 1e5
    assert wild["methods"] < 1e-6 < 0.5 < wild["differences"]
    assert 5 < wild["sound_until"] < 20


@pytest.mark.slow
def test_files_hold_every_number(run, results):
    report, _, out = run
    names = {"index.html", "results.json", "times.csv", "sensitivities.csv", *results["figures"]}
    assert {path.name for path in out.iterdir()} == names
    assert len(report.figures) == 5
    for path in report.figures:
        assert path.read_bytes().startswith(b"\x89PNG")
    with report.times.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = {(row["method"], row["n"]): row["error"] for row in results["roundings"]}
    assert len(rows) == len(results["timings"])
    assert all(float(row["relative_error"]) == errors[row["method"], int(row["n"])] for row in rows)
    table = np.genfromtxt(report.curves, delimiter=",", names=True, deletechars="")
    assert len(table) == anderson2002_pendulum.INSTANTS
    worst = np.abs(table["dT_dL1.conventional"] - table["dT_dL1.fully_recursive"]).max()
    assert worst == next(row["largest"] for row in results["deviations"])


@pytest.mark.slow
def test_progress_goes_to_the_end(run):
    last = {stage: (done, total) for stage, done, total in run[1]}
    assert len(last) >= 6
    assert all(done == total for done, total in last.values())


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_says_what_was_found(run):
    report, _, _ = run
    html = report.page.read_text(encoding="utf-8")
    assert html.count('class="animation"') == 1  # the pendulum swings
    assert not re.search(r"https?:|//\w|<script src|<link|@import|url\(", re.sub(r"base64,[^\"]*", "", html))
    sources = re.findall(r'(?:src|href)="([^"]{1,30})', html)
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert html.count("data:image/png;base64,") == 5  # the one at the top is not shown again
    for anchor in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{anchor}"' in html
    text = re.sub(r"<[^>]*>", "", html)
    for fact in ("command", "date", "processor", "versions"):
        assert report.about[fact] in text
    assert "nan" not in text.replace("nanosecond", "")
    for fit in report.exponents:
        assert re.search(rf"grows as n\^?[-−]?{abs(fit.exponent):.2f}", text)  # of a few short timings: any number
    assert "Quick run:" in text
    assert "g = 9.81 m/s2" in text
    for row in report.roundings:
        assert f">{number(row.error)}<" in html
    assert number(largest_difference(report.pairs)) in html
    assert len(re.findall(r'alt="[A-Z][^"]{60,}\."', html)) == 5  # sentences


@pytest.mark.slow
def test_the_papers_perturbation_is_tried_exactly(results):
    t, none = anderson2002_pendulum._instants(), np.empty(0)
    motion = anderson2002_pendulum.Pendulum(t, none, none, {}, np.ones((401, 4)))
    rows = anderson2002_pendulum.perturbations(motion, ["MP"], [1e-2], lambda *stage: None)
    assert {row.step for row in rows if row.method == "forward"} == {1e-2, 5e-4}
    assert {row["step"] for row in results["perturbations"]} == {0.0, 1e-2, 1e-5, 1e-9}


@pytest.mark.slow
def test_the_command_prints_tables_and_the_page(run, monkeypatch):
    report, _, out = run
    given = []

    def remembered(folder, quick, progress):
        given.append((folder, quick))
        progress("stage", 1, 2)
        return report

    monkeypatch.setattr(anderson2002, "reproduce", remembered)
    result = CliRunner().invoke(cli.app, ["reproduce", "anderson2002", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert given == [(out, True)]
    printed = re.sub(r"\s+", " ", result.stdout)
    for words in (
        "frugal conventional",
        "exponent",
        "order",
        "• Fully recursive: time grows as",
        f"page: {report.page}",
    ):
        assert words in printed
    assert max(map(len, result.stdout.splitlines())) <= max(100, len(f"page: {report.page}"))


def test_slow_methods_are_given_up(monkeypatch):
    """With a limit that nothing keeps, every method is timed once and then given up; kinegrad goes on."""
    rows, roundings, pairs, stopped = anderson2002_experiment.times((2, 4), 1e-9, 0.0, lambda *stage: None)
    assert stopped == dict.fromkeys(METHODS, 4)
    assert {(row.method, row.n) for row in rows} == {(name, 2) for name in METHODS} | {("kinegrad", 2), ("kinegrad", 4)}
    assert [row.method for row in roundings if row.n == 4] == ["fully recursive", "kinegrad"]
    assert len([row for row in pairs if row.n == 4]) == 1


def test_arguments_are_checked(tmp_path):
    with pytest.raises(InputError, match=r"`sizes` is \[4, 4\]"):
        anderson2002.reproduce(tmp_path, sizes=(4, 4))
    with pytest.raises(InputError, match=r"`steps` is \[0.0\]"):
        anderson2002.reproduce(tmp_path, steps=[0.0])
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        anderson2002.reproduce(tmp_path / "file")


def test_ctrl_c_leaves_nothing(tmp_path):
    def interrupt(what, done, total):
        if what == "small chains" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anderson2002.reproduce(tmp_path / "deep" / "out", quick=True, progress=interrupt, sizes=(2, 4))
    assert list(tmp_path.iterdir()) == []


class Compiled(Listener):
    """Notes which threads compile."""

    def __init__(self):
        self.threads = set()

    def on_start(self, event):
        self.threads.add(threading.get_ident())

    def on_end(self, event):
        pass


@pytest.mark.skipif(not JIT, reason="nothing is compiled without the JIT")
def test_what_the_paper_compiles_is_out_of_reach_of_interrupts():
    """On the main thread Ctrl-C was lost in a callback from LLVM, and ``reproduce`` went on."""
    other = secrets.randbits(40)  # compiled code is kept: a function that no earlier run can have compiled
    times = compiled(eval(f"lambda x: {other} * x"))
    with install_listener("numba:compile", found := Compiled()):
        assert times(1.5) == 1.5 * other
    assert found.threads
    assert threading.get_ident() not in found.threads


def test_no_causes_are_inferred_from_a_disturbed_machine():
    from kinegrad.papers.anderson2002.experiment import Exponent
    from kinegrad.papers.anderson2002.findings import CACHES, _growth

    steep = Exponent("conventional", 4.9, 16, 64, 4, 3.7)
    assert CACHES in _growth(steep)
    assert CACHES not in _growth(steep, calm=False)
