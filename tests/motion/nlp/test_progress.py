"""How a solve goes, on a terminal and elsewhere."""

import io
import sys

from kinegrad.motion.nlp import solve
from tests.motion.nlp.programs import hs


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_where_it_is_no_terminal(capsys):
    program, x0, *_ = hs(71)
    found = solve(program, x0, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split() == ["iteration", "objective", "violation", "optimality", "seconds"]
    assert [int(line.split()[0]) for line in lines[1:]] == list(range(found.iterations + 1))
    assert lines[-1].split()[1] == "17.014"


def test_without_multipliers(capsys):
    """SLSQP does not tell them, so that optimality is not known on the way."""
    program, x0, *_ = hs(71)
    solve(program, x0, solver="slsqp", progress=True)
    assert capsys.readouterr().err.splitlines()[1].split()[3] == "-"


def test_a_terminal(monkeypatch):
    program, x0, *_ = hs(71)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    solve(program, x0, progress=True)
    assert "17.014" in terminal.getvalue()


def test_no_stderr(monkeypatch):
    program, x0, *_ = hs(71)
    monkeypatch.setattr(sys, "stderr", None)
    assert solve(program, x0, progress=True).success
