"""Derivatives by design parameters: masses, moments, lengths, Denavit–Hartenberg rows, springs, screws, gravity.

Against the oracle, with the constant itself stepped into the complex plane; then identities, batches, changed models,
and what is refused.
"""

import pickle
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import DH, Design, Inertia, InputError, Model, SingularError, samples
from kinegrad._engine import threads
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import assert_close, parts, random_loads, random_state, some_now, tree
from tests.reference import oracle
from tests.test_forward_dynamics import conditioned

# A dual number's slope is rounded like its value, to some 1e-16 of the terms that make it up.  By the largest entry of
# all columns, 2e-15 is the worst seen of torques, 2e-14 of accelerations; single columns may be far smaller.
CLOSE = 1e-11
h = oracle.STEP
XYZ = "xyz"
MOMENTS = ("xx", "yy", "zz", "xy", "xz", "yz")
PER_JOINT = ("stiffness", "rest", "damping", "armature")
ROW = ("theta", "d", "a", "alpha")


# --- constants, in the oracle -------------------------------------------------------------------------------


def turn(axis, angle):
    """Rotation by a complex angle as small as h: cos is 1."""
    T = np.eye(4, dtype=complex)
    T[:3, :3] += oracle.skew(np.eye(3)[axis]) * angle
    return T


def shift(axis, by):
    T = np.eye(4, dtype=complex)
    T[axis, 3] += by
    return T


def stepped(model, convention="distal", **steps):
    """The model with each named constant moved by i·h times its coefficient; knows nothing of kinegrad's names."""
    fields = {}

    def field(what):
        return fields.setdefault(what, np.array(getattr(model, what), dtype=complex))

    for name, coefficient in steps.items():
        by = 1j * h * coefficient
        if name.startswith("gravity."):
            field("gravity")[XYZ.index(name[-1])] += by
            continue
        owner, quantity = split(model, name)
        head, _, tail = quantity.partition(".")
        i = (model.link_names if head in ("mass", "com", "inertia") else model.joint_names).index(owner)
        if head == "inertia":
            j, k = XYZ.index(tail[0]), XYZ.index(tail[1])
            field(head)[i, j, k] += by
            if j != k:
                field(head)[i, k, j] += by
        elif head == "com":
            field(head)[i, XYZ.index(tail)] += by
        elif head in ("placement", "tip"):
            field(head)[i, XYZ.index(tail), 3] += by
        elif head == "pitch":
            joints = fields.setdefault("joints", list(model.joints))
            joints[i] = replace(joints[i])
            object.__setattr__(joints[i], "pitch", joints[i].pitch + by)
        elif head in ROW:
            # Rz, Tz commute, and Rx, Tx: whatever the row, a step of one of its numbers multiplies P or F
            step = {"theta": turn(2, by), "d": shift(2, by), "a": shift(0, by), "alpha": turn(0, by)}[head]
            if head in ("theta", "d"):
                field("tip")[i] = step @ field("tip")[i]
            else:
                what = "tip" if convention == "distal" else "placement"
                field(what)[i] = field(what)[i] @ step
        else:
            field(head)[i] += by
    return oracle.with_constants(model, **fields)


def split(model, name):
    for owner in sorted({*model.link_names, *model.joint_names}, key=len, reverse=True):
        if name.startswith(owner + "."):
            return owner, name[len(owner) + 1 :]
    raise AssertionError(name)


def kinds_of_constants(model, rng, row=False):
    """One constant of every kind, of links and joints at random; a massless link's, if there is one."""
    links, joints = model.link_names, model.joint_names
    quantities = ["mass", *(f"com.{x}" for x in XYZ), *(f"inertia.{xy}" for xy in MOMENTS)]
    names = [f"{rng.choice(links)}.{quantity}" for quantity in quantities]
    massless = [link for link, mass in zip(links, model.mass, strict=True) if mass == 0]
    if massless:
        names += [f"{rng.choice(massless)}.mass", f"{rng.choice(massless)}.inertia.xy"]
    where = [f"{what}.{x}" for what in ("placement", "tip") for x in XYZ]
    names += [f"{rng.choice(joints)}.{what}" for what in PER_JOINT]
    placed = rng.permutation(joints)  # by a row, or otherwise
    names += [f"{rng.choice(placed[: len(joints) // 2] if row else placed)}.{what}" for what in where]
    names += [f"{rng.choice(placed[len(joints) // 2 :])}.{what}" for what in (ROW if row else ())]
    names += [f"{joint}.pitch" for joint, made in zip(joints, model.joints, strict=True) if made.kind == "screw"][:2]
    return list(dict.fromkeys([*names, *(f"gravity.{x}" for x in XYZ)]))


def random_dh(n, seed, convention):
    """A tree from a table whose first row has neither a nor alpha, as the first row of Craig's tables."""
    rng = np.random.default_rng([seed, 5])
    variables = ("theta", "-theta", "d", "-d")
    rows = [DH(*rng.normal(size=4), variable=str(rng.choice(variables))) for _ in range(n)]
    rows[0] = DH(rows[0].theta, rows[0].d)
    rows[-1] = DH(*rng.normal(size=4), pitch=0.1)
    inertias = [Inertia.box(1 + rng.random(), 0.1 + rng.random(3), rng.normal(size=3)) for _ in range(n)]
    parents = [-1, *(int(rng.integers(i)) for i in range(1, n))]
    return Model.from_dh(rows, parents=parents, convention=convention, inertias=inertias, name=f"{convention}{seed}")


