"""Second derivatives of inverse dynamics as they are called: long chains, far links, any number of states, `out=`, and
what is refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, InputError, _engine, samples
from kinegrad._engine import blocks
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.dual_kernels import weighted_torque_gradient
from kinegrad._kernels.rnea_hessian_product import hvp
from tests.conftest import parts, random_loads, random_state, tree
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.test_dynamics_hessian import BLOCKS, CLOSE, FIRST, assert_blocks_close, by_products, sizes, sprung, weights


def test_a_long_chain():
    """500 joints: no digits are lost along the path."""
    model = samples.spatial_chain(500, length=0.1)
    rng = np.random.default_rng(0)
    q, v, a, w, d, e, f = rng.normal(size=(7, 500)) * 0.3
    H = kg.inverse_dynamics_hessian(model, q, v, a, w)
    exact = kg.inverse_dynamics_hvp(model, q, v, a, w, d, e, f, method="dual")
    found = H.d2_dqdq @ d + H.d2_dqdv @ e + H.d2_dqda @ f, H.d2_dqdv.T @ d + H.d2_dvdv @ e, H.d2_dqda.T @ d
    product = kg.inverse_dynamics_hvp(model, q, v, a, w, d, e, f)
    for x, y, z in zip(found, vars(product).values(), vars(exact).values(), strict=True):
        np.testing.assert_allclose(x, z, rtol=0, atol=CLOSE * np.abs(z).max())
        np.testing.assert_allclose(y, z, rtol=0, atol=CLOSE * np.abs(z).max())


@pytest.mark.parametrize("hinges", [0, 1, 12, 37])
def test_sliders_before_hinges(hinges):
    """Sliders that nothing turns, alone and before short and long chains of hinges."""
    bar, build, parent = Inertia.cylinder(1.0, 0.02, [0, 0, 0], [0, 0, -0.3]), kg.ModelBuilder("rail"), None
    for k in range(hinges + 3):
        kind, apart = (kg.prismatic, None) if k < 3 else (kg.revolute, [0, 0, -0.3])
        build.add(f"joint{k}", parent, kind("xyz"[k % 3]), placement=apart, inertia=bar)
        parent = f"joint{k}"
    model = build.build()
    q, v, a, w, d, e, f = np.random.default_rng(hinges).normal(size=(7, model.n))
    exact = kg.inverse_dynamics_hvp(model, q, v, a, w, d, e, f, method="dual")
    product = kg.inverse_dynamics_hvp(model, q, v, a, w, d, e, f)
    both = kg.inverse_dynamics_second_order(model, q, v, a, w)
    for H in (kg.inverse_dynamics_hessian(model, q, v, a, w), both):
        found = H.d2_dqdq @ d + H.d2_dqdv @ e + H.d2_dqda @ f, H.d2_dqdv.T @ d + H.d2_dvdv @ e, H.d2_dqda.T @ d
        for x, y, z in zip(found, vars(product).values(), vars(exact).values(), strict=True):
            np.testing.assert_allclose(x, z, rtol=0, atol=CLOSE * np.abs(z).max())
            np.testing.assert_allclose(y, z, rtol=0, atol=CLOSE * np.abs(z).max())
    first = kg.inverse_dynamics_derivatives(model, q, v, a)
    for name in FIRST[1:]:
        x, y = getattr(both, name), getattr(first, name)
        np.testing.assert_allclose(x, y, rtol=0, atol=CLOSE * np.abs(y).max())


@pytest.mark.parametrize("distance", [1e4, 1e6])
def test_far_from_the_origin(distance):
    """The world's origin matters to no number: a robot 10 km away, or 1000 km, is the same robot."""
    near = samples.puma560()
    placement = np.array(near.placement)
    placement[0, :3, 3] += [distance, -distance, distance]
    far = near.replace(placement=placement)
    state, w = random_state(near), weights(near)
    here, there = (kg.inverse_dynamics_hessian(model, *state, w) for model in (near, far))
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


@pytest.mark.parametrize("distance", [1e4, 1e6])
def test_far_links(distance):
    """Two links 10 km, or 1000 km, apart: terms of their own motion are lost in those of the arm between, but no
    more."""
    model = samples.spatial_chain(4)
    placement = np.array(model.placement)
    placement[2, :3, 3] += [distance, 0, 0]
    model = model.replace(placement=placement)
    state, w = random_state(model), weights(model)
    found = kg.inverse_dynamics_hessian(model, *state, w)
    assert_blocks_close(found, by_products(model, *state, w), sizes(model, state, w, None))


