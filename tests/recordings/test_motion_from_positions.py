"""Positions alone become motions: exact where they are exact, close where they were measured, and it is said how."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.recordings import RecordedMotion, motion_from_positions, read_motion

ARM = kg.samples.two_link()
T = np.arange(301) / 100


def swing(t=T):
    """q, v, a of a swing of both joints."""
    w = np.array([3.0, 5.0])
    return np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)


def free_body():
    builder = kg.ModelBuilder("body")
    builder.add("base", None, kg.free(quaternion=True), inertia=kg.Inertia.box(2.0, (0.1, 0.2, 0.3)))
    return builder.build()


def test_exact_positions_give_the_derivatives():
    q, v, a = swing()
    motion = motion_from_positions(ARM, T, q)
    np.testing.assert_array_equal(motion.t, T)
    np.testing.assert_allclose(motion.q, q, atol=1e-14)
    np.testing.assert_allclose(motion.v, v, atol=1e-8)  # h⁵ = 1e-10, times the sixth derivative
    np.testing.assert_allclose(motion.a, a, atol=1e-4)
    np.testing.assert_allclose(motion.a[5:-5], a[5:-5], atol=1e-6)
    assert motion.made == ("v, a: derivatives of the spline of degree 5 through the positions as given, unfiltered",)


@pytest.mark.parametrize("option", [
    {"lowpass": 6}, {"smoothing": "gcv"}, {"smoothing": 0.002}, {"smoothing": [0.002, 0.002]},
    {"smoothing": {"shoulder": 0.002, "elbow": 0.002}},
])  # fmt: skip
def test_measured_positions_give_accelerations_that_can_be_used(option):
    """Errors of 0.1° make raw accelerations useless (tens of rad/s²); smoothed they are within a few per cent."""
    q, v, a = swing()
    measured = q + np.random.default_rng(2).normal(scale=0.002, size=q.shape)
    raw = motion_from_positions(ARM, T, measured)
    assert np.abs(raw.a - a).max() > 20
    motion = motion_from_positions(ARM, T, measured, **option)
    inner = slice(30, -30)
    assert np.abs(motion.q[inner] - q[inner]).max() < 0.002
    assert np.abs(motion.v[inner] - v[inner]).max() < 0.06 * np.abs(v).max()
    assert np.abs(motion.a[inner] - a[inner]).max() < 0.1 * np.abs(a).max()
    assert "q: " in motion.made[0]
    assert motion.made[-1].startswith("v, a: derivatives of the")
    assert motion.how in str(motion.to_xarray().attrs["how"])


def test_between_its_times_it_is_the_spline():
    q, _, _ = swing()
    motion = motion_from_positions(ARM, T, q, lowpass=8)
    inside = motion(np.array([1.003, 1.004, 1.005]))
    slope = (inside.q[2] - inside.q[0]) / 0.002
    np.testing.assert_allclose(slope, inside.v[1], atol=1e-4)
    again = pickle.loads(pickle.dumps(motion))
    assert again == motion
    assert isinstance(motion[10:20], RecordedMotion)


def test_quaternions_turn_by_their_angular_velocity():
    """About a fixed axis ω is the angle's rate; the sign of a quaternion may change from sample to sample."""
    body = free_body()
    names = body.coordinate_names
    angle, rate, curve = np.sin(3 * T), 3 * np.cos(3 * T), -9 * np.sin(3 * T)
    axis = np.array([2, -1, 2]) / 3
    q = np.zeros((len(T), body.nq))
    first = names.index(next(name for name in names if name.endswith(".w")))
    q[:, first] = np.cos(angle / 2)
    q[:, first + 1 : first + 4] = np.sin(angle / 2)[:, None] * axis
    q[::3, first : first + 4] *= -1
    motion = motion_from_positions(body, T, q)
    _, _, at = body.layout.balls[0]
    np.testing.assert_allclose(motion.v[:, at : at + 3], rate[:, None] * axis, atol=1e-7)
    np.testing.assert_allclose(motion.a[10:-10, at : at + 3], (curve[:, None] * axis)[10:-10], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, first : first + 4], axis=1), 1, atol=1e-15)


def test_gaps_are_filled_left_out_or_refused():
    q, _, _ = swing()
    missing = q.copy()
    missing[100:105, 1] = np.nan
    motion = motion_from_positions(ARM, T, missing)
    np.testing.assert_allclose(motion.q, q, atol=1e-4)
    assert motion.filled.sum() == 5
    assert motion.made[0] == "q.elbow: 5 of 301 missing, filled by a cubic spline (longest gap 0.06 s)"
    with pytest.raises(
        kg.InputError, match=r"`q` of 'elbow' is missing from 0.99 to 1.05 s, longer than `longest_gap`"
    ):
        motion_from_positions(ARM, T, missing, longest_gap=0.05)
    missing[:3, 0] = np.nan
    missing[-2:, 1] = np.nan
    motion = motion_from_positions(ARM, T, missing)
    assert (motion.t[0], motion.t[-1]) == (T[3], T[-3])
    assert [line[:16] for line in motion.made[:2]] == ["t: the first 3 t", "t: the last 2 ti"]