# --- against the oracle -------------------------------------------------------------------------------------


def quantities(model, q, v, a, tau, loads):
    """τ, M, the acceleration by τ, T, both energies, of one state; complex-safe."""
    M = oracle.mass_matrix(model, q)
    found = oracle.regular_lagrangian(model, q, v, a, *loads)
    acceleration = np.linalg.solve(M, tau - (found - M @ a))
    energies = oracle.kinetic_energy(model, q, v), oracle.potential_energy(model, q)
    return found, M, acceleration, oracle.transforms(model, q), *energies


def desired(model, steps, state, loads, convention):
    """Derivatives of the quantities by each parameter, on the last axis."""
    columns = [quantities(stepped(model, convention, **step), *state, loads) for step in steps]
    return [np.stack([np.imag(x) / h for x in column], axis=-1) for column in zip(*columns, strict=True)]


def worst(actual, expected):
    """The largest error of a column, by its largest entry, or by a thousandth of that of all columns.

    Where a parameter changes nothing, such as the place of a mechanism in the world, terms cancel but for rounding.
    """
    assert actual.shape == expected.shape
    error, scale = (np.abs(x).max(axis=tuple(range(actual.ndim - 1))) for x in (actual - expected, expected))
    return (error / np.maximum(scale, max(1e-3 * scale.max(), 1e-300))).max()


def check(model, names, seed=0, convention="distal", parameters=None, loaded=True):
    """All derivatives by the constants, or by `parameters` with their combinations, against complex steps."""
    q, v, a = random_state(model, seed)
    tau = 10 * np.random.default_rng([seed, 3]).normal(size=model.n)
    loads = random_loads(model, seed) if loaded else None
    design = Design(model, parameters or names)
    steps = [{spec: 1.0} if isinstance(spec, str) else spec for spec in design.parameters.values()]
    given = parts(loads) if loaded else (None, None, None)
    dtau, dM, da, dT, dkinetic, dpotential = desired(model, steps, (q, v, a, tau), given, convention)

    assert worst(kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads), dtau) <= CLOSE
    assert worst(kg.mass_matrix_design_derivatives(design, q), dM) <= CLOSE
    assert worst(kg.transform_design_derivatives(design, q), dT) <= CLOSE
    energies = kg.energy_design_derivatives(design, q, v)
    assert worst(energies.dkinetic_dp[None], dkinetic[None]) <= CLOSE
    assert worst(energies.dpotential_dp[None], dpotential[None]) <= CLOSE
    # M⁻¹ enlarges the noise of torques; a(τ) itself is no more exact
    found = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads)
    assert worst(found, da) <= max(CLOSE, 10 * conditioned(kg.mass_matrix(model, q)))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_points_equal_complex_step(seed):
    model = tree(seed)
    names = kinds_of_constants(model, np.random.default_rng(seed))
    q, v, a = random_state(model, seed)
    point, links = np.array([0.1, -0.2, 0.3]), [model.link_names[0], model.link_names[-1]]
    design = Design(model, names)
    found = kg.point_motion_design_derivatives(design, q, v, a, link=links, point=point)
    varied = [stepped(model, **{name: 1.0}) for name in names]
    for k, link in enumerate(links):
        i = model.link_index(link)
        moved = [oracle.point_motion(m, q, v, a, i, point) for m in varied]
        for what, columns in zip(vars(found), zip(*moved, strict=True), strict=True):
            expected = np.stack([np.imag(x) / h for x in columns], axis=-1)
            actual = getattr(found, what)[k]
            scale = max(1.0, np.abs(expected).max())
            assert np.abs(actual - expected).max() <= CLOSE * scale
    alone = kg.point_motion_design_derivatives(design, q, link=links[1], point=point)
    assert np.array_equal(alone.dposition_dp, found.dposition_dp[1])
    assert alone.dvelocity_dp is None


@pytest.mark.parametrize("seed", some_now(range(200), 40))
def test_random_trees_equal_complex_step(seed):
    """Every kind of constant, on any kinds of joints, massless links, springs, dampers, rotors, loads."""
    model = tree(seed)
    check(model, kinds_of_constants(model, np.random.default_rng([seed, 9])), seed, loaded=seed % 3 > 0)


def test_trees_have_massless_links_and_screws():
    """Otherwise half of the constants would not be tried."""
    models = [tree(seed) for seed in range(70)]
    assert sum((model.mass == 0).any() for model in models) > 20
    assert sum(any(joint.kind == "screw" for joint in model.joints) for model in models) > 20


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_samples_equal_complex_step(name):
    model = samples.human43(thickness=0.1) if name == "human43" else samples.SAMPLES[name]()
    row = name in ("human43", "puma560", "two_link")
    check(model, kinds_of_constants(model, np.random.default_rng(4), row), 2)


@pytest.mark.parametrize("convention", ["distal", "proximal"])
@pytest.mark.parametrize("seed", range(8))
def test_all_rows_equal_complex_step(convention, seed):
    """θ, d, a and α of every joint; the first row alone would not tell the convention."""
    model = random_dh(5, seed, convention)
    check(model, [f"{joint}.{what}" for joint in model.joint_names for what in ROW], seed, convention)


