"""The PyTorch bridge: values and derivatives are kinegrad's, backward, forward and through torch.func."""

import numpy as np
import pytest

from kinegrad import (
    InputError,
    KinegradError,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_hessian,
    samples,
)
from kinegrad.bridges import products, to_torch
from tests.bridges.calls import log_calls
from tests.conftest import assert_close, random_loads, random_state

torch = pytest.importorskip("torch")
# PyTorch warns of its own code when forward mode is first used: of a deprecation, or, from 2.14 on, of the future.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning")
CLOSE = 1e-12  # the same kernels and their O(n) products, which agree to some 1e-15
MODEL = samples.puma560()
FIELDS = ("dtau_dq", "dtau_dv", "dtau_da")


def tensors(state, **options):
    return [torch.tensor(x, **options) for x in state]


@pytest.mark.parametrize("model", [MODEL, samples.human43()], ids=("puma560", "human43"))
@pytest.mark.parametrize("loaded", [False, True])
def test_values_and_jacobians(model, loaded):
    loads = random_loads(model) if loaded else None
    state = random_state(model)
    tau = to_torch(model, loads=loads)
    exact = inverse_dynamics_derivatives(model, *state, loads=loads)
    assert_close(tau(*tensors(state)).numpy(), exact.tau, CLOSE)

    def looped(f, _):
        return lambda *x: torch.autograd.functional.jacobian(f, x)

    for transformation in (looped, torch.func.jacrev, torch.func.jacfwd):
        for jacobian, field in zip(transformation(tau, (0, 1, 2))(*tensors(state)), FIELDS, strict=True):
            assert_close(jacobian.numpy(), getattr(exact, field), CLOSE)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_gradcheck(batch):
    arm = samples.two_link(gravity=(0, -9.81, 0))
    state = tensors(random_state(arm, 1, batch), requires_grad=True)
    assert torch.autograd.gradcheck(to_torch(arm), state, check_forward_ad=True)


def test_gradient_of_a_loss_with_broadcasting():
    q, v, a = random_state(MODEL, 5, (2, 3))
    v, a = v[0, 0], a[:, :1]
    leaves = tensors((q, v, a), requires_grad=True)
    (to_torch(MODEL)(*leaves) ** 2).sum().div(2).backward()
    exact = inverse_dynamics_derivatives(MODEL, q, v, a)
    full = [np.einsum("bti,btij->btj", exact.tau, getattr(exact, field)) for field in FIELDS]
    for leaf, desired in zip(leaves, (full[0], full[1].sum((0, 1)), full[2].sum(1, keepdims=True)), strict=True):
        assert_close(leaf.grad.numpy(), desired, CLOSE)


def test_batched_loads():
    loads = random_loads(MODEL, 2, (3,))
    state = random_state(MODEL, 2)
    assert_close(
        to_torch(MODEL, loads=loads)(*tensors(state)).numpy(), inverse_dynamics(MODEL, *state, loads=loads), CLOSE
    )


@pytest.mark.parametrize("dims", [(0, 0, 0), (0, None, None), (None, None, 1)])
def test_vmap_is_one_call(dims, monkeypatch):
    calls = []

    def counted(model, *state, **options):
        calls.append(np.broadcast_shapes(*(x.shape for x in state)))
        return inverse_dynamics(model, *state, **options)

    monkeypatch.setattr(products, "inverse_dynamics", counted)
    batch = random_state(MODEL, 1, (5,))
    state = [x[0] if dim is None else x for x, dim in zip(batch, dims, strict=True)]
    given = [x.T if dim == 1 else x for x, dim in zip(state, dims, strict=True)]
    actual = torch.func.vmap(to_torch(MODEL), in_dims=dims)(*tensors(given))
    assert_close(actual.numpy(), inverse_dynamics(MODEL, *state), CLOSE)
    assert calls == [(5, 6)]


def test_vmap_of_jacobians():
    state = random_state(MODEL, 4, (7,))
    exact = inverse_dynamics_derivatives(MODEL, *state)
    tau = to_torch(MODEL)
    assert_close(torch.func.vmap(torch.func.jacrev(tau))(*tensors(state)).numpy(), exact.dtau_dq, CLOSE)
    assert_close(torch.func.vmap(torch.func.jacfwd(tau, 1))(*tensors(state)).numpy(), exact.dtau_dv, CLOSE)


def test_results_do_not_change_with_their_inputs():
    state = tensors(random_state(MODEL))
    tau = to_torch(MODEL)(*state)
    before = tau.clone()
    for x in state:
        x.zero_()
    assert torch.equal(tau, before)


