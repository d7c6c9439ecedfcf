"""Simulations, objectives, adjoints and optimisation, called with random mechanisms and hostile arguments.

Either a :class:`KinegradError` says in few words what is wrong; or there is a result of the right shape, of finite
numbers unless it says that the motion diverged.  It has the same bits when asked for again, with one thread and with
two, and, of steps, for one state alone.  Inputs keep their bits, and there are no warnings.
"""

import random
import warnings

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import kinegrad as kg
import kinegrad.simulate as sim
from kinegrad import _engine as engine
from kinegrad import samples
from tests.fuzz.arrangements import arranged, memory, spoiled, used
from tests.fuzz.cases import cases
from tests.fuzz.hostile import hostile
from tests.fuzz.mechanisms import ORDINARY, design_of, mechanism
from tests.mixed import mixed_loads, mixed_state

LONGEST = 1000  # characters of a message
SHAPES = ((), (), (1,), (3,), (9,), (2, 2), (0,))
EXPLICIT = ("rk4", "semi_implicit_euler")
FAST = 1e3  # rad/s, m/s: steps are too long
GOOD = 0.6  # of the cases have nothing hostile in them


class Mixed:
    """What random arguments are made of: a mechanism, a design, choices and numbers."""

    def __init__(self, name, seed):
        self.rng = random.Random(f"{name} {seed}")
        self.numbers = np.random.default_rng(self.rng.randrange(2**63))
        self.model, self.kind = mechanism(self.rng, largest=5)
        self.hostile = self.rng.random() > GOOD
        self.batch = self.rng.choice(SHAPES)
        self.steps = self.rng.randint(1, 7)
        self.design = design_of(self.rng, self.model) if self.rng.random() < 0.5 else None

    def normal(self, *shape, scale=1.0):
        x = self.numbers.normal(size=shape) * scale
        return arranged(self.rng, x) if self.rng.random() < 0.3 else x

    def place(self, *batch):
        """Coordinates."""
        if not self.model.coordinates:
            return self.normal(*batch, self.model.n)
        q, _, _ = mixed_state(self.model, self.rng.randrange(1000), batch)
        return arranged(self.rng, q) if self.rng.random() < 0.3 else q

    def odd(self, good):
        """Rarely something else, if the case is a hostile one; not a function, whose errors are its own."""
        if not self.hostile or self.rng.random() < 0.9:
            return good
        if isinstance(good, np.ndarray) and good.dtype == float and self.rng.random() < 0.5:
            return spoiled(self.rng, good)
        found = hostile(self.rng, good)
        return good if callable(found) or hasattr(found, "__next__") else found

    def oddly(self, **arguments):
        return {x: self.odd(value) for x, value in arguments.items()}

    def loads(self):
        if self.rng.random() < 0.7:
            return None
        if self.model.coordinates:
            return mixed_loads(self.model, self.rng.randrange(1000))
        return kg.Loads(**self.oddly(force=self.normal(self.model.n, 3), torque={self.model.link_names[0]: [1, 0, 2]}))

    def follow(self, batch):
        """How an initial state follows the parameters."""
        given = self.design is not None and self.rng.random() < 0.5
        return self.normal(*batch, self.model.nv, self.design.p) if given else None

    def feedback(self):
        n, flat = self.model.nv, self.model.nq == self.model.nv  # of quaternions, a feedback of speeds alone
        gains = self.odd(-np.eye(n) if flat else np.zeros((n, n))), self.odd(-0.1 * np.eye(n))
        return sim.Feedback(
            lambda t, q, v: (-q if flat else 0.0) - 0.1 * v, lambda t, q, v: gains[0], lambda t, q, v: gains[1]
        )

    def tau(self, times, samples):
        """None, a constant, samples, a spline, a function or a Feedback."""
        n, kind = self.model.nv, self.rng.randrange(7)
        if kind == 0:
            return self.normal(n)
        if kind == 1:
            return self.normal(*samples, n)
        if kind == 2:
            return make_interp_spline(times, self.numbers.normal(size=(len(times), n)), k=1)
        if kind == 3:
            return self.feedback()
        if kind == 4 and self.design is None:
            number = self.odd(0.5)
            return lambda t, q, v: number * np.sin(q if q.shape == v.shape else v)
        return None

    def fixed(self):
        """Arguments of steps."""
        step = self.rng.choice([0.01, 0.001, 0.1])
        times = np.linspace(0, step * self.steps, self.steps + 1)
        tau = self.tau(times, self.rng.choice([(self.steps,), (self.steps, *self.batch)]))
        state = self.place(*self.batch), self.normal(self.model.nv)
        method = self.rng.choice([*EXPLICIT, "implicit_midpoint"])
        return {"q0": state[0], "v0": state[1], "step": step, "steps": self.steps, "tau": tau, "loads": self.loads(),
                "method": method, "design": self.design}  # fmt: skip

    def drive(self):
        """A prescribed motion of some joint, which may follow the design, and initial states that leave it open."""
        model, number, name = self.model, self.odd(0.3), self.rng.choice(self.model.coordinate_names)
        motion = lambda t: (0.3 * t, number, 0.0)  # noqa: E731
        if self.design is not None and self.rng.random() < 0.5:
            motion = sim.DesignMotion(
                lambda t, p: (0.3 * t + np.sin(p[0]) * t * t, 0.3 + 2 * np.sin(p[0]) * t, 2 * np.sin(p[0]))
            )
        q0, v0 = kg.neutral(model), np.zeros(model.nv)
        q0[model.coordinate_index(name)] = np.nan
        if name in model.speed_names:
            v0[model.speed_index(name)] = np.nan
        return {"prescribed": {name: motion}, "q0": q0, "v0": v0}

    def driven(self, arguments):
        """Arguments of steps, now and then with a prescribed motion."""
        if self.model.nv < 2 or self.rng.random() < 0.8:
            return arguments
        if isinstance(arguments["method"], str) and self.rng.random() < 0.9:
            arguments["method"] = self.rng.choice(EXPLICIT)
        return arguments | self.drive() | ({"dq0_dp": None, "dv0_dp": None} if "dq0_dp" in arguments else {})

    def ties(self):
        """Nothing, or a constraint that holds at all times; it has to be met first."""
        if self.rng.random() < 0.75:
            return {}
        link, axis = self.rng.choice(self.model.link_names), self.rng.choice("xyz")
        held = attempt(kg.ConstraintSet, self.model, [kg.Contact(link, (0.1, 0.2, 0.3), directions=axis)])
        if isinstance(held, str):
            return {}
        return self.oddly(constraints=held, project=True, stabilisation=self.rng.choice([None, 3.0]))

    def switching(self, arguments):
        """Arguments of steps, now and then with a floor: then of one state, and of a method that can."""
        if self.rng.random() < 0.8:
            return arguments | self.ties()
        if isinstance(arguments["method"], str) and self.rng.random() < 0.9:
            arguments["method"] = self.rng.choice(EXPLICIT)
        if self.batch and self.rng.random() < 0.9:
            self.batch = ()
            arguments |= {"q0": self.place(), "tau": None}
            arguments |= {"dv0_dp": None} if "dv0_dp" in arguments else {}
        return arguments | self.ties() | self.floors()

    def floors(self):
        """Contacts that open and close, of one link."""
        link, below = self.rng.choice(self.model.link_names), (0, 0, -self.rng.random())
        contact = kg.Contact(link, directions=self.rng.choice(["z", "xz"]), other_point=below)
        return self.oddly(contacts=[sim.UnilateralContact(contact, self.rng.random())], sticking_speed=1e-3)

    def objective(self):
        n, rng = self.model.nv, self.rng
        link = rng.choice(self.model.link_names)
        terms = [
            sim.KineticEnergy(),
            sim.PotentialEnergy(),
            sim.TorqueSquared(**self.oddly(weight=self.normal(n))),
            sim.Tracking(**self.oddly(reference=self.place(), weight=2.0)),
            sim.EndPosition(**self.oddly(link=link, target=self.normal(3), point=(1, 2, 3))),
            sim.UserTerm(lambda at: sim.Evaluation((at.v**2).sum(axis=-1), dv=2 * at.v)),
        ]
        some = rng.sample(terms, rng.randint(0, 2)), rng.sample(terms, rng.randint(0, 2))
        return sim.Objective(**self.oddly(end=some[0], integral=some[1]))

    def small(self):
        """A design for optimisation, quick to evaluate; becomes that of the case."""
        self.model = self.rng.choice([samples.two_link(), samples.double_pendulum()])
        names = [f"{self.model.link_names[-1]}.mass", "gravity.z", f"{self.model.joint_names[0]}.damping"]
        self.design = kg.Design(self.model, self.rng.sample(names, self.rng.randint(1, 3)))
        return self.design