def test_puma_rows_equal_complex_step():
    model = samples.puma560()
    check(model, [f"{joint}.{what}" for joint in model.joint_names for what in ROW])


@pytest.mark.parametrize("seed", range(10))
def test_linear_combinations(seed):
    """As the oracle with all constants stepped at once, and as the sum of the parts."""
    model, rng = tree(seed + 100), np.random.default_rng(seed)
    names = kinds_of_constants(model, rng)
    shared = names[1:]
    specs = {f"p{k}": {str(x): float(rng.normal()) for x in rng.choice(shared, 4, replace=False)} for k in range(6)}
    da = check(model, names, seed, parameters={**specs, "plain": names[0]})
    q, v, _ = random_state(model, seed)
    tau = 10 * np.random.default_rng([seed, 3]).normal(size=model.n)
    alone = kg.forward_dynamics_design_derivatives(Design(model, names), q, v, tau, loads=random_loads(model, seed))
    sums = [sum(c * alone[:, names.index(x)] for x, c in spec.items()) for spec in specs.values()]
    assert_close(da, np.stack([*sums, alone[:, 0]], axis=-1), 1e-12)  # of columns up to ten times as large


@pytest.mark.parametrize("seed", range(20))
def test_total_derivative_equals_complex_step(seed):
    """[anderson2002] (9): state and torques follow the parameters, too."""
    model, rng = tree(seed), np.random.default_rng([seed, 8])
    loads = random_loads(model, seed)
    q, v, _ = random_state(model, seed)
    tau = 10 * rng.normal(size=model.n)
    names = [str(x) for x in rng.permutation(kinds_of_constants(model, rng))[:8]]
    follow = dict(zip(("dq_dp", "dv_dp", "dtau_dp"), rng.normal(size=(3, model.n, len(names))), strict=True))
    given = [{}, *({name: value} for name, value in follow.items()), follow]
    design = Design(model, names)
    for some in given:
        columns = []
        for k, name in enumerate(names):
            moved = stepped(model, **{name: 1.0})
            x, dx, f = (
                u + 1j * h * some[key][:, k] if key in some else u for key, u in zip(follow, (q, v, tau), strict=True)
            )
            bias = oracle.regular_lagrangian(moved, x, dx, 0 * q, *parts(loads))
            columns.append(np.imag(np.linalg.solve(oracle.mass_matrix(moved, x), f - bias)) / h)
        found = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads, **some)
        assert worst(found, np.stack(columns, axis=-1)) <= CLOSE


# --- identities ---------------------------------------------------------------------------------------------


def all_constants(model):
    """Every constant there is; of the joints' rows none."""
    links = ["mass", *(f"com.{x}" for x in XYZ), *(f"inertia.{xy}" for xy in MOMENTS)]
    joints = [*(f"{what}.{x}" for what in ("placement", "tip") for x in XYZ), *PER_JOINT]
    return [f"{link}.{x}" for link in model.link_names for x in links] + [
        f"{joint}.{x}" for joint in model.joint_names for x in joints
    ]


@pytest.mark.parametrize("seed", range(20))
def test_accelerations_and_torques(seed):
    """M(p) a + c(p) = τ at fixed τ:  ∂a/∂p = −M⁻¹ ∂τ/∂p, with a the acceleration by τ."""
    model, loads = tree(seed), random_loads(tree(seed), seed)
    q, v, tau = random_state(model, seed)
    design = Design(model, all_constants(model))
    a = kg.forward_dynamics(model, q, v, tau, loads=loads)
    dtau = kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads)
    da = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads)
    assert_close(da, -np.linalg.solve(kg.mass_matrix(model, q), dtau), CLOSE)


@pytest.mark.parametrize("seed", range(20))
def test_energies_and_mass_matrix(seed):
    """∂T/∂p = ½ vᵀ ∂M/∂p v; ∂M/∂p = ∂²τ/∂a∂p, symmetric, zero where the tree says so."""
    model = tree(seed)
    q, v, a = random_state(model, seed)
    design = Design(model, all_constants(model))
    dM = kg.mass_matrix_design_derivatives(design, q)
    assert_close(np.einsum("i,ijp,j->p", v, dM, v) / 2, kg.energy_design_derivatives(design, q, v).dkinetic_dp, 1e-13)
    assert np.array_equal(dM, dM.swapaxes(0, 1))
    apart = np.ones((model.n, model.n), dtype=bool)
    apart[model.topology.pattern] = False
    assert not dM[apart].any()
    moving, still = (kg.inverse_dynamics_design_derivatives(design, q, v, x) for x in (a, 0 * a))
    assert_close(np.einsum("ijp,j->ip", dM, a), moving - still, 1e-12)  # a difference of larger numbers


@pytest.mark.parametrize("seed", range(5))
def test_potential_energy_and_gravity_forces(seed):
    """∂²V/∂q∂p both ways: the torque at rest, without loads, is ∂V/∂q."""
    model = tree(seed)
    q, _, _ = random_state(model, seed)
    design = Design(model, all_constants(model))
    still = kg.inverse_dynamics_design_derivatives(design, q, 0 * q, 0 * q)
    for k in range(model.n):
        e = 1e-5 * np.eye(model.n)[k]
        up, down = (kg.energy_design_derivatives(design, x, 0 * q).dpotential_dp for x in (q + e, q - e))
        assert np.abs((up - down) / 2e-5 - still[k]).max() <= 1e-8 * np.abs(still).max()  # a central difference


