"""Identities: equal for equal problems in every process, different for different ones, and quick for anything."""

import copy
import functools
import importlib
import json
import os
import pickle
import sys

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from kinegrad.motion.nlp.identity import difference, digest, expanded, program_identity, sections
from kinegrad.motion.problem import Boundary, Effort, Follow, Limits, MotionProblem, Phase, Time, UserTerm
from tests.kernels.child import child, output
from tests.motion.nlp.programs import hs

LENGTH = 2.0
ENDS = (Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0))


def inner(x):
    return x + LENGTH


def psi(s, q, **others):
    return (q**2).sum(axis=1), {"q": 2 * q}


def problem(**changes):
    given = {
        "model": samples.two_link(gravity=(0, 0, 0)),
        "phases": Phase(duration=(0.1, 2.0), segments=4),
        "requirements": [*ENDS, Limits(tau=100.0)],
        "objective": [Time(), UserTerm(psi, 0.1)],
    }
    return MotionProblem(**given | changes)


def identity(**changes):
    return program_identity(problem(**changes).program)


def walk(scale=1.0):
    t = np.linspace(0, 1, 4)
    return kg.Motion(samples.two_link(gravity=(0, 0, 0)), t, *scale * np.ones((3, 4, 2)))


MASS = kg.Design(samples.two_link(gravity=(0, 0, 0)), {"m": "forearm.mass"})
CHANGES = {
    "a mass": {"model": samples.two_link(gravity=(0, 0, 0)).replace(mass=np.array([0.5, 0.5 + 1e-8]))},
    "gravity": {"model": samples.two_link()},
    "a limit of the model": {"model": samples.two_link(gravity=(0, 0, 0)).replace(effort_limits=np.full(2, 50.0))},
    "segments": {"phases": Phase(duration=(0.1, 2.0), segments=5)},
    "nodes": {"phases": Phase(duration=(0.1, 2.0), segments=4, nodes=3)},
    "the longest time": {"phases": Phase(duration=(0.1, 2.1), segments=4)},
    "a load": {"phases": Phase(duration=(0.1, 2.0), segments=4, attached={"forearm": 0.1})},
    "an end": {"requirements": [ENDS[0], Boundary("end", q=[1, -1.001], v=0), Limits(tau=100.0)]},
    "a bound of torque": {"requirements": [*ENDS, Limits(tau=99.0)]},
    "a bound more": {"requirements": [*ENDS, Limits(tau=100.0), Limits(v=30.0)]},
    "a bound less": {"requirements": ENDS},
    "a weight": {"objective": [Time(), UserTerm(psi, 0.2)]},
    "a term": {"objective": [Time(), Effort(0.1)]},
    "a function": {"objective": [Time(), UserTerm(lambda s, q, **_: ((q**2).sum(axis=1), {"q": q + q}), 0.1)]},
    "a motion to follow": {"objective": [Time(), Follow(walk(), 0.1)]},
    "another motion to follow": {"objective": [Time(), Follow(walk(1.1), 0.1)]},
    "a parameter": {"design": MASS, "design_bounds": {"m": (0.1, 2)}},
    "its bounds": {"design": MASS, "design_bounds": {"m": (0.1, 3)}},
    "motors": {"actuated": ["elbow"], "requirements": ENDS},
}  # fmt: skip


def test_every_argument_of_a_problem_is_part_of_its_identity():
    found = {"nothing": identity()} | {name: identity(**changes) for name, changes in CHANGES.items()}
    texts = {json.dumps(each, sort_keys=True) for each in found.values()}
    assert len(texts) == len(found)
    assert identity() == found["nothing"]
    assert difference(found["nothing"], found["a bound of torque"]) == (
        "its 'requirements[2].tau' is '100'; expected '99'"
    )
    assert "requirements[2]" in difference(found["a bound less"], found["nothing"])
    different = [name for name, x in sections(found["a weight"]).items() if x != sections(found["nothing"])[name]]
    assert different == ["objective"]


def test_identities_are_those_of_copies():
    """A problem that went to another process, or was made from the same numbers again, is the same one."""
    one = problem()
    one.program.objective(one.guess())  # which fills its caches
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), problem(), one.replaced()):
        assert program_identity(other.program) == program_identity(one.program)
    assert identity(phases=[Phase(duration=[0.1, 2], segments=np.int64(4))]) == identity()


def test_identities_are_the_same_in_every_process():
    """Neither addresses nor Python's hashes, which are others in each process, are in them."""
    script = """
import json
from kinegrad.motion.nlp.identity import digest, program_identity
from tests.motion.nlp.test_identity import inner, problem
print(json.dumps([program_identity(problem().program), digest([{"a", "b", "c"}, {"x": {1, 2}}, inner, problem])]))
"""
    texts = set()
    for seed in ("1", "2"):
        cache = {name: x for name, x in os.environ.items() if name == "KINEGRAD_CACHE_DIR"}
        texts.add(output(child(script, PYTHONHASHSEED=seed, **cache)))
    assert len(texts) == 1
    assert json.loads(texts.pop())[0] == identity()


def made(power=2, *, shift=1.0):
    values = [1.0, power]

    def function(x, scale=1.0):
        return scale * x ** values[1] + shift + inner(x)

    return function