# --- calls ------------------------------------------------------------------------------------------------------------


def simulate_fixed(mix):
    arguments = mix.fixed()
    if mix.rng.random() < 0.1:
        arguments |= {"model": [mix.model] * 3, "design": None}
        mix.design = None
    else:
        arguments["model"] = mix.model
    every = mix.rng.choice([k for k in range(1, mix.steps + 1) if mix.steps % k == 0])
    follow = {"dq0_dp": mix.follow(()), "dv0_dp": mix.follow(mix.batch)} if mix.design is not None else {}
    return sim.simulate_fixed, mix.driven(mix.switching(mix.oddly(**arguments, every=every, **follow)))


def adjoint_gradient(mix):
    arguments = mix.fixed()
    segment = mix.rng.choice([None, 1, 2, 100])
    named = mix.oddly(model=mix.model, objective=mix.objective(), segment=segment, **arguments)
    return sim.adjoint_gradient, mix.driven(mix.switching(named))


def simulate(mix):
    model, rng = mix.model, mix.rng
    times = np.cumsum(np.abs(mix.numbers.normal(size=rng.randint(2, 5)))) * rng.choice([0.01, 0.1])
    q0, v0, prescribed = mix.place(), mix.normal(model.nv), None
    if model.nv > 1 and rng.random() < 0.2:
        prescribed, q0, v0 = mix.drive().values()
    ties = mix.ties()
    if rng.random() < 0.2:
        ties |= mix.floors()
    return sim.simulate, ties | mix.oddly(
        model=model, q0=q0, v0=v0, t=times, tau=mix.tau(times, (len(times),)), loads=mix.loads(),
        prescribed=prescribed, design=mix.design, dq0_dp=None if prescribed else mix.follow(()),
        method=rng.choice(["DOP853", "RK45", "Radau", "BDF", "LSODA"]), rtol=rng.choice([1e-8, 1e-4]), atol=1e-8,
        max_step=rng.choice([np.inf, 0.01]), speed_limit=1e6,
    ) | {"max_evaluations": 300}  # fmt: skip