def test_directions_of_the_state_are_the_other_derivatives():
    """With parameters that do nothing, dq/dp = 1 gives ∂a/∂q, and so on."""
    model = samples.puma560()
    q, v, tau = random_state(model, batch=(3,))
    design = Design(model, [f"{joint}.rest" for joint in model.joint_names])  # no springs
    each = kg.forward_dynamics_derivatives(model, q, v, tau)
    one = np.eye(model.n)
    for name, expected in (("dq_dp", each.da_dq), ("dv_dp", each.da_dv), ("dtau_dp", each.da_dtau)):
        found = kg.forward_dynamics_design_derivatives(design, q, v, tau, **{name: one})
        assert_close(found, expected, 1e-12)


def test_pendulum_on_paper():
    """A point mass m on a rod of length L: τ = mL²q̈ + mgL sin q + k (q − q₀) + d q̇ + J q̈."""
    m, L, g, k, rest, d, J = 1.3, 0.7, 9.81, 2.0, 0.1, 0.3, 0.05
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("y"), link="bob", inertia=Inertia.point(m, [0, 0, -L]))
    model = builder.build().replace(gravity=(0, 0, -g), stiffness=[k], rest=[rest], damping=[d], armature=[J])
    names = ["bob.mass", "bob.com.z", "gravity.z", "hinge.stiffness", "hinge.rest", "hinge.damping", "hinge.armature"]
    names += ["bob.inertia.yy", "bob.inertia.xy", "hinge.placement.x", "hinge.tip.z"]
    q, v, a = 0.4, 1.5, -2.0
    s = np.sin(q)
    by_length = -(2 * m * L * a + m * g * s)
    expected = [L**2 * a + g * L * s, by_length, -m * L * s, q - rest, -k, v, a, a, 0, 0, by_length]
    found = kg.inverse_dynamics_design_derivatives(Design(model, names), [q], [v], [a])
    assert_close(found[0], expected, 1e-15 * 4)


# --- batches and threads ------------------------------------------------------------------------------------


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


def everything(design, q, v, x, loads=None, **options):
    """All derivatives."""
    energies = kg.energy_design_derivatives(design, q, v, **options)
    return [
        kg.inverse_dynamics_design_derivatives(design, q, v, x, loads=loads, **options),
        kg.forward_dynamics_design_derivatives(design, q, v, x, loads=loads, **options),
        kg.mass_matrix_design_derivatives(design, q, **options),
        kg.transform_design_derivatives(design, q, **options),
        energies.dkinetic_dp,
        energies.dpotential_dp,
    ]


@pytest.mark.parametrize("p", [1, WIDTH, 11])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (10,), (11,), (23,), (0,), (2, 0)])
def test_shapes(p, batch):
    model = samples.puma560()
    design, n = Design(model, all_constants(model)[:p]), model.n
    found = everything(design, *random_state(model, batch=batch), random_loads(model, batch=batch))
    shapes = [(n, p), (n, p), (n, n, p), (n, 4, 4, p), (p,), (p,)]
    assert [x.shape for x in found] == [(*batch, *shape) for shape in shapes]
    assert all(x.dtype == np.float64 and x.flags.c_contiguous and x.flags.writeable for x in found)


@pytest.mark.parametrize("loaded", [True, False])
def test_lanes_over_states_or_over_directions(loaded):
    """More states than parameters, or fewer: each state's numbers are those it has alone, to the bit."""
    model = tree(6)
    design = Design(model, all_constants(model)[::7])
    for states in (2, design.p - 1, design.p, 3 * design.p + 1):
        state, loads = random_state(model, batch=(states,)), random_loads(model, batch=(states,)) if loaded else None
        whole = everything(design, *state, loads)
        for k in (0, 1, states - 1):
            own = None if loads is None else kg.Loads(*(x[k] for x in parts(loads)))
            for x, y in zip(everything(design, *(x[k] for x in state), own), whole, strict=True):
                same_bits(x, y[k])