def test_whole_turns_are_removed():
    angle = np.outer(T, [7.0, 0.0])
    motion = motion_from_positions(ARM, T, (angle + np.pi) % (2 * np.pi) - np.pi)
    np.testing.assert_allclose(motion.v, np.tile([7.0, 0], (301, 1)), atol=1e-8)
    assert motion.made[0] == "q.shoulder: 3 jumps of a whole turn removed"


def test_uneven_and_rounded_times_for_a_filter():
    q, v, _ = swing()
    lost = np.delete(np.arange(301), [50, 51, 120])
    motion = motion_from_positions(ARM, T[lost], q[lost], lowpass=12)
    assert "interpolated by a cubic spline to equal ones of 0.01 s" in motion.made[0]
    np.testing.assert_allclose(motion.v[20:-20], v[20:-20], atol=0.05)
    times = np.arange(301) / 120
    motion = motion_from_positions(ARM, times.round(3), swing(times)[0], lowpass=12)
    assert motion.made[0] == "t: rounded times taken as equal steps of 0.00833333 s"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": T[:5], "q": np.zeros((5, 2))}, "expected at least 6 times"),
        ({"q": np.zeros((301, 3))}, r"`q` has shape \(301, 3\); expected \(301, 2\)"),
        ({"q": np.full((301, 2), np.inf)}, "`q` of 'shoulder' at 0 s is infinite"),
        ({"q": np.full((301, 2), np.nan)}, "`q` of 'shoulder' is missing at all but 0 of 301 times"),
        ({"q": "walk"}, "`q` holds"),
        ({"model": None}, "`model` is a NoneType"),
        ({"lowpass": 60}, "`lowpass` is 60 Hz; expected less than 50 Hz"),
        ({"lowpass": -1}, "`lowpass` is -1"),
        ({"lowpass": 6, "smoothing": "gcv"}, "both `lowpass` and `smoothing`"),
        ({"lowpass": 6, "order": 5}, "`order` is 5; expected an even number"),
        ({"smoothing": "best"}, "`smoothing` is 'best'; expected 'gcv'"),
        ({"smoothing": -1}, "`smoothing` is -1; expected positive"),
        ({"smoothing": [1, 2, 3]}, r"`smoothing` has shape \(3,\)"),
        ({"smoothing": {"elbow": 0.1}}, "`smoothing` has no 'shoulder'"),
        ({"smoothing": {"elbw": 0.1}}, "'elbw' does not exist"),
        ({"longest_gap": 0}, "`longest_gap` is 0"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"model": ARM, "t": T, "q": swing()[0]} | change
    with pytest.raises(kg.InputError, match=message):
        motion_from_positions(given.pop("model"), given.pop("t"), given.pop("q"), **given)


def test_a_file_as_a_motion_capture_program_writes_it(tmp_path):
    """Degrees, semicolons, decimal commas, another name for time, a gap: torques as of the exact motion."""
    q, v, a = swing()
    rows = [f"{t:.3f};{x[0]:.6f};{x[1]:.6f}".replace(".", ",") for t, x in zip(T, np.degrees(q), strict=True)]
    rows[40] = rows[40].rpartition(";")[0] + ";"
    (tmp_path / "x.csv").write_text("\n".join(["Time [s];shoulder;elbow", *rows]))
    motion = read_motion(tmp_path / "x.csv", ARM, units="deg", lowpass=15)
    exact = kg.inverse_dynamics(ARM, q, v, a)
    found = kg.inverse_dynamics(ARM, motion.q, motion.v, motion.a)
    assert np.abs(found - exact)[20:-20].max() < 0.01 * np.abs(exact).max()
    (tmp_path / "y.csv").write_text("shoulder,elbow\n" + "0,0\n" * 20)
    with pytest.raises(kg.InputError, match="has no times; expected a column t, or `rate`"):
        read_motion(tmp_path / "y.csv", ARM)
    assert read_motion(tmp_path / "y.csv", ARM, rate=10).t[-1] == pytest.approx(1.9)
    with pytest.raises(kg.InputError, match=r"`rate` is 10, and .* has times"):
        read_motion(tmp_path / "x.csv", ARM, rate=10, units="deg")
