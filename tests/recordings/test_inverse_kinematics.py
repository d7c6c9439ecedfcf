"""Inverse kinematics: at the minimum, whatever is missing, limited, coupled or a quaternion."""

from __future__ import annotations

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError, UnitsWarning
from kinegrad.io.trc_file import Markers
from kinegrad.model.coordinates import CoupledCoordinate
from kinegrad.recordings.inverse_kinematics import inverse_kinematics
from kinegrad.recordings.marker_problem import MarkerProblem
from tests.kernels.child import child, output
from tests.reference import markers as markers_oracle


def leg(quaternion: bool = False) -> tuple[kg.Model, list[str]]:
    """A free pelvis, a hip, and a knee that slides while it bends; three markers on each body."""
    builder = kg.ModelBuilder("leg")
    body = kg.Inertia.box(3.0, [0.1, 0.1, 0.4])
    root = kg.free(quaternion=True) if quaternion else kg.free("zyx")
    builder.add("root", None, root, link="pelvis", inertia=body)
    builder.add("hip", "pelvis", kg.spherical("zxy"), link="thigh", placement=[0, 0.1, -0.1], inertia=body)
    builder.add("knee", "thigh", kg.planar("x"), link="shank", placement=[0, 0, -0.4], inertia=body)
    slide = kg.SplineFunction([-2.0, -1.0, 0.0, 1.0], [0.0, 0.02, 0.01, 0.0])
    builder.couple("knee.rx", {"knee.rx": 1.0, "knee.ty": slide, "knee.tz": kg.PolynomialFunction([0, 0.01, 0.02])})
    rng, names = np.random.default_rng(3), []
    for link in ("pelvis", "thigh", "shank"):
        names += [builder.add_frame(f"{link}{k}", link, rng.uniform(-0.2, 0.2, 3)) for k in range(4)]
    return builder.build(), names


def walk(
    model: kg.Model, names: list[str], count: int = 150, noise: float = 0.0, seed: int = 5
) -> tuple[np.ndarray, Markers]:
    t, rng = np.arange(count) / 100, np.random.default_rng(seed)
    dv = 0.4 * np.sin(2 * np.pi * np.outer(t, rng.uniform(0.3, 1.0, model.nv)) + rng.uniform(0, 6, model.nv))
    q = kg.integrate(model, kg.neutral(model), dv)
    x = kg.point_motion(model, q, link=names).position
    return q, Markers(t, tuple(names), x + noise * rng.normal(size=x.shape))


@pytest.mark.parametrize("quaternion", [False, True])
def test_exact_markers_give_exact_coordinates(quaternion: bool) -> None:
    model, names = leg(quaternion)
    q, markers = walk(model, names)
    found = inverse_kinematics(model, markers, tolerance=1e-12)
    assert found.success
    assert np.abs(kg.difference(model, q, found.q)).max() < 1e-8
    assert found.undetermined == ()


@pytest.mark.parametrize("quaternion", [False, True])
def test_noisy_markers_end_at_the_minimum(quaternion: bool) -> None:
    """The gradient, by Jacobians, is zero to what the tolerance of the cost leaves: |g| ≤ √(2 ε E λ), λ ≈ 10."""
    model, names = leg(quaternion)
    _, markers = walk(model, names, noise=0.01)
    found = inverse_kinematics(model, markers, tolerance=1e-12)
    d = kg.point_motion(model, found.q, link=names).position - markers.position
    g = np.einsum("bkij,bki->bj", kg.jacobian(model, found.q, link=names).linear, d)
    assert found.success
    assert np.abs(g).max() < np.sqrt(2 * 1e-12 * found.cost.max() * 10)
    assert np.abs(0.5 * (d * d).sum(axis=(1, 2)) - found.cost).max() < 1e-15
    for k in range(0, 150, 30):  # nowhere near is it lower
        for turn in 1e-3 * np.random.default_rng(k).normal(size=(5, model.nv)):
            near = kg.point_motion(model, kg.integrate(model, found.q[k], turn), link=names).position
            assert 0.5 * ((near - markers.position[k]) ** 2).sum() > found.cost[k]