def test_parameters_do_not_see_each_other():
    model = tree(6)
    names = all_constants(model)[::5]
    state = random_state(model, batch=(3,))
    whole = everything(Design(model, names), *state)
    for k in (0, len(names) // 2, len(names) - 1):
        for x, y in zip(everything(Design(model, [names[k]]), *state), whole, strict=True):
            same_bits(x[..., 0], np.ascontiguousarray(y[..., k]))


def test_following_states_in_batches():
    """Lanes over states or directions, with derivatives of the state that broadcast."""
    model = samples.puma560()
    design = Design(model, all_constants(model)[:7])
    rng = np.random.default_rng(3)
    for states in (3, 20):
        q, v, tau = random_state(model, batch=(states,))
        follow = {name: rng.normal(size=(states, model.n, 7)) for name in ("dq_dp", "dv_dp", "dtau_dp")}
        follow["dv_dp"] = follow["dv_dp"][:1]
        whole = kg.forward_dynamics_design_derivatives(design, q, v, tau, **follow)
        for k in range(states):
            own = {name: x[min(k, len(x) - 1)] for name, x in follow.items()}
            same_bits(kg.forward_dynamics_design_derivatives(design, q[k], v[k], tau[k], **own), whole[k])


def test_broadcasting_and_read_only_inputs():
    model = tree(3)
    design = Design(model, all_constants(model)[:5])
    q, v, a = random_state(model, batch=(7,))
    full = everything(design, q, np.broadcast_to(v[0], q.shape), a[:1].repeat(7, axis=0))
    for x in (q, v, a):
        x.flags.writeable = False
    for x, y in zip(everything(design, q, v[0], a[:1]), full, strict=True):
        same_bits(x, y)
    one = samples.multi_pendulum(1)
    following = np.broadcast_to(1.0, (1, 1))
    single = Design(one, [f"{one.link_names[0]}.mass"])
    found = kg.forward_dynamics_design_derivatives(single, [0.3], [0.0], [1.0], dtau_dp=following, dq_dp=following)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("states", [5, 90])
def test_threads_give_the_same_bits(states):
    model = samples.human43(thickness=0.1)
    design = Design(model, [f"{link}.mass" for link in model.link_names])
    state, loads = random_state(model, batch=(states,)), random_loads(model)
    assert states * design.p * model.n > 2 * threads._GRAIN, "otherwise threads are not used"
    one, two = (everything(design, *state, loads, threads=count) for count in (1, 2))
    for x, y in zip(one, two, strict=True):
        same_bits(x, y)
    with pytest.raises(InputError, match="`threads` is 0"):
        everything(design, *state, threads=0)


# --- names, values, changed models --------------------------------------------------------------------------


def test_names_and_values():
    arm = samples.two_link()
    design = Design(arm, {"m": "forearm.mass", "L": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "g": "gravity.y"})
    assert design.names == ("m", "L", "g")
    assert design.p == 3
    assert_close(design.values, [arm.mass[1], 0.0, arm.gravity[1]], 0.0)
    assert "m=0.5" in repr(design)
    assert Design(arm, ("elbow.a", "elbow.alpha")).values.tolist() == [0.4, 0.0]
    assert Design(arm, ["forearm.inertia.yx"]).values == arm.inertia[1, 0, 1]
    again = pickle.loads(pickle.dumps(design))
    assert again.names == design.names
    state = random_state(arm)
    same_bits(*(kg.inverse_dynamics_design_derivatives(d, *state) for d in (design, again)))


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_values_of_rows(convention):
    rows = [DH(0.3, 0.1), DH(-2.0, 0.2, 0.4, 1.2), DH(3.0, -0.3, -0.5, -3.0, variable="-d")]
    model = Model.from_dh(rows, convention=convention)
    names = [f"{joint}.{what}" for joint in model.joint_names for what in ROW]
    assert_close(Design(model, names).values, [getattr(row, what) for row in rows for what in ROW], 1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_changed_model_round_trip(seed):
    """at(values) changes exactly what is named, and back."""
    model = random_dh(4, seed, "proximal") if seed % 2 else tree(seed + 8)
    rng = np.random.default_rng(seed)
    heavy = [link for link, mass in zip(model.link_names, model.mass, strict=True) if mass]
    joint = model.joint_names[-1]
    names = [f"{heavy[0]}.mass", f"{heavy[-1]}.com.y", f"{joint}.tip.y", f"{joint}.rest", "gravity.x"]
    if seed % 2:
        names = [*names[:2], *names[3:], *(f"{x}.{what}" for x in model.joint_names for what in ROW), f"{joint}.pitch"]
    design = Design(model, names)
    values = design.values + 0.1 * rng.random(design.p)
    moved = design.at(values)
    assert moved.names == design.names
    assert_close(moved.values, values, 1e-14)
    assert moved.model != model
    back = moved.at(design.values).model
    for what in ("mass", "com", "inertia", "placement", "tip", "gravity", "rest", "stiffness"):
        assert np.abs(getattr(back, what) - getattr(model, what)).max() <= 1e-14
    assert design.at(design.values).model.mass.tolist() == model.mass.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_finite_differences_of_changed_models(seed):
    """at() and the derivatives mean the same parameters."""
    model = random_dh(4, seed, ("distal", "proximal")[seed % 2])
    joints, links = model.joint_names, model.link_names
    specs = {f"{joint} {what}": {f"{joint}.{what}": 1.0} for joint in joints for what in ROW}
    specs |= {"m": f"{links[1]}.mass", "I": f"{links[2]}.inertia.xz", "pitch": f"{joints[-1]}.pitch"}
    specs |= {"mix": {f"{joints[1]}.a": 2.0, f"{links[1]}.com.x": -1.0, f"{joints[2]}.theta": 0.5, "gravity.z": 3.0}}
    design = Design(model, specs)
    q, v, tau = random_state(model, seed)
    found = kg.forward_dynamics_design_derivatives(design, q, v, tau)
    step = 1e-5
    for k, e in enumerate(step * np.eye(design.p)):
        up, down = (kg.forward_dynamics(design.at(design.values + x).model, q, v, tau) for x in (e, -e))
        # truncation, step² times third derivatives, and rounding, 1e-16 / step times conditioning
        assert np.abs((up - down) / (2 * step) - found[:, k]).max() <= 1e-6 * np.abs(found).max()


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_rows_without_a_and_alpha_keep_their_convention(convention):
    """All frames are the same in both conventions; derivatives by a and alpha are not."""
    rng = np.random.default_rng(8)
    rows = [DH(theta, d) for theta, d in rng.normal(size=(4, 2))]
    bodies = [Inertia.box(1 + rng.random(), 0.1 + rng.random(3), rng.normal(size=3)) for _ in rows]
    model = Model.from_dh(rows, convention=convention, inertias=bodies, name=convention)
    names = [f"{joint}.{what}" for joint in model.joint_names for what in ROW]
    copies = model, pickle.loads(pickle.dumps(model)), model.replace(name="other", mass=2 * model.mass), replace(model)
    for each in copies:
        check(each, names, seed=8, convention=convention)
    design = Design(model, names)
    moved = design.at(design.values + 0.1)
    check(moved.model, names, seed=9, convention=convention)
    other = {"distal": "proximal", "proximal": "distal"}[convention]
    assert Model.from_dh(rows, convention=other, inertias=bodies, name=convention) != model


def test_numbers_of_rows_read_back_as_given():
    """Angles beyond half a turn, too, and after any number of changes."""
    arm = Model.from_dh([(3.5, 0.1, 0.4, -4.0), (0.0, 0.0, 0.3, 7.0)])
    design = Design(arm, ["joint0.theta", "joint1.alpha", "joint0.alpha"])
    assert design.values.tolist() == [3.5, 7.0, -4.0]
    moved = design.at([-9.1, 0.3, 1e3]).at([-9.1, 0.7, 100.3])
    assert moved.values.tolist() == [-9.1, 0.7, 100.3]
    with pytest.warns(kg.UnitsWarning, match="looks like degrees"):
        assert moved.model == Model.from_dh([(-9.1, 0.1, 0.4, 100.3), (0.0, 0.0, 0.3, 0.7)])
    scaled = arm.replace(joint_names=["hip", "knee"], gravity=(0, 0, 0))
    assert Design(scaled, ["hip.theta"]).values == 3.5


def test_rows_do_not_outlive_what_they_place():
    arm = samples.two_link()
    tip = arm.tip.copy()
    assert arm.replace(tip=tip).dh == arm.dh, "the same place, so the same row"
    tip[1, 0, 3] = 0.7
    moved = arm.replace(tip=tip)
    assert Design(moved, ["shoulder.a"]).values == 0.4
    with pytest.raises(InputError, match=r"'elbow' .* not placed by a Denavit–Hartenberg row"):
        Design(moved, ["elbow.a"])
    turned = arm.replace(joints=[arm.joints[0], kg.revolute("x")])
    with pytest.raises(InputError, match=r"'elbow' .* not placed by a Denavit–Hartenberg row"):
        Design(turned, ["elbow.a"])
    assert arm.replace(placement=2 * [kg.translate(1, 2, 3)]).dh is None


def test_rows_of_functions():
    """A function's model carries slopes in its rows; the design's own model has plain ones."""

    def arm(x):
        return Model.from_dh([(x, 0, 0.4, 0), (0, 0, x, 0)], inertias=[Inertia.sphere(1, 0.1, [0.1, 0, 0])] * 2)

    design = Design.from_function(arm, {"x": 3.5})
    assert Design(design.model, ["joint0.theta", "joint1.a"]).values.tolist() == [3.5, 3.5]
    state = random_state(design.model)
    parts = kg.inverse_dynamics_design_derivatives(Design(design.model, ["joint0.theta", "joint1.a"]), *state)
    found = kg.inverse_dynamics_design_derivatives(design, *state)
    assert_close(found[:, 0], parts.sum(axis=1), 1e-14)


# --- as values ----------------------------------------------------------------------------------------------


def slender_arm(L):
    return samples.two_link().replace(com={"forearm": [-np.ravel(L)[0] / 2, 0, 0]})


def some_designs():
    arm, loads = samples.two_link(), kg.Loads(force={"forearm": [1, 2, 3]}, point={"forearm": [0.1, 0, 0]})
    return [
        Design(arm, ["forearm.mass", "elbow.a"]),
        Design(arm, {"m": {"forearm.mass": 1.0, "upper_arm.mass": 0.5}, "f": "forearm.load.force.x"}, loads),
        Design.from_function(slender_arm, {"L": 0.4}),
        Design.from_function(slender_arm, [0.4]),
    ]


@pytest.mark.parametrize("k", range(4))
def test_designs_are_values(k):
    """Pickled, copied or made again they are equal, as are the derivatives; and simulations take them."""
    design, others = some_designs()[k], some_designs()
    state = random_state(design.model)
    for again in (pickle.loads(pickle.dumps(design)), deepcopy(design), copy(design), others[k]):
        assert again == design
        assert hash(again) == hash(design)
        assert {design: 1}[again] == 1
        same_bits(again.values, design.values)
        same_bits(*(kg.inverse_dynamics_design_derivatives(d, *state) for d in (design, again)))
        moved = again.at(again.values + 0.01)
        assert moved != design
        assert moved == design.at(design.values + 0.01)
    assert [design == other for other in others] == [j == k for j in range(4)]
    assert design != "design"
    assert design != Design(design.model.replace(gravity=(0, 0, 0)), ["forearm.mass"])


def test_unpickled_designs_are_designs_of_an_equal_model():
    from kinegrad.simulate import simulate_fixed

    design = Design(samples.two_link(), ["forearm.mass"])
    again = pickle.loads(pickle.dumps(design))
    q, v = np.zeros((2, 2))
    run = {"step": 0.01, "steps": 3}
    one, two = (simulate_fixed(design.model, q, v, design=d, **run) for d in (design, again))
    same_bits(one.dq_dp, two.dq_dp)
    with pytest.raises(InputError, match="design of another model"):
        simulate_fixed(design.model.replace(gravity=(0, 0, 0)), q, v, design=again, **run)


def test_designs_cannot_be_written_to():
    for design in (
        *some_designs(),
        *map(deepcopy, some_designs()),
        *(pickle.loads(pickle.dumps(d)) for d in some_designs()),
    ):
        arrays = [design.values, *design._slopes, *(design._load_slopes or ())]
        assert arrays
        for array in arrays:
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
        with pytest.raises(TypeError):
            design.parameters["x"] = "forearm.mass"
        for spec in design.parameters.values():
            if not isinstance(spec, str) and not callable(spec):
                with pytest.raises(TypeError):
                    spec["forearm.mass"] = 2.0


def test_parameters_stay_what_they_were():
    given = {"m": {"forearm.mass": 1.0}}
    design = Design(samples.two_link(), given)
    given["m"]["forearm.mass"] = 7.0
    assert design.parameters["m"]["forearm.mass"] == 1.0


def test_combination_moves_all_its_constants():
    arm = samples.two_link()
    moved = Design(arm, {"L": {"elbow.a": 1.0, "forearm.com.x": -0.5}}).at([0.1])
    assert_close(moved.model.tip[1, 0, 3], 0.5, 1e-15)
    assert_close(moved.model.com[1, 0], arm.com[1, 0] - 0.05, 1e-15)
    assert moved.values == 0.0, "a combination counts from the present model"


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"a": "forearm.mass", "b": "forearm.mass"}, ["'a'", "'b'"]),
        (["forearm.inertia.yz", "forearm.inertia.zy"], ["'forearm.inertia.yz'", "'forearm.inertia.zy'"]),
        (["elbow.a", "elbow.tip.x"], ["'elbow.a'", "'elbow.tip.x'"]),
        (["elbow.placement.y", "elbow.theta"], ["'elbow.theta'", "'elbow.placement.y'"]),
        (["elbow.tip.rx", "elbow.alpha"], ["'elbow.alpha'", "'elbow.tip.rx'"]),
        ({"a": "forearm.mass", "b": {"upper_arm.mass": 1.0, "forearm.mass": 0.5}}, ["'a'", "'b'"]),
        ({"b": {"upper_arm.mass": 1.0, "forearm.mass": 0.5}, "a": "forearm.mass"}, ["'a'", "'b'"]),
        ({"a": {"forearm.inertia.yz": 1.0, "forearm.inertia.zy": 1.0}}, ["forearm.inertia.yz", "forearm.inertia.zy"]),
        ({"a": {"elbow.a": 1.0, "elbow.tip.x": 1.0}}, ["'elbow.a'", "'elbow.tip.x'"]),
        ({"a": {"forearm.mass": 1.0}, "b": {"forearm.mass": -3.0}}, ["'a'", "'b'"]),
        ({"a": {"gravity.x": 1.0, "gravity.y": 0.3}, "b": {"gravity.y": 0.6, "gravity.x": 2.0}}, ["'a'", "'b'"]),
        ({"a": "elbow.placement.rx", "b": "elbow.placement.rx"}, ["'a'", "'b'"]),
        ({"a": "forearm.load.point.x", "b": "forearm.load.point.x"}, ["'a'", "'b'"]),
    ],
)  # fmt: skip
def test_parameters_that_move_one_constant_are_refused(parameters, named):
    """The model would not have the values that it was given."""
    with pytest.raises(InputError, match="expected one parameter") as error:
        Design(samples.two_link(), parameters, kg.Loads(force={"forearm": [1, 0, 0]}))
    assert all(name in str(error.value) for name in named)