@pytest.mark.parametrize("states", [0, 1, WIDTH - 1, WIDTH + 1, 3 * WIDTH + 2])
def test_any_number_of_states(states):
    model = tree(9)
    state, w, loads = random_state(model, 1, (states,)), weights(model, 1, (states,)), random_loads(model, 1, (states,))
    found = kg.inverse_dynamics_second_order(model, *state, w, loads=loads)
    for k in range(states):
        given = kg.Loads(*(x[k] for x in parts(loads)))
        one = kg.inverse_dynamics_second_order(model, *(x[k] for x in state), w[k], loads=given)
        for name in (*FIRST, *BLOCKS):
            np.testing.assert_array_equal(getattr(found, name)[k], getattr(one, name))
    assert found.d2_dqdq.shape == (states, model.n, model.n)


def test_weights_of_one_row_and_arrays_of_any_layout():
    model = samples.puma560()
    q, v, a = random_state(model, 2, (6,))
    w = weights(model)
    expected = kg.inverse_dynamics_hessian(model, q, v, a, np.tile(w, (6, 1)))
    strided, frozen = np.repeat(q, 2, axis=0)[::2], v.copy()
    frozen.flags.writeable = False
    found = kg.inverse_dynamics_hessian(model, strided, frozen, np.asfortranarray(a), w)
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_out():
    model = samples.puma560()
    state, w = random_state(model, 2, (6,)), weights(model)
    for packed in (False, True):
        for function in (kg.inverse_dynamics_hessian, kg.inverse_dynamics_second_order):
            expected = function(model, *state, w, packed=packed)
            out = function(model, *np.zeros((3, 6, model.n)), w, packed=packed)
            assert function(model, *state, w, packed=packed, out=out) is out
            assert out == expected
            with pytest.raises(InputError, match="`out` is a float; expected an InverseDynamics"):
                function(model, *state, w, out=1.0)
    dense = kg.inverse_dynamics_hessian(model, *state, w)
    shared = kg.InverseDynamicsHessian(dense.d2_dqdq, dense.d2_dqdq, dense.d2_dqda, dense.d2_dvdv)
    with pytest.raises(InputError, match=r"`out\.d2_dqdq` and `out\.d2_dqdv` share memory"):
        kg.inverse_dynamics_hessian(model, *state, w, out=shared)


@pytest.mark.parametrize("packed", [False, True])
def test_results_over_what_they_are_computed_from(packed):
    """One array as q, v, a and w; and q and w in the memory that results are written to."""
    model = samples.human43()
    x = random_state(model, 3, (2 * WIDTH + 1,))[0]
    for function in (kg.inverse_dynamics_hessian, kg.inverse_dynamics_second_order):
        expected = function(model, *(x.copy() for _ in range(4)), packed=packed)
        assert function(model, x, x, x, x, packed=packed) == expected
        out = function(model, x, x, x, x, packed=packed)
        first, last = (
            getattr(y, "values", y).reshape(-1)[3 : 3 + x.size].reshape(x.shape) for y in (out.d2_dqdq, out.d2_dvdv)
        )
        first[...] = last[...] = x
        assert function(model, first, x, x, last, packed=packed, out=out) == expected


def test_many_weights_of_one_state():
    """A batch of weights alone, and of weights beside states."""
    model = samples.puma560()
    state, w = random_state(model, 1, (3,)), weights(model, 1, (50, 1))
    found = kg.inverse_dynamics_second_order(model, *state, w)
    assert found.tau.shape == (50, 3, model.n)
    assert found.d2_dqdv.shape == (50, 3, model.n, model.n)
    one = kg.inverse_dynamics_second_order(model, *(x[2] for x in state), w[41, 0])
    for name in (*FIRST, *BLOCKS):
        np.testing.assert_array_equal(getattr(found, name)[41, 2], getattr(one, name))