def test_functions_are_seen_with_closure_defaults_and_globals(monkeypatch):
    same = digest(made())
    assert digest(made()) == same
    assert digest(made(3)) != same
    assert digest(made(shift=1.5)) != same
    changed = made()
    changed.__defaults__ = (2.0,)
    assert digest(changed) != same
    monkeypatch.setitem(globals(), "LENGTH", 3.0)  # which a function that it calls uses
    assert digest(made()) != same


def test_functions_with_a_cache_are_seen_by_their_code():
    one, other = (functools.lru_cache(made(factor)) for factor in (2, 3))
    assert digest(one) == digest(functools.lru_cache(made(2)))
    assert digest(one) != digest(other)


def test_data_below_many_levels_are_seen():
    one, other = [1.0], [2.0]
    for _ in range(150):
        one, other = [one], [other]
    assert digest(one) == digest(copy.deepcopy(one))
    assert digest(one) != digest(other)


def test_values_of_own_modules_are_seen(monkeypatch, tmp_path):
    """Numbers that a function reads of a module of the user's; modules of installed packages count by their names."""
    (tmp_path / "kg_settings.py").write_text("T = 1.0\nUNUSED = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    settings = importlib.import_module("kg_settings")
    monkeypatch.setitem(globals(), "settings", settings)
    space = globals()
    exec("def reads():\n    return settings.T + np.pi", space)
    before = digest(space["reads"])
    settings.UNUSED = 2
    assert digest(space["reads"]) == before
    settings.T = 2.0
    assert digest(space["reads"]) != before
    monkeypatch.delitem(space, "reads")


def test_code_is_seen_without_names_and_lines():
    def function(text):
        space = {}
        exec(text, space)
        return digest(space["f"])

    base = function("def f(x):\n    y = x + 1\n    return y")
    assert function("\n\ndef f(other):\n    z = other + 1\n    # a comment\n    return z") == base
    assert function("def f(x):\n    y = x + 2\n    return y") != base
    assert function("def f(x):\n    y = x - 1\n    return y") != base
    assert function("def f(x):\n    return [x + 1 for _ in range(2)]") != function(
        "def f(x):\n    return [x + 2 for _ in range(2)]"
    )


class Well:
    def __init__(self, depth):
        self.depth = depth

    def __call__(self, x):
        return self.depth * x


def test_objects_are_seen_with_their_state_and_methods():
    assert digest(Well(1.0)) == digest(Well(1))
    assert digest(Well(1.0)) != digest(Well(2.0))
    other = type("Well", (), {**vars(Well), "__call__": lambda self, x: self.depth + x})
    assert digest(other(1.0)) != digest(Well(1.0))
    assert digest(Well(1.0).__call__) != digest(Well(2.0).__call__)
    assert digest(functools.partial(inner, 1)) != digest(functools.partial(inner, 2))
    assert digest(np.random.default_rng(0)) != digest(np.random.default_rng(1))
    assert digest(x for x in "ab") == digest(y for y in "cd")  # nobody can look into these


def test_numbers_are_the_same_but_for_rounding():
    """On another machine cos(π/2) may be 0 or 6e-17, and 0.1 + 0.2 the number beside 0.3."""
    one, other = np.array([6e-17, 0.3, -1.0]), np.array([0.0, 0.1 + 0.2, -np.nextafter(1.0, 0)])
    assert digest(one) == digest(other)
    assert digest(one) != digest(one + np.array([0, 1e-8, 0]))
    assert expanded(x=0.1 + 0.2) == expanded(x=0.3) == {"x": "0.3"}
    assert len({digest(x) for x in (1.0, np.inf, -np.inf, np.nan, True, "1", None, [1.0], 1e-300)}) == 9


def test_anything_is_quick_and_ends():
    """Cycles, objects that lead to each other in many ways (whose paths are more than 300!), deep lists, and much."""
    around = []
    around.append(around)
    nodes = [Well(k) for k in range(300)]
    for node in nodes:
        node.others = nodes
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (
        around,
        nodes,
        deep,
        sys,
        open,
        lambda: around,
        np.arange(100_000),
        iter([]),
        sys.stdout,
        type("A", (), {}),
    ):
        assert len(digest(value)) == 16


def test_programs_of_ones_own_are_known_by_bounds_and_values():
    program, *_ = hs(71)
    same = program_identity(program)
    for name in ("x_lower", "g_upper", "x_scale"):
        other, *_ = hs(71)
        setattr(other, name, getattr(other, name) + 0.5)
        assert difference(program_identity(other), same)
    other, *_ = hs(71)
    own = other.objective
    other.objective = lambda x: own(x) + 1e-6
    assert "'values'" in difference(program_identity(other), same)
    other.objective = lambda x: own(x) * (1 + 1e-13)  # another machine
    assert difference(program_identity(other), same) is None


@pytest.mark.parametrize("value", [np.nan, None, "raise"])
def test_programs_without_values_have_an_identity(value):
    program, *_ = hs(71)

    def objective(x):
        if value == "raise":
            raise RuntimeError("no")
        return value

    program.objective = objective
    assert json.dumps(program_identity(program), allow_nan=False)