def test_parameters_that_leave_each_other_alone():
    """What is set is what is read, whatever else is set; combinations may share constants."""
    names = ["forearm.mass", "forearm.com.x", "forearm.inertia.xx", "elbow.theta", "elbow.d", "elbow.a", "elbow.alpha",
             "shoulder.placement.x", "shoulder.placement.rx", "shoulder.placement.ry", "shoulder.tip.z",
             "elbow.stiffness", "gravity.x"]  # fmt: skip
    design = Design(samples.two_link(), names)
    turns = np.array([".r" in name for name in names])
    values = np.random.default_rng(0).uniform(0.1, 0.11, design.p)
    moved = design.at(values)
    assert moved.values.tolist() == np.where(turns, 0.0, values).tolist()
    shared = Design(samples.two_link(), {"both": {"forearm.mass": 1.0, "upper_arm.mass": 1.0},
                                         "apart": {"forearm.mass": 1.0, "upper_arm.mass": -1.0}})  # fmt: skip
    assert_close(shared.at([0.2, 0.1]).model.mass, [0.6, 0.8], 1e-15)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forearm.mas", "did you mean 'forearm.mass'"),
        ("forarm.mass", "did you mean 'forearm.mass'"),
        ("elbow.aplha", "did you mean 'elbow.alpha'"),
        ("elbow.placement.w", "did you mean 'elbow.placement."),
        ("gravity.w", "'gravity' has x, y, z"),
        ("forearm.inertia.xw", "did you mean 'forearm.inertia."),
        ("forearm.com.4", "does not exist in model"),
        ("forearm", "does not exist in model"),
        ("", "does not exist in model"),
        ("...", "does not exist in model"),
        ("elbow.mass", "does not exist in model"),
        ("elbow.pitch", "joint 'elbow' of model 'two_link' is revolute; only a screw has a pitch"),
    ],
)
def test_unknown_constants(name, message):
    arm = samples.two_link()
    for parameters in ([name], {"x": name}, {"x": {name: 1.0}}):
        with pytest.raises(InputError, match=message):
            Design(arm, parameters)