@pytest.mark.parametrize("kind", [kg.revolute("x"), kg.prismatic("x"), kg.screw("x", pitch=0.3)])
def test_one_joint(kind):
    """τ = g-term alone depends on q, and on nothing else: its second derivative is on paper."""
    builder, m, c = kg.ModelBuilder("one", gravity=(0, 0, -9.81)), 2.0, np.array([0.1, 0.2, 0.3])
    builder.add("joint", None, kind, inertia=Inertia(m, c, np.diag([0.3, 0.3, 0.3])))
    found = kg.inverse_dynamics_hessian(builder.build(), [0.4], [1.5], [2.5], [0.7])
    turning = (
        kind.kind != "prismatic"
    )  # height of the centre: c_z cos q + c_y sin q, so τ = m g (c_y cos q − c_z sin q)
    expected = 0.7 * m * 9.81 * (c[2] * np.sin(0.4) - c[1] * np.cos(0.4)) if turning else 0.0
    np.testing.assert_allclose(found.d2_dqdq, [[expected]], rtol=1e-14)
    for block in (found.d2_dqdv, found.d2_dqda, found.d2_dvdv):
        np.testing.assert_array_equal(block, [[0.0]])


def fork(name, parents):
    """A tree of hinges, each with a body."""
    builder, body = kg.ModelBuilder(name), Inertia(1.0, [0.1, 0.2, 0.3], np.diag([0.3, 0.3, 0.2]))
    for i, p in enumerate(parents):
        builder.add(f"j{i}", None if p < 0 else f"j{p}", kg.revolute("z"), placement=[0.1, 0.2, 0.3], inertia=body)
    return builder.build()


def test_packed_out_of_another_mechanism():
    """As many entries, in other places: they would be read where they do not belong."""
    one, other = fork("one", [-1, 0, 1, 0]), fork("other", [-1, 0, 0, 2])
    assert one.topology.nonzeros == other.topology.nonzeros
    x = random_state(one)[0]
    twin = fork("twin", one.parents)
    for function, given in (
        (kg.inverse_dynamics_derivatives, (x, x, x)),
        (kg.inverse_dynamics_hessian, (x, x, x, x)),
        (kg.inverse_dynamics_second_order, (x, x, x, x)),
    ):
        out = function(one, *np.zeros_like(given), packed=True)
        with pytest.raises(InputError, match="has its entries in other places than those of model 'other'"):
            function(other, *given, packed=True, out=out)
        with pytest.raises(InputError, match="`model` is a NoneType"):
            function(None, *given, packed=True, out=out)
        assert function(twin, *given, packed=True, out=out) == function(one, *given, packed=True)


@pytest.mark.parametrize(
    "function", [kg.inverse_dynamics_hessian, kg.inverse_dynamics_second_order, kg.inverse_dynamics_hvp]
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, None, "1", 1j])
def test_what_is_no_number_is_refused(function, wrong):
    model = samples.two_link()
    given = [np.zeros(2)] * (7 if function is kg.inverse_dynamics_hvp else 4)
    for k in range(3, len(given)):
        bad = [*given]
        bad[k] = [0.0, wrong]
        with pytest.raises(InputError, match=f"`{('q', 'v', 'a', 'w', 'dq', 'dv', 'da')[k]}`"):
            function(model, *bad)


@pytest.mark.parametrize("state", [0, WIDTH, 2 * WIDTH + 2])
@pytest.mark.parametrize("joint", [0, WIDTH, 42])
def test_products_look_at_every_number(state, joint):
    """They do so block by block: in the first, in another and in an incomplete one, of states and of joints."""
    model, given = samples.human43(), np.random.default_rng(5).normal(size=(7, 2 * WIDTH + 3, 43))
    for k, name in enumerate(("q", "v", "a", "w", "dq", "dv", "da")):
        for wrong in (np.nan, -np.inf):
            bad = given.copy()
            bad[k, state, joint] = wrong
            with pytest.raises(InputError, match=f"`{name}`.*{wrong}"):
                kg.inverse_dynamics_hvp(model, *bad)
    given[3, state, joint] = 1e13  # which is large, and yet a number
    spatial, dual = (kg.inverse_dynamics_hvp(model, *given, method=method) for method in ("spatial", "dual"))
    for name in ("dq", "dv", "da"):
        for x, y in zip(getattr(spatial, name), getattr(dual, name), strict=True):
            assert np.abs(x - y).max() <= CLOSE * np.abs(y).max()