@pytest.mark.parametrize("loaded", [False, True])
def test_hessians(loaded):
    """Of a weighted sum of torques, through every way that PyTorch has to it."""
    loads, (q, v, a) = random_loads(MODEL) if loaded else None, random_state(MODEL)
    w, dq, dv = random_state(MODEL, 1)
    tau, exact = to_torch(MODEL, loads=loads), inverse_dynamics_hessian(MODEL, q, v, a, w, loads=loads)

    def weighted(*state):
        return (torch.tensor(w) * tau(*state)).sum()

    state = tuple(tensors((q, v, a)))
    whole = torch.autograd.functional.hessian(weighted, state)
    for (i, j), field in {(0, 0): "dqdq", (0, 1): "dqdv", (0, 2): "dqda", (1, 1): "dvdv"}.items():
        assert_close(whole[i][j].numpy(), getattr(exact, f"d2_{field}"), CLOSE)
        assert_close(whole[j][i].numpy(), getattr(exact, f"d2_{field}").T, CLOSE)
    along = tuple(tensors((dq, dv, 0 * dv)))
    _, product = torch.autograd.functional.hvp(weighted, state, along)
    assert_close(product[0].numpy(), exact.d2_dqdq @ dq + exact.d2_dqdv @ dv, CLOSE)
    assert_close(product[1].numpy(), dq @ exact.d2_dqdv + exact.d2_dvdv @ dv, CLOSE)
    func = torch.func
    for nested in (
        func.hessian(weighted),
        func.jacrev(func.jacrev(weighted)),
        func.jacfwd(func.jacfwd(weighted)),
        func.jacrev(func.jacfwd(weighted)),
    ):
        assert_close(nested(*state).numpy(), exact.d2_dqdq, CLOSE)


@pytest.mark.parametrize("squared", [False, True])
def test_products_with_hessians_compute_nothing_else(squared, monkeypatch):
    """A few products, each of as many states as there are; only hvp of squares needs one for each torque."""
    q, v, a = tensors(random_state(MODEL, 1, (5,)))
    w, along, _ = tensors(random_state(MODEL, 2, (5,)))
    tau = to_torch(MODEL)

    def phi(q):
        return (tau(q, v, a) * (tau(q, v, a) if squared else w)).sum()

    calls = log_calls(monkeypatch)
    expected = torch.einsum("bibj,bj->bi", torch.autograd.functional.hessian(phi, q), along)
    found = {}
    for name, product in {
        "hvp": lambda: torch.autograd.functional.hvp(phi, q, along)[1],
        "vhp": lambda: torch.autograd.functional.vhp(phi, q, along)[1],
        "jvp of grad": lambda: torch.func.jvp(torch.func.grad(phi), (q,), (along,))[1],
        "vjp of grad": lambda: torch.func.vjp(torch.func.grad(phi), q)[1](along)[0],
    }.items():
        calls.clear()
        assert_close(product().numpy(), expected.numpy(), CLOSE)
        found[name] = list(calls)
    if squared:
        assert {states for name in ("vhp", "jvp of grad", "vjp of grad") for _, states in found[name]} == {5}
    else:
        value, vjp, jvp, hvp = (("dynamics", 5), ("vjp", 5), ("jvp", 5), ("hvp", 5))
        once = [value, vjp, hvp]
        assert found == {"hvp": [*once, hvp], "vhp": once, "jvp of grad": [value, jvp, vjp, hvp], "vjp of grad": once}


def test_gradgradcheck():
    arm = samples.two_link(gravity=(0, -9.81, 0))
    state = tensors(random_state(arm, 1, (2,)), requires_grad=True)
    assert torch.autograd.gradgradcheck(to_torch(arm), state)


def test_third_derivatives_are_refused():
    q, v, a = tensors(random_state(MODEL))
    with pytest.raises(KinegradError, match="third derivatives of inverse dynamics are not available through PyTorch"):
        torch.func.jacrev(torch.func.hessian(lambda q: to_torch(MODEL)(q, v, a).sum()))(q)


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (torch.zeros(6), r"`v` is a tensor of torch.float32; expected a tensor of torch.float64: call .double\(\)"),
        (np.zeros(6), "`v` is a ndarray; expected a tensor of torch.float64"),
        (torch.zeros(6, dtype=torch.float64, device="meta"), r"`v` is on device 'meta'; expected 'cpu': call .cpu\(\)"),
        (torch.zeros(5, dtype=torch.float64), r"`v` has shape \(5,\); model 'puma560' has 6 degrees of freedom"),
        (torch.full((6,), torch.nan, dtype=torch.float64), r"`v` at index \(0,\) is nan"),
    ],
)
def test_mistakes_are_named(v, message):
    zero = torch.zeros(6, dtype=torch.float64)
    with pytest.raises(InputError, match=message):
        to_torch(MODEL)(zero, v, zero)
