"""Arguments reach kernels in one form only, however a caller gives them: each other form would be one more compilation.

In a process without the JIT each kernel notes the Numba types of what it is called with, then runs as plain Python; so
nothing is compiled, and yet every signature that would have been is counted.
"""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import simulate as sim
from kinegrad.io.trc_file import Markers
from kinegrad.model.coordinates import CoupledCoordinate
from kinegrad.predictions import lifting
from kinegrad.recordings import inverse_kinematics
from tests.kernels.child import child, output

# Kernels of duals exist for loads that follow the parameters (Pairs) and for loads that do not (arrays).
TWICE = {
    "dual_kernels.hybrid_dynamics", "dual_kernels.torque_gradient", "hyper_kernels.torques", "steps.along_directions",
}  # fmt: skip

OBJECTIVE = sim.Objective(integral=[sim.TorqueSquared()])

SCRIPT = """
import threading
from collections import defaultdict

import numba

found, inside, njit = defaultdict(set), threading.local(), numba.njit

def recording(*arguments, **options):
    if arguments or "forceinline" in options:
        return njit(*arguments, **options)

    def kernel(function):
        def record(*arguments):
            if not getattr(inside, "kernel", False):  # kernels call kernels only where those are inlined
                types = tuple(numba.typeof(x) for x in arguments)
                found[f"{function.__module__}.{function.__name__}"].add(str(types))
            inside.kernel = True
            try:
                return function(*arguments)
            finally:
                inside.kernel = False
        return record

    return kernel

numba.njit = recording
import tests.kernels.compiler.test_signatures as test
test.calls()
for name in sorted(found):
    print(f"{name.removeprefix('kinegrad._kernels.')} {len(found[name])}")
    for one in sorted(found[name]):
        print("   ", one)
"""


def forms(x):
    """One argument, (3, 2, n), in all forms that callers have."""
    apart = np.zeros((*x.shape, 2))
    apart[..., 0] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    bytes_ = np.zeros(x.nbytes + 1, np.uint8)
    odd = bytes_[1:].view(np.float64).reshape(x.shape)
    odd[...] = x
    return {
        "one": x[0, 0].copy(),
        "one, read-only": frozen[0, 0],
        "one, strided": apart[0, 0, :, 0],
        "one, of a list": x[0, 0].tolist(),
        "one, of whole numbers": np.round(x[0, 0]).astype(np.int64),
        "one row": x[:1, :1].copy(),
        "one for each row": x[:, :1].copy(),
        "one for each column": x[0],
        "many": x,
        "many, read-only": frozen,
        "many, by columns": np.asfortranarray(x),
        "many, strided": apart[..., 0],
        "many, backwards": x[::-1],
        "many, the same": np.broadcast_to(x[0, 0], x.shape),
        "many, not aligned": odd,
        "many, of half precision": x.astype(np.float32),
        "none": x[:0, :1],
    }


def calls():
    """Every public function that runs a kernel, with arguments in all forms and in many mixtures of them."""
    rng = np.random.default_rng(8)
    model = kg.samples.random_tree(2, seed=3, kinds=("revolute",))
    model = model.replace(armature=model.armature + 0.5)
    n, link = model.n, model.link_names[-1]
    parameters = [f"{link}.mass", "gravity.z", f"{model.joint_names[0]}.damping", f"{link}.mass"]
    pushed = kg.Loads(force={link: [1.0, 2.0, 3.0]})
    designs = [kg.Design(model, parameters[:p]) for p in (1, 3)]
    designs.append(kg.Design(model, [f"{link}.load.force.x", f"{link}.mass"], loads=pushed))
    for part in (*designs[1]._slopes, *designs[2]._slopes, *designs[2]._load_slopes):
        part.flags.writeable = False  # whether designs are frozen or not
    state = [forms(x) for x in rng.normal(size=(6, 3, 2, n))]
    loads = [forms(x.reshape(3, 2, 3 * n)) for x in rng.normal(size=(3, 3, 2, n, 3))]
    for form in state[0]:  # all arguments alike
        every_call(model, designs, [x[form] for x in state], load(*(x[form] for x in loads)))
        if form in ("one", "many", "none"):  # without loads kernels get the same arrays, whatever the form
            every_call(model, designs, [x[form] for x in state], None)
    names = [name for name in state[0] if name != "none"]
    for _ in range(8):  # any with any
        mixed = [x[names[rng.integers(len(names))]] for x in state]
        acting = load(*(x[names[rng.integers(len(names))]] for x in loads))
        every_call(model, designs, mixed, (None, pushed, acting)[rng.integers(3)])
    from_markers(model, rng)
    of_a_motion()
    engine.pool.measure()


def of_a_motion():
    """All that a solver asks for of a predicted motion, twice."""
    problem = lifting(segments=4)
    x, program = problem.guess(), problem.program
    for k in range(2):
        y = x + 0.01 * k
        program.objective(y), program.gradient(y), program.constraints(y), program.jacobian(y)
        program.hessian(y, 1.0, np.ones(program.m))


