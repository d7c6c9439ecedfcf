"""Every public function of states, called with random mechanisms, states in all forms, and hostile values.

Either a :class:`KinegradError` says in few words what is wrong, the same for any number of threads; or there is a
result of the right shape, of finite numbers.  It has the same bits when asked for again, on one thread and on two,
written to `out=` of any form that may overlap the inputs, and for one state alone.  Inputs keep their bits, and there
are no warnings.  Of ordinary mechanisms, results are also compared with what another formulation says.

Arguments are made by their names (``calls.py``), so a new function is called as soon as ``CORES`` there says what shape
it returns.
"""

import inspect
import random

import numpy as np
import pytest

import kinegrad as kg
import kinegrad.simulate
from kinegrad import _engine as engine
from tests.fuzz import test_builders, test_simulate
from tests.fuzz.arrangements import FILLABLE, memory, spoiled, used
from tests.fuzz.calls import CORES, Case, bits, leaves
from tests.fuzz.cases import cases
from tests.fuzz.hostile import VALUES, hostile
from tests.fuzz.mechanisms import ORDINARY, mechanism, some_constraints
from tests.fuzz.other_ways import Compared

# tested below, and paths in test_linkages.py
OTHERS = {
    "assemble_path",
    "directional",
    "get_threads",
    "load",
    "save",
    "set_threads",
    "inertial_parameters",
    "neutral",
    "random_configuration",
}


def functions(module):
    return {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}


def test_every_public_function_has_a_fuzzer():
    assert functions(kg) == set(CORES) | OTHERS | functions(kg) & set(test_builders.MAKERS)
    assert functions(kinegrad.simulate) == set(test_simulate.CALLS)


# --- properties -------------------------------------------------------------------------------------------------------


def one_case(name, seed):
    """Try one case; returns whether there was a result."""
    case = Case(name, seed)
    kept = [memory(x) for x in case.arguments.values() if isinstance(x, np.ndarray) and x.dtype != object]
    before = [x.tobytes() for x in kept]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", used)
        patch.setattr(engine.threads, "_GRAIN", 1)  # two threads for any two blocks of states
        result = case.call()
        wanted = bits(result)
        if case.repeatable:
            assert bits(case.call()) == wanted, "not the same again"
            if "threads" in case.arguments and "threads" not in case.spoiled:
                for threads in (1, 2):
                    assert bits(case.call(threads=threads)) == wanted, f"not the same with {threads} threads"
        if not isinstance(result, str):
            check_arrays(case, result)
            if case.repeatable:
                check_alone(case, result)
                if "out" in inspect.signature(case.function).parameters:
                    check_out(case, result)
                if case.kind in ORDINARY and case.scale == 1.0 and not case.spoiled and 0 not in case.common():
                    getattr(Compared(case), name, lambda result: None)(result)
    assert [x.tobytes() for x in kept] == before, "an argument has changed"
    return not isinstance(result, str)


def check_arrays(case, result):
    shape, arrays = case.common(), leaves(result)
    cores = case.cores()
    assert arrays.keys() == cores.keys()
    for what, x in arrays.items():
        assert x.dtype == np.float64
        assert x.shape == shape + cores[what], f"{what} has shape {x.shape}; expected {shape + cores[what]}"
        assert np.isfinite(x).all(), f"{what} is not finite"


def check_alone(case, result):
    """A state gives the same bits wherever it stands in a batch."""
    shape = case.common()
    if 0 in shape:
        return
    k = tuple(case.rng.randrange(size) for size in shape)
    one = case.call(**case.alone(k))
    assert bits(one) == {what: x[k].tobytes() for what, x in leaves(result).items()}, f"state {k} differs alone"


def check_out(case, result):
    """Arrays to fill: of any form, in memory of the inputs, or hostile."""
    rng, arrays = case.rng, leaves(result)
    kind = rng.randrange(4)
    if kind == 0:
        arrays[rng.choice(list(arrays))] = hostile(rng, next(iter(arrays.values())))
        case.call(out=given_as(result, arrays))
        return
    if kind == 1:
        out = given_as(result, {what: rng.choice(FILLABLE)(np.full(x.shape, 7.0)) for what, x in arrays.items()})
        assert case.call(out=out) is out
        assert bits(out) == bits(result)
        return
    sizes = [x.size for x in arrays.values()]
    name = rng.choice(case.given)
    x = case.number(name)
    step = rng.choice([1, 1, 2, 3])
    room = case.numbers.normal(size=step * max(sum(sizes), 2 * x.size) + 7)
    starts = rng.randrange(3) + step * np.cumsum([0, *sizes[:-1]])
    places = [slice(start, start + step * size, step) for start, size in zip(starts, sizes, strict=True)]
    start, own = rng.randrange(5), rng.choice([1, 2])
    room[start : start + own * x.size : own] = x.ravel()
    inside = room[start : start + own * x.size : own].reshape(x.shape)
    wanted = room.copy()
    for place, array in zip(places, arrays.values(), strict=True):
        wanted[place] = array.ravel()
    views = [room[place].reshape(array.shape) for place, array in zip(places, arrays.values(), strict=True)]
    out = given_as(result, dict(zip(arrays, views, strict=True)))
    assert case.call(**{name: inside}, out=out) is out, f"{name} within out="
    assert room.tobytes() == wanted.tobytes(), f"{name} within out="