def test_joints_that_are_not_rows():
    model = tree(0)
    with pytest.raises(InputError, match=r"'joint0' .* not placed by a Denavit–Hartenberg row.* use joint0\."):
        Design(model, ["joint0.a"])
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("z"), link="bob", inertia=Inertia.point(1.0, [1, 0, 0]))
    with pytest.raises(InputError, match=r"as Model.from_dh does; use hinge.placement.x"):
        Design(builder.build(), ["hinge.theta"])  # in which convention, nobody knows


@pytest.mark.parametrize(
    "parameters",
    [
        "forearm.mass", None, 3, [], {}, ["forearm.mass", "forearm.mass"], [None], [["forearm.mass"]],
        {1: "forearm.mass"},
        [{"forearm.mass": 1.0}], {"x": None}, {"x": {}}, {"x": {"forearm.mass": "1"}}, {"x": {"forearm.mass": np.nan}},
        {"x": {"forearm.mass": [1.0]}}, {"x": {"forearm.mass": True}}, {"x": {3: 1.0}}, {"x": ["forearm.mass"]},
    ],
)  # fmt: skip
def test_parameters_that_are_none(parameters):
    with pytest.raises(InputError, match=r"`parameters|constant 3"):
        Design(samples.two_link(), parameters)


def test_only_models_have_designs():
    with pytest.raises(InputError, match="`model` is a str"):
        Design("arm", ["forearm.mass"])