def from_markers(model, rng):
    q, links = rng.normal(size=(3, model.n)), model.link_names
    frames = {f"marker{k}": kg.Frame(link, [k, 2, 3 - k]) for k, link in enumerate(links)}
    model = model.replace(frames=frames)
    together = model.replace(coordinates=[CoupledCoordinate("both", (0, 1), (kg.LinearFunction(),) * 2)])
    for sought in (model, together):
        seen = kg.point_motion(sought, q[:, : sought.nq], link=list(frames)).position
        for x in (seen, np.asfortranarray(seen), seen.astype(np.float32)):
            inverse_kinematics(sought, Markers([0.0, 0.1, 0.2], tuple(frames), x)).covariance  # noqa: B018 (which is computed when asked for)


def load(force, point, torque):
    def per_link(x):
        x = np.asarray(x)
        return x.reshape(*x.shape[:-1], x.shape[-1] // 3, 3)

    return kg.Loads(per_link(force), per_link(point), per_link(torque))


def load_shape(model, loads):
    return () if loads is None else np.broadcast_shapes(*(x.shape[:-2] for x in loads.arrays(model).values()))


def every_call(model, designs, state, loads):
    q, v, a, y, dq, dv = state
    shape = np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, v, a)))
    shape = np.broadcast_shapes(shape, load_shape(model, loads))
    n, link = model.n, model.link_names[-1]
    rows = np.empty((*shape, n, 2))[..., 0]
    for out in (None, np.empty((*shape, n)), rows):
        for method in ("spatial", "lagrange"):
            kg.inverse_dynamics(model, q, v, a, loads=loads, method=method, out=out)
        for method in ("aba", "crba"):
            kg.forward_dynamics(model, q, v, a, loads=loads, method=method, out=out)
    kg.bias_forces(model, q, v, loads=loads)
    kg.gravity_forces(model, q)
    kg.mass_matrix(model, q)
    kg.mass_matrix(model, q, out=np.empty((*np.shape(q)[:-1], n, n)))
    kg.hybrid_dynamics(model, q, v, a, y, prescribed=model.joint_names[:1], loads=loads)
    kg.kinetic_energy(model, q, v)
    kg.potential_energy(model, q)
    kg.center_of_mass(model, q)
    kg.momentum(model, q, v)
    kg.inverse_dynamics_regressor(model, q, v, a)
    for given in ((q,), (q, v), (q, v, a)):
        kg.forward_kinematics(model, *given)
        kg.forward_kinematics_derivatives(model, *given)
        for points in ({"link": link}, {"link": [link] * 2, "point": [[1, 2, 3], [4, 5, 6]]}):
            kg.point_motion(model, *given, **points)
            kg.point_motion_derivatives(model, *given, **points)
    kg.jacobian(model, q, link=link, point=(1, 2, 3))
    kg.center_of_mass_derivatives(model, q)
    kg.center_of_mass_hessian(model, q, [1, 2, 3])
    kg.momentum_hessian(model, q, v, w_linear=[1, 2, 3])
    kg.point_motion_hessian(model, q, v, a, link=link, w_velocity=[1, 2, 3])
    kg.momentum_derivatives(model, q, v)
    for method, packed in product(("spatial", "lagrange"), (False, True)):
        kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads, method=method, packed=packed)
    kg.forward_dynamics_derivatives(model, q, v, a, loads=loads)
    kg.forward_dynamics_hessian(model, q, v, a, y, loads=loads)
    kg.inverse_dynamics_jvp(model, q, v, a, dq, dv, y, loads=loads)
    kg.inverse_dynamics_vjp(model, q, v, a, y, loads=loads)
    for packed in (False, True):
        kg.inverse_dynamics_hessian(model, q, v, a, y, loads=loads, packed=packed)
        kg.inverse_dynamics_second_order(model, q, v, a, y, loads=loads, packed=packed)
    for method in ("spatial", "dual"):
        kg.inverse_dynamics_hvp(model, q, v, a, y, dq, dv, y, loads=loads, method=method)
    along = [np.asarray(x)[..., None] for x in (dq, dv, y)]
    for mode in ("tangent", "structured"):
        kg.directional(kg.mass_matrix, model, [q], along[:1], mode=mode)
        kg.directional(kg.inverse_dynamics, model, [q, v, a], along, mode=mode, loads=loads)
        kg.directional(kg.forward_dynamics, model, [q, v, a], along, mode=mode, loads=loads)
    if loads is not None:
        kg.inverse_dynamics_load_derivatives(model, q, loads=loads)
    tied = kg.ConstraintSet(model, [kg.Given(model.joint_names[0])])
    kg.constrained_dynamics(model, tied, q, v, a, loads=loads)
    kg.directional(kg.constrained_dynamics, model, [q, v, a], along, mode="tangent", constraints=tied, loads=loads)
    kg.constrained_dynamics_derivatives(model, tied, q, v, a, loads=loads, stabilisation=1.0)
    kg.constrained_dynamics_hessian(model, tied, q, v, a, w_a=y, loads=loads, stabilisation=1.0)
    kg.impact(model, tied, q, v, restitution=[0.5])
    kg.impact_derivatives(model, tied, q, v)
    tied.closure(q)
    tied.velocity(q, v)
    tied.derivatives(q, v, a)
    tied.curvature(q, [1.0])
    kg.constraint_design_derivatives(designs[1], tied, q, v, a)
    kg.constraint_jacobian_design_derivatives(designs[1], tied, q)
    kg.constraint_design_hessian(designs[1], tied, q, v, [1.0], [1.0])
    strap = kg.SpringDamper(link, other_point=[3, 2, 1], stiffness=5.0, rest_length=0.2)
    held = model.replace(elements={"strap": strap})
    kg.bias_forces(held, q, v, loads=loads)
    kg.inverse_dynamics_derivatives(held, q, v, a, loads=loads)
    kg.inverse_dynamics_hvp(held, q, v, a, y, dq, dv, y, loads=loads)
    kg.inverse_dynamics_design_derivatives(kg.Design(held, ["strap.stiffness"]), q, v, a, loads=loads)
    kg.inverse_dynamics_design_hessian(kg.Design(held, ["strap.stiffness"]), q, v, a, y, loads=loads)
    bent = model.replace(coordinates=[CoupledCoordinate("bent", (n - 1,), (kg.PolynomialFunction([0, 1, 0.1]),))])
    kg.inverse_dynamics(bent, q, v, a, loads=loads)
    kg.forward_dynamics(bent, q, v, a, loads=loads, method="crba")
    kg.forward_dynamics_derivatives(bent, q, v, a, loads=loads)
    kg.hybrid_dynamics(bent, q, v, a, y, prescribed=["bent"], loads=loads)
    for design in designs:
        acting = None if design.loads is not None else loads
        by_design(design, q, v, a, y, dq, dv, acting)
        in_steps(design, q, v, a, acting)


