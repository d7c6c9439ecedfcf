"""Inverse kinematics: at the minimum, whatever is missing, limited, coupled or a quaternion."""

from __future__ import annotations

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.io.trc_file import Markers
from kinegrad.recordings.inverse_kinematics import inverse_kinematics
from kinegrad.recordings.marker_problem import MarkerProblem


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


def walk(model: kg.Model, names: list[str], count: int = 150, noise: float = 0.0) -> tuple[np.ndarray, Markers]:
    t, rng = np.arange(count) / 100, np.random.default_rng(5)
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


@pytest.mark.parametrize("patterns", [3, 100])
def test_derivatives_of_the_cost(patterns: int) -> None:
    """Against central differences of the cost, with weights, gaps, and coordinates that are pulled."""
    model, names = leg()
    q, markers = walk(model, names, count=100, noise=0.02)
    rng, x = np.random.default_rng(1), markers.position.copy()
    gaps = rng.random((patterns, len(names))) < 0.3
    x[np.repeat(gaps, -(-100 // patterns), axis=0)[:100]] = np.nan
    pull = rng.random(model.nv)
    problem = MarkerProblem(model, names, x, rng.random(len(names)), q + 0.1, pull)
    rows = np.arange(100)
    d, _, at, T = problem.residuals(rows, q)
    g, H = problem.derivatives(rows, q, d, at, T, exact=True)

    def gradient(y: np.ndarray) -> np.ndarray:
        d, _, at, T = problem.residuals(rows, y)
        return problem.derivatives(rows, y, d, at, T, exact=False)[0]

    h = 1e-5
    for j, step in enumerate(h * np.eye(model.nv)):
        rise = (problem.residuals(rows, q + step)[1] - problem.residuals(rows, q - step)[1]) / (2 * h)
        assert np.abs(rise - g[:, j]).max() < 1e-9
        assert np.abs((gradient(q + step) - gradient(q - step)) / (2 * h) - H[:, :, j]).max() < 1e-8


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
        ({"limits": {"knee.rx": 3}}, r"is 3; expected \(lower, upper\)"),
        ({"near": {"knee.rx": 3}}, r"is 3; expected \(value, weight\)"),
        ({"near": {"knee.rx": (np.zeros(7), 1.0)}}, "expected one, or 3"),
        ({"tolerance": 0}, "`tolerance` is 0; expected a number above zero"),
        ({"max_iterations": 0}, "max_iterations"),
    ]
    for change, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            inverse_kinematics(model, change.pop("markers", markers), **change)  # type: ignore[arg-type]
