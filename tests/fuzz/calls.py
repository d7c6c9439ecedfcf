"""A call of any public function of states with random arguments, made by their names; what shapes each returns."""

import inspect
import random
import warnings

import numpy as np

import kinegrad as kg
import kinegrad.simulate
from kinegrad import Loads, PackedMatrix
from tests.fuzz.arrangements import arranged, spoiled
from tests.fuzz.hostile import VALUES, hostile
from tests.fuzz.mechanisms import design_of, mechanism, some_constraints, some_loads

LONGEST = 1000  # characters of a message
MATRICES = {"dtau_dq": "n n", "dtau_dv": "n n", "dtau_da": "n n"}
SECOND = ("dqdq", "dqdv", "dqda", "dvdv")
HYBRID = {"a": "n", "tau": "n", "forces": "m"}
CORES = {  # last axes of results: q coordinates, n speeds, l links, p parameters, m rows, k points or none
    "assemble": "q",
    "bias_forces": "n",
    "center_of_mass": "3",
    "center_of_mass_derivatives": "3 n",
    "center_of_mass_hessian": "n n",
    "constrained_dynamics": {"a": "n", "forces": "m"},
    "constrained_dynamics_derivatives": {
        "a": "n",
        "forces": "m",
        **{f"da_d{x}": "n n" for x in ("q", "v", "tau")},
        **{f"dforces_d{x}": "m n" for x in ("q", "v", "tau")},
    },
    "constrained_dynamics_design_derivatives": {"da_dp": "n p", "dforces_dp": "m p"},
    "constrained_dynamics_hessian": {f"d2_{x}": "n n" for x in ("dqdq", "dqdv", "dqdtau", "dvdv")},
    "constrained_dynamics_load_derivatives": {
        **{f"da_d{x}": "n l 3" for x in ("force", "torque", "point")},
        **{f"dforces_d{x}": "m l 3" for x in ("force", "torque", "point")},
    },
    "constrained_hybrid_dynamics": {"a": "n", "tau": "n", "forces": "m"},
    "constrained_hybrid_dynamics_derivatives": {
        "a": "n",
        "tau": "n",
        "forces": "m",
        **{f"d{x}_d{y}": f"{rows} n" for x, rows in HYBRID.items() for y in ("q", "v", "tau", "a")},
    },
    "constrained_hybrid_dynamics_design_derivatives": {f"d{x}_dp": f"{rows} p" for x, rows in HYBRID.items()},
    "constrained_inverse_dynamics": {"tau": "n", "forces": "m", "actuators": "u"},
    "constrained_inverse_dynamics_derivatives": {
        "tau": "n",
        "forces": "m",
        "actuators": "u",
        **{f"d{x}_d{y}": f"{rows} n" for x, rows in (("tau", "n"), ("forces", "m"), ("actuators", "u")) for y in "qva"},
    },
    "constraint_design_derivatives": {f"d{x}_dp": "m p" for x in ("error", "velocity", "acceleration")},
    "constraint_design_hessian": {"d2_dqdp": "n p", "d2_dvdp": "n p", "d2_dpdp": "p p"},
    "constraint_jacobian_design_derivatives": "m n p",
    "difference": "n",
    "energy_design_derivatives": {"dkinetic_dp": "p", "dpotential_dp": "p"},
    "forward_dynamics": "n",
    "forward_dynamics_derivatives": {"a": "n", "da_dq": "n n", "da_dv": "n n", "da_dtau": "n n"},
    "forward_dynamics_design_derivatives": "n p",
    "forward_kinematics": {
        "transform": "l 4 4",
        **{f"{kind}_{what}": "l 3" for kind in ("linear", "angular") for what in ("velocity", "acceleration")},
    },
    "forward_kinematics_derivatives": {
        "dtransform_dq": "l 4 4 n",
        **{f"d{kind}_velocity_d{x}": "l 3 n" for kind in ("linear", "angular") for x in "qv"},
        **{f"d{kind}_acceleration_d{x}": "l 3 n" for kind in ("linear", "angular") for x in "qva"},
    },
    "gravity_forces": "n",
    "hybrid_dynamics": {"a": "n", "tau": "n"},
    "hybrid_dynamics_derivatives": {
        "a": "n",
        "tau": "n",
        **{f"d{x}_d{y}": "n n" for x in ("a", "tau") for y in ("q", "v", "tau", "a")},
    },
    "hybrid_dynamics_design_derivatives": {"da_dp": "n p", "dtau_dp": "n p"},
    "impact": {"v": "n", "impulses": "m"},
    "impact_derivatives": {
        "v": "n",
        "impulses": "m",
        **{f"dv_d{x}": "n n" for x in "qv"},
        **{f"dimpulses_d{x}": "m n" for x in "qv"},
    },
    "impact_design_derivatives": {"dv_dp": "n p", "dimpulses_dp": "m p"},
    "integrate": "q",
    "inverse_dynamics": "n",
    "inverse_dynamics_derivatives": {"tau": "n", **MATRICES},
    "inverse_dynamics_design_derivatives": "n p",
    "inverse_dynamics_design_hessian": {"d2_dpdp": "p p", **{f"d2_d{x}dp": "n p" for x in "qva"}},
    "inverse_dynamics_design_vjp": "p",
    "forward_dynamics_hessian": {f"d2_{x}": "n n" for x in ("dqdq", "dqdv", "dqdtau", "dvdv")},
    "inverse_dynamics_hessian": {f"d2_{x}": "n n" for x in SECOND},
    "inverse_dynamics_hessian_tensors": {f"d2tau_{x}": "n n n" for x in SECOND},
    "inverse_dynamics_hvp": {"dq": "n", "dv": "n", "da": "n"},
    "inverse_dynamics_jvp": "n",
    "inverse_dynamics_load_derivatives": {"dtau_dforce": "n l 3", "dtau_dtorque": "n l 3", "dtau_dpoint": "n l 3"},
    "inverse_dynamics_regressor": "n 10l",
    "inverse_dynamics_second_order": {"tau": "n", **MATRICES, **{f"d2_{x}": "n n" for x in SECOND}},
    "inverse_dynamics_vjp": {"dq": "n", "dv": "n", "da": "n"},
    "jacobian": {"linear": "k 3 n", "angular": "k 3 n"},
    "kinetic_energy": "",
    "mass_matrix": "n n",
    "mass_matrix_design_derivatives": "n n p",
    "momentum": {"linear": "3", "angular": "3"},
    "momentum_hessian": {"d2_dqdq": "n n", "d2_dqdv": "n n"},
    "momentum_derivatives": {f"d{kind}_d{x}": "3 n" for kind in ("linear", "angular") for x in "qv"},
    "point_motion": dict.fromkeys(("position", "velocity", "acceleration"), "k 3"),
    "point_motion_hessian": {f"d2_{x}": "n n" for x in SECOND},
    "point_motion_derivatives": {
        "dposition_dq": "k 3 n",
        **{f"dvelocity_d{x}": "k 3 n" for x in "qv"},
        **{f"dacceleration_d{x}": "k 3 n" for x in "qva"},
    },
    "point_motion_design_derivatives": {f"d{x}_dp": "k 3 p" for x in ("position", "velocity", "acceleration")},
    "potential_energy": "",
    "project_velocity": "n",
    "transform_design_derivatives": "l 4 4 p",
}
POSITIONS = ("q", "q0", "q1", "q_guess")
STATE = (*POSITIONS, "v", "a", "tau", "dq", "dv", "da", "w", "w_a", "y")
WEIGHTS = dict.fromkeys(("w_position", "w_velocity", "w_acceleration", "w_linear", "w_angular"), "k 3")
WEIGHTS |= dict.fromkeys(("w_forces", "w_errors", "w_rates"), "m")  # and their last axes
FOLLOW = ("dq_dp", "dv_dp", "dtau_dp", "da_dp")
METHODS = {"inverse_dynamics": ("spatial", "lagrange"), "forward_dynamics": ("aba", "crba"),
           "inverse_dynamics_derivatives": ("spatial", "lagrange"), "inverse_dynamics_hvp": ("spatial", "dual"),
           **dict.fromkeys(("constrained_dynamics", "constrained_dynamics_derivatives", "constrained_dynamics_hessian",
                            "constrained_dynamics_design_derivatives", "constrained_dynamics_load_derivatives",
                            "constrained_hybrid_dynamics", "constrained_hybrid_dynamics_derivatives",
                            "constrained_hybrid_dynamics_design_derivatives",
                            "impact", "impact_derivatives", "impact_design_derivatives"),
                           ("range-space", "range-space", "null-space", "direct"))}  # fmt: skip
