"""Design derivatives of models with force elements: by complex step of the oracle, by differences, in identities."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError
from tests.conftest import tree
from tests.mixed import mixed_state, mixed_tree
from tests.reference import elements, oracle


def away(found, expected):
    """The largest difference, relative to the largest number."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def sprung(model, seed=0):
    return model.replace(elements=elements.random_elements(model, seed))


COLUMNS = {  # of the oracle's numbers, of elements that are not in frames
    "stiffness": 24, "damping": 30, "rest_length": 36, "point.x": 0, "point.z": 2, "other_point.y": 4,
    "stiffness.y": 25, "stiffness.rz": 29, "damping.z": 32, "damping.rx": 33, "placement.y": 1, "other_placement.z": 5,
}  # fmt: skip


def test_constants_of_elements_by_complex_step():
    """∂Q/∂p of the elements' own numbers, to rounding."""
    for seed in range(6):
        model = sprung(tree(seed, largest=7), seed)
        rows = elements.rows(model)
        q, v, a = np.random.default_rng(seed).normal(size=(3, model.n))
        names = [(k, name, x) for k, (name, x) in enumerate(model.elements.items())]
        named = [(k, f"{name}.{c}", COLUMNS[c]) for k, name, x in names for c in x.constants if c in COLUMNS]
        design = kg.Design(model, [name for _, name, _ in named])
        found = kg.inverse_dynamics_design_derivatives(design, q, v, a)
        for p, (k, _, column) in enumerate(named):
            moved = [(kind, links, np.array(x, dtype=complex)) for kind, links, x in rows]
            moved[k][2][column] += 1j * oracle.STEP
            expected = -np.imag(elements.forces(model, moved, q, v)) / oracle.STEP
            assert np.abs(found[:, p] - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())


def test_geometry_by_complex_step():
    """∂τ/∂(placement, tip) of a joint between the two links, which moves an end of the elements."""
    model = sprung(tree(2, largest=7), 2)
    rows, plain = elements.rows(model), model.without_elements
    q, v, a = np.random.default_rng(5).normal(size=(3, model.n))
    for what in ("placement", "tip"):
        for i, joint in enumerate(model.joint_names):
            for k, x in enumerate("xyz"):
                design = kg.Design(model, [f"{joint}.{what}.{x}"])
                found = kg.inverse_dynamics_design_derivatives(design, q, v, a)
                same = kg.Design(plain, design.names)
                T = getattr(model, what).astype(complex)
                T[i, k, 3] += 1j * oracle.STEP
                varied = oracle.with_constants(plain, **{what: T})
                by_elements = np.imag(elements.forces(varied, rows, q, v)) / oracle.STEP
                expected = kg.inverse_dynamics_design_derivatives(same, q, v, a)[:, 0] - by_elements
                assert np.abs(found[:, 0] - expected).max() < 1e-11 * max(1.0, np.abs(expected).max())


def framed():
    """Elements between frames, of which parameters move one."""
    model = tree(1, largest=6)
    tip = kg.translate(0.1, 0.2, 0.3) @ kg.rotate([1, 2, 3], 0.8)
    model = model.replace(frames={"grip": kg.Frame(model.link_names[-1], tip)})
    first = {"strap": kg.SpringDamper("grip", [0.1, 0.0, 0.2], None, [1.0, 0.3, 0.2], 30.0, 2.0, 0.4)}
    return model.replace(elements={**first, "mount": kg.Bushing("grip", tip, None, tip, np.arange(6) + 1, np.ones(6))})


PARAMETERS = [
    "grip.placement.x", "grip.placement.ry", "strap.stiffness", "strap.point.y", "mount.placement.rz", "gravity.z",
    "mount.other_placement.rx", "mount.stiffness.rx",
]  # fmt: skip


def derivative_by_differences(design, function):
    """Central differences of a function of designs, (..., p); about 1e-9 of the largest number."""
    values, columns = design.values, []
    for k in range(design.p):
        h = 1e-5 * np.eye(design.p)[k]
        columns.append((np.asarray(function(design.at(values + h))) - function(design.at(values - h))) / 2e-5)
    return np.stack(columns, axis=-1)


def test_frames_and_turns():
    """Frames that elements are attached to, and turns of bushings, by differences of models that have them."""
    design = kg.Design(framed(), PARAMETERS)
    q, v, a = np.random.default_rng(7).normal(size=(3, design.model.n))
    found = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    assert away(found, derivative_by_differences(design, lambda d: kg.inverse_dynamics(d.model, q, v, a))) < 1e-8
    energy = kg.energy_design_derivatives(design, q, v)
    assert (
        away(energy.dpotential_dp, derivative_by_differences(design, lambda d: kg.potential_energy(d.model, q))) < 1e-8
    )
    plain = kg.Design(design.model.without_elements, ["grip.placement.x", "gravity.z"])
    point = kg.point_motion_design_derivatives(design, q, link="grip").dposition_dp
    assert np.array_equal(point[:, [0, 5]], kg.point_motion_design_derivatives(plain, q, link="grip").dposition_dp)


