"""Models of OpenSim against OpenSim itself: mass matrix, inverse dynamics, places of bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io.opensim import OpenSimFile, model_file, read
from tests.io.opensim.files import EVERYTHING, J, constant, linear, new_layout, old_layout, spline
from tests.published import HOW, published

# OpenSim cannot be loaded beside the CasADi of other tests: run this file alone
opensim_model = pytest.importorskip("tests.peers.opensim_model", reason="needs opensim", exc_type=ImportError)

COUPLER = (
    '<ConstraintSet><objects><CoordinateCouplerConstraint name="c"><coupled_coordinates_function>{}'
    "</coupled_coordinates_function><independent_coordinate_names>{}</independent_coordinate_names>"
    "<dependent_coordinate_name>{}</dependent_coordinate_name><scale_factor>{}</scale_factor>"
    "</CoordinateCouplerConstraint></objects></ConstraintSet>"
)


def twins(path: Path, **options: object) -> tuple[OpenSimFile, object]:
    """The file in both, OpenSim with the functions that couplers were found to be."""
    kept = {}
    assemble = model_file.assemble

    def spy(*given: object, **options: object) -> object:
        made = assemble(*given, **options)
        kept.update(made.coupled)
        return made

    model_file.assemble = spy
    try:
        file = read(path, **options)
    finally:
        model_file.assemble = assemble
    return file, opensim_model.OpenSimTwin(path, file, kept)


def slopes(twin: object, q: np.ndarray, v: np.ndarray, a: np.ndarray, h: float = 2e-3) -> np.ndarray:
    """∂τ/∂q of OpenSim's τ by differences of sixth order: errors of about (3h)⁶ and ε/h."""
    columns = []
    for e in np.eye(len(v)):
        weights = ((1, 0.75), (2, -0.15), (3, 1 / 60))
        ends = [(c, *(twin.inverse_dynamics(q + s * k * h * e, v, a) for s in (1, -1))) for k, c in weights]
        columns.append(sum(c * (above - below) for c, above, below in ends) / h)
    return np.transpose(columns)


def compare_slopes(file: OpenSimFile, twin: object, tolerance: float, *, rates: bool) -> None:
    """∂τ/∂q, and ∂τ/∂v, which is linear in v, so that central differences of any size are exact."""
    model, rng = file.model, np.random.default_rng(3)
    q = kg.random_configuration(model, rng) * 0.8
    v, a = rng.normal(size=(2, model.nv)) * (1.0 if rates else [[0.0], [1.0]])
    found = kg.inverse_dynamics_derivatives(model, q, v, a)
    expected = slopes(twin, q, v, a)
    assert np.abs(found.dtau_dq - expected).max() <= tolerance * np.abs(expected).max()
    tau = twin.inverse_dynamics
    expected = np.transpose([(tau(q, v + e, a) - tau(q, v - e, a)) / 2 for e in np.eye(model.nv)])
    assert np.abs(found.dtau_dv - expected).max() <= tolerance * np.abs(expected).max() or not rates


def compare(file: OpenSimFile, twin: object, tolerance: float, *, rates: bool = True, count: int = 3) -> None:
    model, rng = file.model, np.random.default_rng(1)
    for _ in range(count):
        q = kg.random_configuration(model, rng) * 0.8
        v, a = rng.normal(size=(2, model.nv)) * (1.0 if rates else [[0.0], [1.0]])
        M, tau = twin.mass_matrix(q), twin.inverse_dynamics(q, v, a)
        assert np.abs(kg.mass_matrix(model, q) - M).max() <= tolerance * np.abs(M).max()
        assert np.abs(kg.inverse_dynamics(model, q, v, a) - tau).max() <= tolerance * np.abs(tau).max()
        places = kg.forward_kinematics(model, q)
        for body in (*model.link_names, *model.frames):
            if twin.model.getBodySet().contains(body):
                T = twin.transform(q, body)
                assert np.abs(places.at(model, body).transform - T).max() < 1e-12


@pytest.mark.parametrize("layout", [new_layout, old_layout])
def test_every_kind_of_joint(tmp_path: Path, layout: object) -> None:
    """Of ball and free joints, Ṅ is by differences in the twin: hence 1e-9."""
    path = tmp_path / "m.osim"
    path.write_text(layout(EVERYTHING, gravity="0.3 -9.7 0.2"))
    file, twin = twins(path)
    assert file.model.nv == 21
    compare(file, twin, 1e-9)


@pytest.mark.parametrize("joint", [j for j in EVERYTHING if j.kind != "WeldJoint"], ids=lambda j: j.kind)
def test_rates(tmp_path: Path, joint: J) -> None:
    """One joint each: closer than all of them together."""
    other = J(joint.kind, "body", "ground", joint.coordinates, joint.axes)
    path = tmp_path / "m.osim"
    path.write_text(new_layout([other, J("PinJoint", "last", "body", ("pin",))]))
    compare(*twins(path), 1e-9 if joint.kind in ("FreeJoint", "BallJoint") else 1e-11)