SHAPES = ((), (), (1,), (2,), (5,), (9,), (17,), (0,), (3, 2), (2, 1, 3), (0, 2), (1, 1))


class Case:
    """A call with random arguments, the same for the same name and seed."""

    def __init__(self, name, seed):
        self.name, self.function = name, getattr(kg, name)
        self.rng = random.Random(f"{name} {seed}")
        self.numbers = np.random.default_rng(self.rng.randrange(2**63))
        self.model, self.kind = mechanism(self.rng)
        self.batch = self.rng.choice(SHAPES if self.model.n < 20 else SHAPES[:4])
        self.scale = self.rng.choice([1.0, 1.0, 1.0, 1.0, 1e-9, 1e3, 1e6, 1e60])
        self.design = design_of(self.rng, self.model)
        self.arguments = {}
        for x, parameter in inspect.signature(self.function).parameters.items():
            if x != "out":
                self.arguments[x] = self.make(x, parameter.default)
        for x, others in (("v", ("a", "w_velocity", "w_acceleration")), ("a", ("w_acceleration",))):
            if self.arguments.get(x, "") is None:
                self.arguments |= dict.fromkeys(self.arguments.keys() & set(others))
        if self.rng.random() < 0.15 and self.model.nq == self.model.nv:  # one array for all
            self.arguments |= dict.fromkeys(self.given, self.arguments[self.given[0]])
        self.spoiled = self.spoil() if self.rng.random() < 0.35 else []
        for x in self.given:
            if getattr(self.arguments[x], "dtype", None) == np.float64 and self.rng.random() < 0.7:
                self.arguments[x] = arranged(self.rng, self.arguments[x])

    def make(self, x, default):
        rng, n = self.rng, self.model.nv
        if x in self.weights:
            missing = default is None and rng.random() < 0.3
            return (
                None if missing else self.numbers.normal(size=(*self.part(), *self.axes(self.weights[x]))) * self.scale
            )
        if x in STATE:
            missing = default is None and rng.random() < 0.3
            return None if missing else self.state(x) * self.scale if x not in POSITIONS else self.configuration()
        if x in FOLLOW:
            return None if rng.random() < 0.4 else self.numbers.normal(size=(*self.part(), n, self.design.p))
        if x == "link":
            several = [rng.choice(self.model.link_names) for _ in range(rng.randint(0, 4))]
            return rng.choice([rng.choice(self.model.link_names), several, tuple(several)])
        if x == "point":
            link = self.arguments["link"]
            several = not isinstance(link, str) and rng.random() < 0.5
            return self.numbers.normal(size=(len(link), 3) if several else 3)
        values = {
            "model": lambda: self.model,
            "design": lambda: self.design,
            "loads": lambda: some_loads(rng, self.model, self.part()),
            "method": lambda: rng.choice(METHODS[self.name]),
            "packed": lambda: rng.random() < 0.5,
            "constraints": lambda: some_constraints(rng, self.model),
            "keep": lambda: rng.sample(self.singles, rng.randint(0, min(2, len(self.singles)))),
            "continuation": lambda: rng.choice([None, False]),
            "tolerance": lambda: default,
            "stabilisation": lambda: rng.choice([None, None, 2.0, (1.0, 3.0)]),
            "redundant": lambda: rng.choice(["error", "error", "least-squares"]),
            "restitution": lambda: rng.choice([0.0, 0.3, 1.0]),
            "actuated": lambda: rng.choice([None, None, rng.sample(self.model.speed_names, rng.randint(0, n))]),
            "prescribed": lambda: rng.sample(self.model.speed_names, rng.randint(0, n)),
            "max_bytes": lambda: default,
            "threads": lambda: None,
        }
        return values[x]()

    @property
    def singles(self):
        """Coordinates of one number."""
        return [name for name in self.model.coordinate_names if name in self.model.speed_names]

    def state(self, x):
        """Random numbers of a part of the state."""
        return self.numbers.normal(size=(*self.part(), self.model.nq if x in POSITIONS else self.model.nv))

    def configuration(self):
        """Coordinates, quaternions of unit length; some start at gimbal lock of their pose."""
        q = self.state("q") * self.scale
        for _, k, _ in self.model.layout.balls:
            turn = self.numbers.normal(size=(*q.shape[:-1], 4)) if self.rng.random() < 0.8 else np.array([1, 0, 1, 0])
            q[..., k : k + 4] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def part(self):
        """A batch shape that broadcasts to that of the case."""
        if self.rng.random() < 0.6:
            return self.batch
        own = tuple(1 if self.rng.random() < 0.4 else size for size in self.batch)
        return own[self.rng.randint(0, len(own)) :]

    def spoil(self):
        """Make one or two arguments hostile, in one number or wholly; returns which."""
        rng = self.rng
        names = rng.sample(list(self.arguments), rng.choice([1, 1, 2]))
        for x in names:
            good = self.arguments[x]
            if isinstance(good, np.ndarray) and rng.random() < 0.6:
                self.arguments[x] = spoiled(rng, good)
            elif isinstance(good, Loads) and rng.random() < 0.6:
                what = rng.choice(["force", "point", "torque"])
                number = spoiled(rng, np.zeros((self.model.n, 3))) if rng.random() < 0.7 else rng.choice(VALUES)
                parts = {"force": good.force, "point": good.point, "torque": good.torque}
                self.arguments[x] = Loads(**parts | {what: number})
            else:
                self.arguments[x] = hostile(rng, good)
            if x == "actuated" and hasattr(self.arguments[x], "__next__"):  # whose length is asked for below
                self.arguments[x] = list(self.arguments[x])
        return names

    @property
    def repeatable(self):
        return not any(hasattr(x, "__next__") for x in self.arguments.values())

    def call(self, **changes):
        """The result, or the words of a KinegradError; warnings are errors."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return self.function(**self.arguments | changes)
            except kg.KinegradError as error:
                message = str(error)
        assert 0 < len(message) <= LONGEST
        assert "\n" not in message
        return message

    # --- what is expected ---------------------------------------------------------------------------------------------

    def number(self, x):
        """What is meant by an argument that was accepted."""
        with np.errstate(over="ignore"):  # of no states, an argument may be anything
            return np.array(self.arguments[x], dtype=float)

    def loads(self):
        """Force, point and torque, (..., n, 3), or nothing."""
        given = self.arguments.get("loads")
        return {} if given is None else given.arrays(self.model)

    @property
    def given(self):
        """Arguments of the state that are there."""
        return [x for x in STATE if self.arguments.get(x) is not None and x not in self.weights]

    @property
    def vectors(self):
        """Those of them that are there."""
        return [x for x in self.weights if self.arguments.get(x) is not None]

    @property
    def weights(self):
        """Arguments that are weights of something else than joints, with their last axes."""
        return {"w": "3"} if self.name == "center_of_mass_hessian" else WEIGHTS

    def common(self):
        """The batch shape of the result."""
        shapes = [self.number(x).shape[:-1] for x in self.given]
        for x in self.vectors:
            shape = self.number(x).shape
            shapes.append(shape[: len(shape) - len(self.axes(self.weights[x]))])
        return np.broadcast_shapes(*shapes, *(x.shape[:-2] for x in self.loads().values()))

    def axes(self, core):
        """The last axes of a result."""
        link = self.arguments.get("link")
        points = [] if link is None or isinstance(link, str) else [len(link)]
        model = self.model
        actuated = self.arguments.get("actuated")  # if not all, names or a matrix
        words = {
            "q": [model.nq],
            "u": [model.nv if actuated is None else np.shape(actuated)[1] if np.ndim(actuated) == 2 else len(actuated)],
            "n": [model.nv],
            "l": [model.n],
            "10l": [10 * model.n],
            "p": [self.design.p],
            "m": [getattr(self.arguments.get("constraints"), "m", 0)],
            "k": points,
        }
        axes = [size for word in core.split() for size in (words[word] if word in words else [int(word)])]
        return (len(model.pattern[0]),) if self.arguments.get("packed") and core == "n n" else tuple(axes)

    def cores(self):
        """The last axes of each array of a result that is to be there, by name."""
        cores = CORES[self.name]
        if isinstance(cores, str):
            return {"": self.axes(cores)}
        words = {"v": ("velocity", "dqdv"), "a": ("acceleration", "dqda", "dvdv")}
        missing = [word for x, named in words.items() if self.arguments.get(x, "") is None for word in named]
        return {x: self.axes(core) for x, core in cores.items() if not any(word in x for word in missing)}

    def alone(self, k):
        """Arguments for one state of the batch."""
        shape, n, found = self.common(), self.model.n, {}
        for x in self.given:
            found[x] = np.broadcast_to(self.number(x), (*shape, self.number(x).shape[-1]))[k].copy()
        for x in self.vectors:
            found[x] = np.broadcast_to(self.number(x), (*shape, *self.axes(self.weights[x])))[k].copy()
        for x in FOLLOW:
            if self.arguments.get(x) is not None:
                found[x] = np.broadcast_to(self.number(x), (*shape, self.model.nv, self.design.p))[k].copy()
        if loads := self.loads():
            found["loads"] = Loads(**{what: np.broadcast_to(x, (*shape, n, 3))[k] for what, x in loads.items()})
        return found


def leaves(result):
    """Arrays of a result by name; the values of packed matrices."""
    if isinstance(result, np.ndarray):
        return {"": result}
    found = {name: x.values if isinstance(x, PackedMatrix) else x for name, x in vars(result).items()}
    return {name: x for name, x in found.items() if x is not None}


def bits(result):
    return result if isinstance(result, str) else {name: x.tobytes() for name, x in leaves(result).items()}