@pytest.mark.parametrize("quaternion", [False, True])
def test_derivatives_of_the_cost(quaternion: bool) -> None:
    """Against central differences of the cost, with weights, gaps, and coordinates that are pulled."""
    model, names = leg(quaternion)
    q, markers = walk(model, names, count=100, noise=0.02)
    rng, x = np.random.default_rng(1), markers.position.copy()
    x[rng.random((100, len(names))) < 0.3] = np.nan
    weights, free = rng.random(len(names)), np.full(model.nq, np.inf)
    pull = np.zeros(model.nv) if quaternion else rng.random(model.nv)
    reference = np.zeros((1, model.nv)) if quaternion else q + 0.1
    problem = MarkerProblem(model, names, x, weights, reference, pull, -free, free)
    value, g, H = problem.derivatives(q)
    exact = markers_oracle.cost(model, names, q, x, weights)
    if not quaternion:
        exact = exact + 0.5 * (pull * 0.1**2).sum()
    assert np.abs(value - exact).max() < 1e-15

    def at(step: np.ndarray) -> np.ndarray:
        return problem.derivatives(kg.integrate(model, q, step))[0]

    h = 1e-3  # fourth order: h⁴ of truncation, 1e-17/h and 1e-17/h² of rounding
    steps = h * np.eye(model.nv)
    for j, u in enumerate(steps):
        rise = (8 * (at(u) - at(-u)) - (at(2 * u) - at(-2 * u))) / (12 * h)
        assert np.abs(rise - g[:, j]).max() < 1e-11
        for k, v in enumerate(steps[: j + 1]):
            one, two = (at(c * (u + v)) - at(c * (u - v)) - at(c * (v - u)) + at(c * (-u - v)) for c in (1, 2))
            assert np.abs((16 * one - two) / (48 * h * h) - H[:, j, k]).max() < 1e-9
    assert np.array_equal(H, H.transpose(0, 2, 1))
    J = kg.jacobian(model, q, link=names).linear * np.sqrt(weights * problem.seen)[..., None, None]
    A = np.einsum("bkij,bkil->bjl", J, J) + np.diag(pull)
    assert np.abs(problem.derivatives(q, exact=False)[2] - A).max() < 1e-14