def test_overflow_is_refused():
    model = samples.two_link()
    with pytest.raises(InputError, match="overflow"):
        kg.inverse_dynamics_hessian(model, [0, 1], [1e200, 1e200], [0, 0], [1, 1])
    with pytest.raises(InputError, match="overflow"):
        kg.inverse_dynamics_hvp(model, [0, 1], [1e200, 1e200], [0, 0], [1, 1], [1, 1], [0, 0], [0, 0])
    large = np.full(2, 1e110)  # whose square is a number still
    with pytest.raises(InputError, match="overflow"):
        kg.inverse_dynamics_hvp(model, [0, 1], large, [0, 0], large, [0, 0], large, [0, 0])


@pytest.mark.parametrize("which", ["coordinates", "elements", "both"])
def test_second_derivatives_in_blocks_of_states(which, monkeypatch):
    """Where intermediate results are large, a batch is computed block by block: the same bits, and states have the
    number that they have in the batch."""
    model = samples.random_tree(4, seed=4) if which == "elements" else mixed_tree(1)
    if which != "coordinates":
        model = sprung(model)
    state = mixed_state(model, 3, (3, 2 * WIDTH + 1))
    q, v, a, w = state[0], state[1][:1], state[2], weights(model, 3)
    loads = mixed_loads(model, 3)
    out = kg.inverse_dynamics_hessian(model, q, v, a, w)
    calls = {
        "hessian": lambda: kg.inverse_dynamics_hessian(model, q, v, a, w, loads=loads),
        "packed": lambda: kg.inverse_dynamics_hessian(model, q, v, a, w, packed=True),
        "out": lambda: kg.inverse_dynamics_hessian(model, q, v, a, 2 * w, out=out),
        "both": lambda: kg.inverse_dynamics_second_order(model, q, v, a, w, loads=loads),
        "tensors": lambda: kg.inverse_dynamics_hessian_tensors(model, q, v, a, loads=loads),
    }

    def arrays(found):
        return {name: np.array(getattr(x, "values", x)) for name, x in vars(found).items()}

    whole = {name: arrays(call()) for name, call in calls.items()}
    monkeypatch.setattr(blocks, "LARGEST", 8 * 64 * model.n**2 * WIDTH)
    for name, call in calls.items():
        for field, x in arrays(call()).items():
            np.testing.assert_array_equal(x, whole[name][field], err_msg=f"{name}, {field}")
    assert calls["out"]() is out
    large = v + np.zeros_like(state[1])
    large[2, 2 * WIDTH] = 1e200
    with pytest.raises(InputError, match=rf"\(2, {2 * WIDTH}\).*overflow"):
        kg.inverse_dynamics_hessian(model, q, large, a, w)
    with pytest.raises(InputError, match=r"`w` has shape \(1,\)"):
        kg.inverse_dynamics_hessian(model, q, v, a, [1.0])


def test_products_by_duals_use_dual_numbers(monkeypatch):
    """Also where coordinates are not joints: they would agree with the other method even if they were that."""
    model, own, used = mixed_tree(1), _engine.evaluate, []

    def evaluate(kernel, *arguments, **options):
        used.append(kernel.function)
        return own(kernel, *arguments, **options)

    monkeypatch.setattr(_engine, "evaluate", evaluate)
    state, w, d = mixed_state(model, 3, (3,)), weights(model, 3), np.ones((3, model.nv))
    for method, function in (("spatial", hvp), ("dual", weighted_torque_gradient)):
        used.clear()
        kg.inverse_dynamics_hvp(model, *state, w, *d, method=method)
        assert {hvp, weighted_torque_gradient} & set(used) == {function}


def test_large_tensors_are_refused():
    model = samples.human43()
    with pytest.raises(InputError, match=r"1000 states of model 'human43' take 2,544,224,000 bytes.*`max_bytes`"):
        kg.inverse_dynamics_hessian_tensors(model, *np.zeros((3, 1000, 43)))
    with pytest.raises(InputError, match=r"at most `max_bytes` = 4,000,000"):
        kg.inverse_dynamics_hessian_tensors(model, *np.zeros((3, 1000, 43)), max_bytes=4e6)
    with pytest.raises(InputError, match="`max_bytes` is -1"):
        kg.inverse_dynamics_hessian_tensors(model, *np.zeros((3, 43)), max_bytes=-1)
    with pytest.raises(InputError, match="`q` has shape"):
        kg.inverse_dynamics_hessian_tensors(model, 0.0, np.zeros(43), np.zeros(43))
    with pytest.raises(InputError, match="`method` is 'other'"):
        kg.inverse_dynamics_hvp(model, *np.zeros((7, 43)), method="other")