def test_opensims_rates_of_three_rotations_by_one_coordinate(tmp_path: Path) -> None:
    """There OpenSim 4.6 contradicts its own mass matrix, and kinegrad does not.

    By Lagrange c = Ṁ v − ½ ∂(vᵀ M v)/∂q, with M from OpenSim, differentiated by fourth-order differences: those of M
    are accurate to about 1e-10 here.
    """
    path = tmp_path / "m.osim"
    x = "-1 -0.3 0.2 0.6 1.4"
    axes = {"rotation1": ("knee", "1 0 0", linear()), "rotation2": ("knee", "0 0 1", spline(x, "0 0.1 0.3 0.2 0")),
            "rotation3": ("knee", "0 1 0", spline(x, "0 0.3 0.1 -0.2 -0.4"))}  # fmt: skip
    path.write_text(
        new_layout([J("CustomJoint", "shank", "ground", ("knee",), axes), J("PinJoint", "b", "shank", ("p",))])
    )
    file, twin = twins(path)
    model, q, v = file.model, np.array([0.3, 0.1]), np.array([2.0, 0.0])
    zero = np.zeros(2)
    c = kg.inverse_dynamics(model, q, v, zero) - kg.inverse_dynamics(model, q, zero, zero)

    def lagrange(h: float) -> np.ndarray:
        step = [(twin.mass_matrix(q + h * e) - twin.mass_matrix(q - h * e)) / (2 * h) for e in np.eye(2)]
        return sum(s * x for s, x in zip(step, v, strict=True)) @ v - 0.5 * np.array([v @ s @ v for s in step])

    expected = (4 * lagrange(1e-3) - lagrange(2e-3)) / 3
    theirs = twin.inverse_dynamics(q, v, zero) - twin.inverse_dynamics(q, zero, zero)
    assert np.abs(c - expected).max() < 1e-8 * np.abs(c).max()
    assert np.abs(theirs - expected).max() > 1e-4 * np.abs(c).max()  # if this fails, OpenSim has been mended


@pytest.mark.parametrize("function", [linear(0.7, 0.1), spline("0 2", "0.1 -0.5"), "<PolynomialFunction><coefficients>"
                                      "0.2 0.5 0.1</coefficients></PolynomialFunction>"])  # fmt: skip
def test_couplers_are_substituted(tmp_path: Path, function: str) -> None:
    joints = [
        J("PinJoint", "a", "ground", ("qa",)),
        J("PinJoint", "b", "a", ("qb",)),
        J("SliderJoint", "c", "b", ("qc",)),
    ]
    path = tmp_path / "m.osim"
    path.write_text(new_layout(joints, COUPLER.format(function, "qa", "qc", "1.5")))
    file, twin = twins(path)
    assert file.model.coordinate_names == ("qa", "qb")
    assert file.coupled == {"qc": "qa"}
    compare(file, twin, 1e-11)


@pytest.mark.parametrize("locked", ["fixed", "free"])
def test_locked_coordinates(tmp_path: Path, locked: str) -> None:
    joints = [
        J("PinJoint", "a", "ground", ("qa",)),
        J(
            "UniversalJoint",
            "b",
            "a",
            ("qb", "qc"),
            flags={"qc": "<default_value>0.4</default_value><locked>true</locked>"},
        ),
        J("PinJoint", "c", "b", ("qd",), flags={"qd": "<locked>true</locked>"}),
        J("PinJoint", "d", "c", ("qe",)),
    ]
    path = tmp_path / "m.osim"
    path.write_text(new_layout(joints))
    file, twin = twins(path, locked=locked)
    assert file.model.nv == (3 if locked == "fixed" else 5)
    assert dict(file.locked) == ({"qc": 0.4, "qd": 0.0} if locked == "fixed" else {})
    locks = [note.text for note in file.report if note.what == "lock"]  # OpenSim holds them in simulations
    assert len(locks) == (0 if locked == "fixed" else 2)
    assert locked == "fixed" or 'name="qc">: it is locked at 0.4, and no simulation holds it there' in locks[0]
    compare(file, twin, 1e-11)


def test_a_joint_that_is_reached_from_its_child(tmp_path: Path) -> None:
    """Kinematics by inverting the joint's transform; OpenSim turns such joints round by itself."""
    axes = {"rotation1": ("qb", "0.2 1 0", linear()), "rotation2": ("qc", "1 0 0", linear()),
            "rotation3": ("", "0 0 1", constant(0.2)), "translation2": ("qd", "0 1 0", linear(2.0, 0.1))}  # fmt: skip
    joints = [J("PinJoint", "a", "ground", ("qa",)), J("CustomJoint", "a2", "b", ("qb", "qc", "qd"), axes)]
    text = new_layout(joints).replace('<Body name="a2">', '<Body name="b">')
    text = text.replace("/bodyset/a2", "/bodyset/a").replace('"a2_c"', '"a_c2"').replace(">a2_c<", ">a_c2<")
    path = tmp_path / "m.osim"
    path.write_text(text)
    compare(*twins(path), 1e-11)


REAL = [*published("pose2sim", ".osim"), *published("osim-rl", ".osim")]


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason=HOW)
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
@pytest.mark.parametrize("locked", ["fixed", "free"])
def test_published_models(path: Path, locked: str) -> None:
    """All of them; speeds are zero in models whose knees turn about three axes by one coordinate (see above)."""
    if path.stem == "ue_RL":  # a comment within a comment: no XML
        with pytest.raises(kg.errors.FileError, match="line 10995: is not well-formed XML"):
            read(path)
        return
    file, twin = twins(path, locked=locked, inertia="project")
    several = path.stem.startswith("Model_Pose2Sim")
    compare(file, twin, 1e-9, rates=not several, count=2)
    compare_slopes(file, twin, 1e-9, rates=not several)
    types = {1: "rotational", 2: "translational", 3: "coupled"}
    for coordinate in twin.coordinates:
        if (name := coordinate.getName()) in file.motion_types:
            assert file.motion_types[name] == types[coordinate.getMotionType()]