def by_design(design, q, v, a, y, dq, dv, loads):
    model, p, link = design.model, design.p, design.model.link_names[-1]
    held = {"prescribed": model.joint_names[:1], "loads": loads}
    shape = np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, v, a, y)))
    shape = np.broadcast_shapes(shape, load_shape(model, loads))
    follow = {}
    for name, x in (("dq_dp", dq), ("dv_dp", dv)):
        if np.ndim(x) == 1 or np.shape(x)[:-1] == shape:
            follow[name] = np.repeat(np.asarray(x)[..., None], p, axis=-1)
    kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads)
    kg.inverse_dynamics_design_vjp(design, q, v, a, y, loads=loads)
    kg.inverse_dynamics_design_hessian(design, q, v, a, y, loads=loads)
    kg.mass_matrix_design_derivatives(design, q)
    kg.transform_design_derivatives(design, q)
    kg.point_motion_design_derivatives(design, q, v, a, link=link, point=(1, 2, 3))
    kg.energy_design_derivatives(design, q, v)
    kg.hybrid_dynamics_design_derivatives(design, q, v, a, y, **held)
    kg.forward_dynamics_design_derivatives(design, q, v, a, loads=loads)
    if follow:
        kg.hybrid_dynamics_design_derivatives(design, q, v, a, y, **held, **follow)
        if np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, v, a))) == shape:
            kg.forward_dynamics_design_derivatives(design, q, v, a, loads=loads, **follow)


def in_steps(design, q, v, a, loads):
    """Compiled steps, whose loads are one for all states."""
    model = design.model
    if not np.size(q) or not np.size(v) or load_shape(model, loads):
        return
    shape = np.broadcast_shapes(np.shape(q), np.shape(v))
    q, v = (np.broadcast_to(x, shape) for x in (q, v))
    run = {"step": np.float32(0.01), "steps": np.int32(1), "loads": loads}
    torques = [None, a] if np.ndim(a) == 1 else [None]
    if np.ndim(a) == q.ndim == 3:
        torques.append(np.broadcast_to(a, np.broadcast_shapes(q.shape, np.shape(a)))[None])
    for tau in torques:
        if tau is None or np.ndim(tau) == 1 or np.shape(tau)[1:] == q.shape:
            sim.simulate_fixed(model, q, v, tau=tau, design=design, **run)
            sim.adjoint_gradient(model, q, v, OBJECTIVE, tau=tau, design=design, **run)
    count = q.size // model.n
    if count > 1 and design.loads is None:
        models = [design.at(design.values * (1 + k)).model for k in range(count)]
        sim.simulate_fixed(models, q.reshape(count, -1), v.reshape(count, -1), **run)


@pytest.mark.slow
def test_every_kernel_is_compiled_once():
    # all six states in one block: types do not depend on the width, and plain Python takes as long for wide lanes
    printed = output(child(SCRIPT, NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="8"))
    counts = [line.split() for line in printed.splitlines() if not line.startswith(" ")]
    found = {name: int(count) for name, count in counts}
    assert found == {name: 2 if name in TWICE else 1 for name in kernels()}, printed


def kernels():
    """All kernels there are, as the sources have them."""
    return {
        f"{path.stem}.{name}"
        for path in Path(kg.__file__).with_name("_kernels").rglob("*.py")
        for name in re.findall(r"^@kernel\ndef (\w+)", path.read_text(), re.MULTILINE)
    }