def motion(mix):
    """A motion to evaluate objectives of, and one of them."""
    mix.hostile, hostile_then = False, mix.hostile
    function, arguments = (simulate if mix.rng.random() < 0.3 else simulate_fixed)(mix)
    done = function(**arguments)
    mix.hostile = hostile_then
    return mix.oddly(simulation=done, objective=mix.objective())


def optimize_design(mix):
    rng, design = mix.rng, mix.small()
    p, n = design.p, mix.model.n
    if rng.random() < 0.5:
        q, v, a = (mix.normal(4, n) for _ in "qva")
        objective = sim.TorqueEffort(**mix.oddly(q=q, v=v, a=a, t=[0, 0.1, 0.2, 0.4], weight=mix.normal(n)))
    else:
        arguments = mix.oddly(**mix.fixed())
        arguments.pop("design")
        objective = sim.Simulated(mix.objective(), **arguments, gradient=mix.odd(rng.choice(["adjoint", "direct"])))
    limit = sim.Limit(lambda design: (design.values.sum(), np.ones(p)), **mix.oddly(lower=-30.0, upper=30.0))
    bounds = rng.choice([None, [(-20.0, 20.0)] * p, {design.names[0]: (-20.0, None)}])
    return sim.optimize_design, mix.oddly(
        design=design, objective=objective, bounds=bounds, constraints=rng.choice([(), [limit]]), scale=None,
        method=rng.choice(["SLSQP", "trust-constr", "L-BFGS-B"]), tolerance=1e-4, max_iterations=rng.randint(1, 3),
    )  # fmt: skip


CALLS = {
    "adjoint_gradient": adjoint_gradient,
    "objective_gradient": lambda mix: (sim.objective_gradient, motion(mix)),
    "objective_value": lambda mix: (sim.objective_value, motion(mix)),
    "optimize_design": optimize_design,
    "simulate": simulate,
    "simulate_fixed": simulate_fixed,
}


# --- properties -------------------------------------------------------------------------------------------------------