@pytest.mark.parametrize("quaternion", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_at_the_minimum_that_scipy_finds(quaternion: bool, limited: bool) -> None:
    """Cost and position to 1e-9, with weights, gaps, limits that hold and a coordinate that is locked."""
    model, names = leg(quaternion)
    _, markers = walk(model, names, noise=0.01)
    rng, x = np.random.default_rng(4), markers.position.copy()
    x[rng.random(x.shape[:2]) < 0.1] = np.nan
    weights = rng.uniform(0.2, 3.0, len(names))
    limits = {"knee.rx": (-0.1, 0.2), "hip.y": (0.05, 0.05), "root.tx": (-0.1, np.inf)} if limited else {}
    seen = Markers(markers.t, markers.names, x)
    found = inverse_kinematics(model, seen, weights=dict(zip(names, weights, strict=True)), limits=limits)
    assert found.success
    if limited:
        knee = found.q[:, model.coordinate_index("knee.rx")]
        assert ((knee == -0.1) | (knee == 0.2)).any()
        assert ((knee > -0.1) & (knee < 0.2)).any()
        assert (found.q[:, model.coordinate_index("hip.y")] == 0.05).all()
    for k in range(0, 150, 15):
        low, high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        for name, (least, most) in limits.items():
            here = found.q[k, model.coordinate_index(name)]
            low[model.speed_index(name)], high[model.speed_index(name)] = least - here, most - here
        best = markers_oracle.nearest(model, names, found.q[k], x[k], weights, low, high)
        lowest = markers_oracle.cost(model, names, best, x[k], weights)
        assert found.cost[k] <= lowest * (1 + 1e-12)
        assert lowest <= found.cost[k] * (1 + 1e-9)
        assert np.abs(kg.difference(model, found.q[k], best)).max() < 1e-9


def test_gaps_weights_and_markers_that_do_not_belong() -> None:
    model, names = leg()
    q, markers = walk(model, names)
    x = markers.position.copy()
    x[20:60, 2] = x[50:, 7] = x[::7, 0] = np.nan
    x[:, 5] += 0.5  # a marker that is wrong, and does not count
    extra = np.concatenate([x, np.ones((150, 1, 3))], axis=1)
    found = inverse_kinematics(
        model, Markers(markers.t, (*names, "hat"), extra), weights={names[5]: 0.0}, tolerance=1e-12
    )
    assert np.abs(found.q - q).max() < 1e-8
    assert found.unused == ("hat",)
    assert np.isnan(found.distance[:, 2]).sum() == 40
    assert np.abs(found.distance[:, 5] - np.sqrt(0.75)).max() < 1e-8
    other = {"knee": "shank1", "ankle": "shank2"}
    few = Markers(markers.t, ("ankle", "knee"), markers.position[:, [10, 9]])
    assert "root.tx" not in inverse_kinematics(model, few, frames=other).undetermined


@pytest.mark.parametrize("weights", [{}, {0: 3.0, 5: 0.3}, {4: 0.0, 9: 100.0}, dict.fromkeys(range(6), 0.01)])
def test_the_error_of_markers_whatever_their_weights(weights: dict[int, float]) -> None:
    """Estimated from 100 frames of 36 components and 10 coordinates: known to 1.4 %."""
    model, names = leg()
    _, markers = walk(model, names, count=100, noise=0.001)
    found = inverse_kinematics(model, markers, weights={names[k]: weight for k, weight in weights.items()})
    assert found.marker_error == pytest.approx(0.001, rel=0.05)


def test_no_error_of_markers_where_coordinates_follow_all() -> None:
    """Three slides and one marker: distances say nothing."""
    builder, last = kg.ModelBuilder("slides"), None
    for axis in "xyz":
        last = builder.add(axis, last, kg.prismatic(axis), inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    builder.add_frame("marker", last, [0, 0, 0])
    seen = Markers(np.arange(5) / 100, ("marker",), np.random.default_rng(0).normal(size=(5, 1, 3)))
    assert np.isnan(inverse_kinematics(builder.build(), seen).marker_error)


def test_limits_hold_and_the_rest_is_best_within_them() -> None:
    model, names = leg()
    _, markers = walk(model, names)
    found = inverse_kinematics(
        model, markers, limits={"knee.rx": (-0.1, 0.2), "root.rz": (0.05, 0.05)}, tolerance=1e-12
    )
    knee, turn = (model.coordinate_index(name) for name in ("knee.rx", "root.rz"))
    assert (found.q[:, turn] == 0.05).all()
    assert found.q[:, knee].min() == -0.1
    assert found.q[:, knee].max() == 0.2
    d = kg.point_motion(model, found.q, link=names).position - markers.position
    g = np.einsum("bkij,bki->bj", kg.jacobian(model, found.q, link=names).linear, d)
    free = np.ones_like(g, dtype=bool)
    free[:, turn] = False
    free[:, knee] = (found.q[:, knee] > -0.1) & (found.q[:, knee] < 0.2)
    assert np.abs(g[free]).max() < 1e-5 * np.abs(g).max()
    assert (g[found.q[:, knee] == -0.1, knee] > 0).all()
    assert (g[found.q[:, knee] == 0.2, knee] < 0).all()
    limited = model.replace(position_limits={"knee.rx": (-0.1, 0.2)})
    assert inverse_kinematics(limited, markers).q[:, knee].max() <= 0.2
    assert inverse_kinematics(limited, markers, limits=False).q[:, knee].max() > 0.3


def test_near_pulls_what_markers_do_not_determine() -> None:
    model, names = leg()
    _, markers = walk(model, names)
    thigh = markers.select(names[:8])
    loose = inverse_kinematics(model, thigh)
    assert loose.undetermined == ("knee.rx",)
    knee = model.coordinate_index("knee.rx")
    wanted = np.sin(markers.t)
    held = inverse_kinematics(model, thigh, near={"knee.rx": (wanted, 1e-3)}, tolerance=1e-12)
    assert np.abs(held.q[:, knee] - wanted).max() < 1e-8
    assert held.undetermined == ()


def test_a_start_far_away() -> None:
    """Turned round and bent: random starts find it."""
    model, names = leg()
    q, markers = walk(model, names, count=40)
    turned = q.copy()
    turned[:, model.coordinate_index("root.rz")] += 2.8
    x = kg.point_motion(model, turned, link=names).position
    found = inverse_kinematics(model, Markers(markers.t, tuple(names), x))
    assert found.rms.max() < 1e-6
    again = inverse_kinematics(model, Markers(markers.t, tuple(names), x), start=turned[0])
    assert np.abs(again.q - turned).max() < 1e-4


def test_a_single_frame_and_the_same_bits_twice() -> None:
    model, names = leg()
    _, markers = walk(model, names, count=1)
    assert inverse_kinematics(model, markers).q.shape == (1, model.nq)
    _, markers = walk(model, names, count=60, noise=0.01)
    assert inverse_kinematics(model, markers) == inverse_kinematics(model, markers)


def test_a_frame_does_not_feel_its_neighbours(small_grain: None) -> None:
    """The same bits alone, in any block, and with any number of threads."""
    model, names = leg(quaternion=True)
    q, markers = walk(model, names, count=60, noise=0.01)
    x = markers.position.copy()
    x[5, 3] = x[7:9, :4] = np.nan
    free = np.full(model.nq, np.inf)
    weights, pull = np.ones(len(names)), np.zeros(model.nv)
    problem = MarkerProblem(model, names, x, weights, np.zeros((1, model.nv)), pull, -free, free)
    whole = problem.solve(np.arange(60), q, 1e-9, 50)
    for rows in (np.array([7]), np.arange(59, 2, -3)):
        part = problem.solve(rows, q[rows], 1e-9, 50)
        for name in ("q", "cost", "steps", "done", "distance", "diagonal"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[rows])
    seen, found = Markers(markers.t, markers.names, x), []
    try:
        for threads in (1, 2, 5):
            kg.set_threads(threads)
            found.append(inverse_kinematics(model, seen))
    finally:
        kg.set_threads(None)
    assert found[0] == found[1] == found[2]


def test_edges() -> None:
    """No frames; a start beyond limits; a recording far away; markers nowhere near; one marker, on the root."""
    model, names = leg()
    q, markers = walk(model, names, count=5)
    nothing = inverse_kinematics(model, Markers([], markers.names, np.zeros((0, len(names), 3))))
    assert nothing.success
    assert nothing.q.shape == (0, model.nq)
    limits = dict.fromkeys(model.coordinate_names, (-1.0, 1.0))
    beyond = inverse_kinematics(model, markers, start=np.full(model.nq, 5.0), limits=limits)
    assert np.abs(beyond.q - q).max() < 1e-8
    away = np.array([500.0, -300.0, 20.0])
    far = inverse_kinematics(model, Markers(markers.t, markers.names, markers.position + away))
    assert np.abs(far.q[:, :3] - q[:, :3] - away).max() < 1e-8
    for size in (1e8, 1e150, 1e300):
        with pytest.warns(UnitsWarning, match="are they in m"):
            lost = inverse_kinematics(model, Markers(markers.t, markers.names, size * markers.position))
        assert not lost.success
        assert np.isfinite(lost.q).all()
    one = inverse_kinematics(model, markers.select(names[:1]))
    assert one.success
    assert one.undetermined == model.speed_names  # those of the root together
    assert (one.q[:, 6:] == one.q[0, 6:]).all()


SCRIPT = """
import sys
import kinegrad as kg
from kinegrad.io.trc_file import Markers
from kinegrad.recordings import inverse_kinematics
from tests.recordings.test_inverse_kinematics import leg, walk

model, names = leg(quaternion=True)
_, markers = walk(model, names, count=11, noise=0.005)
found = inverse_kinematics(model, markers, limits={"knee.rx": (-0.1, 0.2)})
print(*(x.hex() for x in (*found.q.ravel().tolist(), *found.cost.tolist())))
"""


@pytest.mark.slow
def test_the_same_bits_at_every_width_and_the_same_numbers_without_the_compiler() -> None:
    """Reassociation does not depend on the width (but for that of one); plain Python rounds otherwise."""
    found = []
    for setting in ({"KINEGRAD_LANES": "2"}, {"KINEGRAD_LANES": "8"}, {"NUMBA_DISABLE_JIT": "1"}):
        found.append(np.array([float.fromhex(x) for x in output(child(SCRIPT, **setting)).split()]))
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() < 1e-10


def test_other_units_are_noticed() -> None:
    """Markers in mm, or in km, fit nowhere."""
    model, names = leg()
    _, markers = walk(model, names, count=5, noise=0.01)
    for scale in (1000.0, 0.001):
        with pytest.warns(UnitsWarning, match="apart, and those of the model .* m; are they in m, and"):
            inverse_kinematics(model, Markers(markers.t, markers.names, scale * markers.position))


def test_refused() -> None:
    model, names = leg()
    _, markers = walk(model, names, count=3)
    nothing = markers.position.copy()
    nothing[1] = np.nan
    cases = [
        ({"markers": 3}, "`markers` is a int; expected Markers"),
        ({"markers": Markers(markers.t, markers.names, nothing)}, "no marker was seen at t = 0.01 s"),
        (
            {"markers": Markers([0.0], ("hat",), np.zeros((1, 1, 3)))},
            r"no marker \('hat', …\) is a frame of model 'leg'",
        ),
        ({"frames": {"hat": "shank0"}}, "marker 'hat' is missing"),
        ({"frames": {"shank0": "shunk"}}, "did you mean"),
        ({"weights": {"hat": 1.0}}, "marker 'hat' is missing"),
        ({"weights": {"shank0": -1.0}}, r"`weights\['shank0'\]` is -1; expected a number of zero or more"),
        ({"weights": dict.fromkeys(names, 0.0)}, "`weights` are all zero"),
        ({"weights": [1.0]}, r"`weights` is \[1.0\]; expected a dictionary"),
        ({"start": np.zeros(3)}, r"`start` has shape \(3,\); expected \(10,\)"),
        ({"start": {"knee.rx": np.nan}}, r"`start\['knee.rx'\]` is nan; expected a finite number"),
        ({"limits": "yes"}, "`limits` is 'yes'; expected True, False or a dictionary"),
        ({"limits": {"knee.rx": (1, 0)}}, "expected lower ≤ upper"),
        ({"limits": {"knee.rx": (np.inf, np.inf)}}, r"is \(inf, inf\); expected lower ≤ upper, and numbers between"),
        ({"limits": {"knee.rx": 3}}, r"is 3; expected \(lower, upper\)"),
        ({"near": {"knee.rx": 3}}, r"is 3; expected \(value, weight\)"),
        ({"near": {"knee.rx": (np.zeros(7), 1.0)}}, "expected one, or 3"),
        ({"tolerance": 0}, "`tolerance` is 0; expected a number above zero"),
        ({"max_iterations": 0}, "max_iterations"),
    ]
    for change, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            inverse_kinematics(model, change.pop("markers", markers), **change)


def test_every_coordinate_coupled() -> None:
    """A model without a coordinate that is a joint."""
    arm = kg.samples.two_link().replace(frames={"hand": kg.Frame("forearm")})
    both = [CoupledCoordinate("both", (0, 1), (kg.LinearFunction(1.0), kg.LinearFunction(0.5)))]
    folded, t = arm.replace(coordinates=both), np.linspace(0.0, 1.0, 9)
    q = 0.3 + 0.5 * np.sin(t)[:, None]
    found = inverse_kinematics(folded, Markers(t, ("hand",), kg.point_motion(folded, q, link=["hand"]).position))
    assert found.success
    assert np.abs(found.q - q).max() < 1e-9