@pytest.mark.parametrize("design", [None, samples.two_link(), ["forearm.mass"]])
def test_not_a_design(design):
    with pytest.raises(InputError, match="expected a Design"):
        kg.inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.mass_matrix_design_derivatives(design, [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.transform_design_derivatives(design, [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.energy_design_derivatives(design, [0, 0], [0, 0])


def test_wrong_values():
    design = Design(samples.two_link(), ["forearm.mass", "elbow.a"])
    with pytest.raises(InputError, match=r"`values` has shape \(3,\); this design has 2 parameters"):
        design.at([1, 2, 3])
    with pytest.raises(InputError, match=r"`values` at index \(1,\) is nan"):
        design.at([1, np.nan])
    with pytest.raises(InputError, match="`values` holds"):
        design.at(["a", "b"])
    with pytest.raises(kg.ModelError, match="forearm"):
        design.at([-1, 0.4])


def test_wrong_states():
    design = Design(samples.two_link(), ["forearm.mass", "elbow.a", "gravity.y"])
    zero = np.zeros(2)
    with pytest.raises(InputError, match=r"`v` has shape \(3,\)"):
        kg.inverse_dynamics_design_derivatives(design, zero, np.zeros(3), zero)
    with pytest.raises(InputError, match=r"`q` at index \(1,\) is inf"):
        kg.mass_matrix_design_derivatives(design, [0, np.inf])
    with pytest.raises(InputError, match=r"`tau` at index \(0,\) is nan"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, [np.nan, 0])
    loads = kg.Loads(force={"forearm": [np.nan, 0, 0]})
    with pytest.raises(InputError, match=r"`loads\.force` at index"):
        kg.inverse_dynamics_design_derivatives(design, zero, zero, zero, loads=loads)
    with pytest.raises(InputError, match=r"`dq_dp` has shape \(3, 2\); expected \(2, 3\)"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dq_dp=np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"`dv_dp` has shape \(7, 2, 3\)"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dv_dp=np.zeros((7, 2, 3)))
    with pytest.raises(InputError, match=r"`dtau_dp` at index \(0, 1\) is nan"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dtau_dp=[[0, np.nan, 0], [0, 0, 0]])


@pytest.mark.parametrize("states", [1, 9])
def test_singular_mechanism(states):
    """Slender limbs: nothing resists their turning about themselves.  Torques are still differentiated."""
    model = samples.human43()
    design = Design(model, [f"{link}.mass" for link in model.link_names[:4]])
    state = random_state(model, batch=(states,))
    with pytest.raises(SingularError, match="nothing resists joint '"):
        kg.forward_dynamics_design_derivatives(design, *state)
    assert np.isfinite(kg.inverse_dynamics_design_derivatives(design, *state)).all()