def attempt(function, *arguments, **named):
    """The result, or the words of a KinegradError; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", kg.errors.UnfinishedWarning)  # a result that says so is one
        try:
            return function(*arguments, **named)
        except kg.KinegradError as error:
            message = str(error)
    assert 0 < len(message) <= LONGEST
    assert "\n" not in message
    return message


def leaves(result):
    """Arrays of a result by name."""
    if isinstance(result, np.ndarray):
        return {"": result}
    return {name: x for name, x in vars(result).items() if isinstance(x, np.ndarray)}


def bits(result):
    if isinstance(result, str):
        return result
    return {name: x.tobytes() for name, x in leaves(result).items()}, getattr(result, "message", "")


def one_case(name, seed):
    """Try one case; returns whether there was a result."""
    mix = Mixed(name, seed)
    made = attempt(CALLS[name], mix)
    if isinstance(made, str):
        return False
    function, arguments = made
    kept = [memory(x) for x in arguments.values() if isinstance(x, np.ndarray) and x.dtype != object]
    before = [x.tobytes() for x in kept]
    threads = kg.get_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", used)
        patch.setattr(engine.threads, "_GRAIN", 1)
        try:
            result = attempt(function, **arguments)
            for count in (threads, 1, 2):
                kg.set_threads(count)
                assert bits(attempt(function, **arguments)) == bits(result), f"not the same with {count} threads"
        finally:
            kg.set_threads(threads)
        if not isinstance(result, str):
            check(mix, name, arguments, result)
    assert [x.tobytes() for x in kept] == before, "an argument has changed"
    return not isinstance(result, str)


def check(mix, name, arguments, result):
    succeeded = getattr(result, "success", True) or name == "optimize_design"
    if succeeded:
        for what, x in leaves(result).items():
            assert x.dtype == np.float64
            assert np.isfinite(x).all(), f"{what} is not finite"
    if name == "simulate_fixed" and succeeded:
        check_steps(mix, arguments, result)
    if name == "simulate":
        m, sizes = len(result.t), (mix.model.nq, *[mix.model.nv] * 3)
        assert all(getattr(result, x).shape == (m, n) for x, n in zip(("q", "v", "a", "tau"), sizes, strict=True))
        assert m == np.size(arguments["t"]) or not succeeded
    if name == "adjoint_gradient" and mix.kind in (*ORDINARY, "mixed") and mix.design is not None and not mix.hostile:
        check_gradient(arguments, result)


def check_steps(mix, arguments, result):
    """Shapes; and a state gives the same bits wherever it stands in a batch."""
    models = arguments["model"]
    q0, v0 = (np.array(arguments[x], dtype=float) for x in ("q0", "v0"))
    batch = np.broadcast_shapes(q0.shape[:-1], v0.shape[:-1])
    batch = (len(models),) if isinstance(models, list) else batch
    shape = (int(arguments["steps"]) // int(arguments["every"]) + 1, *batch, mix.model.nv)
    assert result.q.shape == (*shape[:-1], mix.model.nq)
    assert all(getattr(result, x).shape == shape for x in ("v", "a", "tau"))
    tau = arguments["tau"]
    if 0 in batch or isinstance(models, list) or callable(tau) or isinstance(tau, sim.Feedback) or not batch:
        return
    k = tuple(mix.rng.randrange(size) for size in batch)
    one = dict(arguments)
    for x, size in (("q0", mix.model.nq), ("v0", mix.model.nv)):
        one[x] = np.broadcast_to(np.array(arguments[x], dtype=float), (*batch, size))[k]
    for x in ("dq0_dp", "dv0_dp"):
        if arguments.get(x) is not None:
            one[x] = np.broadcast_to(np.array(arguments[x], dtype=float), (*batch, *mix_core(mix)))[k]
    held = None if tau is None or hasattr(tau, "extrapolate") else np.array(tau, dtype=float)
    if held is not None and held.ndim > 2:
        one["tau"] = np.broadcast_to(held, (len(held), *batch, shape[-1]))[(slice(None), *k)]
    alone = attempt(sim.simulate_fixed, **one)
    for what, x in leaves(result).items():
        wanted = x if what == "t" else x[(slice(None), *k)]
        assert leaves(alone)[what].tobytes() == wanted.tobytes(), f"{what} of state {k} differs alone"


def mix_core(mix):
    return mix.model.nv, mix.design.p


def check_gradient(arguments, result):
    """The direct method, forwards, gives the same gradient of the same steps, unless they are about to diverge."""
    named = {x: value for x, value in arguments.items() if x not in ("objective", "segment")}
    motion = sim.simulate_fixed(**named)
    if np.abs(motion.v).max(initial=0.0) > FAST:
        return
    forwards = sim.objective_gradient(motion, arguments["objective"])
    for actual, wanted in ((result.value, forwards.value), (result.dvalue_dp, forwards.dvalue_dp)):
        size = np.abs(wanted).max(initial=1.0)
        assert np.abs(actual - wanted).max(initial=0.0) <= 1e-8 * size  # implicit steps are solved to about 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    good = 0
    count = cases(few=20 if name in ("optimize_design", "simulate") else 50, cost=10)
    for seed in range(count):
        try:
            good += one_case(name, seed)
        except Exception as error:
            error.add_note(f"one_case({name!r}, {seed})")
            raise
    assert 0 < good < count or count < 20, "arguments are too hostile, or not enough, to say anything"