def test_functions_that_build_elements():
    """The same slopes from the arguments of a function as from names."""
    model, q = framed(), np.full(framed().n, 0.3)

    def build(k, x, turn):
        strap = model.elements["strap"]
        moved = kg.SpringDamper("grip", np.array([0.1, 1.0, 0.2]) * [1, 0, 1] + x * np.array([0, 1, 0]), None,
                                strap.other_point, k, 2.0, 0.4)  # fmt: skip
        mount = model.elements["mount"]
        turned = kg.Bushing("grip", mount.placement @ kg.rotate("z", turn), None, mount.other_placement,
                            mount.stiffness, mount.damping)  # fmt: skip
        return model.replace(elements={"strap": moved, "mount": turned})

    made = kg.Design.from_function(build, {"k": 30.0, "x": 0.0, "turn": 0.0})
    named = kg.Design(model, ["strap.stiffness", "strap.point.y", "mount.placement.rz"])
    one, two = (kg.inverse_dynamics_design_derivatives(d, q, q, q) for d in (made, named))
    assert away(one, two) < 1e-13
    with pytest.raises(InputError, match="gives another `elements`"):
        kg.Design.from_function(lambda k: build(k, 0, 0) if k == 30.0 else model.without_elements, {"k": 30.0}).at(
            [31.0]
        )


@pytest.mark.parametrize("mixed", [False, True])
def test_all_functions_agree(mixed, rng):
    """Products, forward and hybrid dynamics, total derivatives: from ∂τ/∂p, ∂τ/∂(q, v) and M."""
    model = sprung(mixed_tree(4) if mixed else tree(3, largest=7), 4)
    name = next(iter(model.elements))
    design = kg.Design(model, [f"{name}.stiffness", f"{name}.point.x", f"{model.link_names[-1]}.mass"])
    q, v, a = mixed_state(model, 3, (2,)) if mixed else rng.normal(size=(3, 2, model.n))
    dq, dv, dtau = rng.normal(size=(3, 2, model.nv, design.p))
    d = kg.inverse_dynamics_derivatives(model, q, v, a)
    by_p = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    expected = derivative_by_differences(design, lambda x: kg.inverse_dynamics(x.model, q, v, a))
    assert away(by_p, expected) < 1e-8
    w = rng.normal(size=(2, model.nv))
    assert away(kg.inverse_dynamics_design_vjp(design, q, v, a, w), (w[:, None] @ by_p)[:, 0]) < 1e-12
    total = dtau - by_p - d.dtau_dq @ dq - d.dtau_dv @ dv
    da = kg.forward_dynamics_design_derivatives(design, q, v, d.tau, dq_dp=dq, dv_dp=dv, dtau_dp=dtau)
    assert away(da, np.linalg.solve(d.dtau_da, total)) < 1e-10
    held = model.speed_names[::2]
    change = kg.hybrid_dynamics_design_derivatives(
        design, q, v, d.tau, a, prescribed=held, dq_dp=dq, dv_dp=dv, dtau_dp=dtau
    )
    assert np.array_equal(change.dtau_dp[:, 1::2], dtau[:, 1::2])
    balance = d.dtau_da @ change.da_dp + d.dtau_dq @ dq + d.dtau_dv @ dv + by_p
    assert away(change.dtau_dp, balance) < 1e-10
    M = kg.mass_matrix_design_derivatives(design, q)
    plain = kg.Design(model.without_elements, [f"{model.link_names[-1]}.mass"])
    assert np.array_equal(M[..., 2:], kg.mass_matrix_design_derivatives(plain, q))
    assert not M[..., :2].any()


def test_names_that_do_not_exist():
    """The error knows the constants of elements."""
    with pytest.raises(InputError, match=r"did you mean 'strap\.stiffness'"):
        kg.Design(framed(), ["strap.stifness"])
    with pytest.raises(InputError, match="are one constant"):
        kg.Design(framed(), {"a": "strap.stiffness", "b": {"strap.stiffness": 2.0}})
    design = kg.Design(framed(), {"both": {"strap.stiffness": 1.0, "mount.stiffness.x": 2.0}})
    moved = design.at([3.0]).model.elements
    assert moved["strap"].stiffness == 33.0
    assert moved["mount"].stiffness[0] == 7.0
    with pytest.raises(InputError, match="`dq_dp` has shape"):
        kg.forward_dynamics_design_derivatives(design, *np.zeros((3, design.model.n)), dq_dp=np.zeros((3, 3)))