def given_as(result, arrays):
    """Arrays as an `out` of the kind of a result."""
    return arrays[""] if isinstance(result, np.ndarray) else type(result)(**arrays)


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CORES)
def test_calls(name):
    good = 0
    count = cases(few=60)
    for seed in range(count):
        try:
            good += one_case(name, seed)
        except Exception as error:
            error.add_note(f"one_case({name!r}, {seed})")
            raise
    assert 0 < good < count or count < 20, "arguments are too hostile, or not enough, to say anything"


def test_inertial_parameters():
    for seed in range(cases(few=100)):
        model, _ = mechanism(random.Random(seed))
        try:
            found = kg.inertial_parameters(model)
        except kg.KinegradError:
            continue
        assert found.shape == (10 * model.n,)
        assert np.isfinite(found).all()
    for value in VALUES:
        with pytest.raises(kg.InputError, match="`model`"):
            kg.inertial_parameters(value)


PARTS = {kg.mass_matrix: "q", kg.bias_forces: "qv"}
PARTS |= dict.fromkeys((kg.inverse_dynamics, kg.forward_dynamics, kg.constrained_dynamics), "qva")
PARTS |= {kg.impact: "qv", kg.hybrid_dynamics: "qvaa", kg.jacobian: "q"}
PARTS |= {kg.ConstraintSet.jacobian: "q", kg.ConstraintSet.drift: "qv"}
OF_ROWS = (kg.constrained_dynamics, kg.impact, kg.ConstraintSet.jacobian, kg.ConstraintSet.drift)
MATRICES = (kg.mass_matrix, kg.jacobian, kg.ConstraintSet.jacobian)
MODES = ("structured", "tangent", "forward", "central")


def directions_of(case, function):
    """Arguments of `directional` for a case of another function; some of them hostile."""
    rng, nv, k = case.rng, case.model.nv, case.rng.choice([0, 1, 3, 9])
    state = [case.configuration() if x == "q" else case.state(x) * case.scale for x in PARTS[function]]
    D = [case.numbers.normal(size=(*case.part(), nv, k)) for _ in state]
    D = [None if rng.random() < 0.2 else x for x in D]
    for parts in (state, D):
        if rng.random() < 0.15:
            at = rng.randrange(len(parts))
            good = parts[at] if parts[at] is not None else np.zeros((nv, k))
            parts[at] = spoiled(rng, good) if good.size and rng.random() < 0.6 else hostile(rng, good)
    return state, D


@pytest.mark.slow
def test_directional():
    """The same bits again, on any number of threads and for a state alone; finite numbers, or an error of few words."""
    good = 0
    for seed in range(cases(few=120)):
        case = Case("mass_matrix", 10_000 + seed)
        function = case.rng.choice(list(PARTS))
        case.function = kg.directional
        state, D = directions_of(case, function)
        case.arguments = {"function": function, "model": case.model, "state": state, "D": D}
        case.arguments["mode"] = case.rng.choice(MODES)
        if function in OF_ROWS:
            case.arguments["constraints"] = some_constraints(case.rng, case.model)
        if function is kg.hybrid_dynamics:
            case.arguments["prescribed"] = [case.rng.choice(case.model.speed_names)]
        if function is kg.jacobian:
            case.arguments["link"] = case.rng.choice(case.model.link_names)
        try:
            result = case.call()
            assert bits(case.call(threads=1)) == bits(case.call(threads=2)) == bits(result)
            if isinstance(result, str):
                continue
            good += 1
            assert all(np.isfinite(x).all() for x in leaves(result).values())
            shape = result.value.shape[: result.value.ndim - (2 if function in MATRICES else 1)]
            assert result.derivative.shape[:-1] == result.value.shape
            if 0 not in shape:
                at = tuple(case.rng.randrange(size) for size in shape)
                one = [np.broadcast_to(x, (*shape, np.shape(x)[-1]))[at].copy() for x in state]
                along = [None if x is None else np.broadcast_to(x, (*shape, *np.shape(x)[-2:]))[at].copy() for x in D]
                alone = case.call(state=one, D=along)
                assert bits(alone) == {what: x[at].tobytes() for what, x in leaves(result).items()}
        except Exception as error:
            error.add_note(f"seed {seed}: {function.__name__}, {case.arguments['mode']}")
            raise
    assert good > 20


def test_configurations():
    """neutral and random_configuration: coordinates that every function takes, or an error."""
    for seed in range(cases(few=100)):
        model, _ = mechanism(random.Random(seed))
        shape = ((), 3, (2, 0), (1, 2))[seed % 4]
        some = kg.random_configuration(model, seed, shape=shape)
        assert some.shape == ((shape,) if shape == 3 else shape) + (model.nq,)
        assert kg.difference(model, kg.neutral(model), some).shape == (*some.shape[:-1], model.nv)
    for value in VALUES:
        for function in (kg.neutral, kg.random_configuration):
            with pytest.raises(kg.InputError, match="`model`"):
                function(value)
        if value is not None and not isinstance(value, int | np.integer | np.random.Generator):
            with pytest.raises(kg.InputError, match="`seed`"):
                kg.random_configuration(model, value)


def test_set_threads():
    before = kg.get_threads()
    try:
        for value in VALUES:
            try:
                kg.set_threads(value)
            except kg.InputError:
                continue
            assert value is None or kg.get_threads() == int(value) >= 1
    finally:
        kg.set_threads(before)
