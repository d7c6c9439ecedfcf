"""Second slopes of models along parameters: turns, rows and elements by mpmath in closed form; functions that are hard
to differentiate, against mpmath to its digits, or refused by name."""

import mpmath as mp
import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Frame, InputError, samples
from kinegrad.design.curvature import second_variation
from tests.conftest import random_state, some_now

CLOSE = 1e-13  # of the largest second slope
XYZ = "xyz"
PENDULUM = samples.double_pendulum()


def turn(axis, angle):
    """A turn in many digits."""
    c, s, k = mp.cos(angle), mp.sin(angle), XYZ.index(axis)
    R = mp.eye(4)
    i, j = (k + 1) % 3, (k + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def shift(x=0, y=0, z=0):
    T = mp.eye(4)
    T[0, 3], T[1, 3], T[2, 3] = x, y, z
    return T


def second(f, values):
    """∂²f/∂k∂l of a matrix function by mpmath, (p, p, 4, 4): differences of order two at 80 digits, steps of 1e-25."""
    with mp.workdps(80):
        at, h = [mp.mpf(float(x)) for x in values], mp.mpf(10) ** -25
        p = len(at)

        def moved(*steps):
            x = list(at)
            for k, s in steps:
                x[k] += s * h
            return f(x)

        found = np.zeros((p, p, 4, 4))
        for k in range(p):
            for l in range(k + 1):
                four = moved((k, 1), (l, 1)) - moved((k, 1), (l, -1)) - moved((k, -1), (l, 1)) + moved((k, -1), (l, -1))
                found[k, l] = found[l, k] = np.array((four / (4 * h * h)).tolist(), dtype=float)
        return found


def close(found, expected):
    assert np.abs(found - expected).max() <= CLOSE * max(np.abs(expected).max(), 1e-300)


ANGLES = [(0.7, -0.8), (0.0, 0.0), (np.pi, np.pi / 2), (-np.pi, 0.0), (0.3, np.pi / 2), (1e-9, 12.0)]


@pytest.mark.parametrize("angles", ANGLES)
@pytest.mark.parametrize("what", ["placement", "tip", "frame"])
def test_turns_of_one_placement(what, angles):
    """Two turns in their order, one of them by two parameters with coefficients, a shift, and a parameter elsewhere."""
    far = kg.translate(3.0, -1e6, 0.2) @ kg.rotate([1, 2, 3], 0.5)
    model = samples.spatial_chain(3)
    joint, link = model.joint_names[1], model.link_names[1]
    if what == "frame":
        model, owner, field = model.replace(frames={"f": Frame(link, far)}), "f.placement", "frames"
    else:
        model, owner, field = model.replace(**{what: {joint: far}}), f"{joint}.{what}", what
    base = Design(model, {
        "tilt": {f"{owner}.rx": 1.5, f"{owner}.y": 0.4}, "turn": f"{owner}.ry", "both": {f"{owner}.rx": -0.5},
        "shift": f"{owner}.z", "mass": "bar1.mass",
    })  # fmt: skip
    values = [angles[0] / 1.5, angles[1], 0.2, 0.9, 1.3]
    design = base.at(values)
    start = mp.matrix(far.tolist())

    def exact(p):
        tilt, about_y, both, along_z, _ = p
        moved = start.copy()
        moved[1, 3] += mp.mpf(0.4) * tilt
        moved[2, 3] = along_z
        return moved * turn("x", mp.mpf(1.5) * tilt) * turn("y", about_y) * turn("x", -mp.mpf(0.5) * both)

    found = second_variation(design)
    index = 0 if what == "frame" else 1
    assert set(found) == {field}
    close(found[field][:, :, index], second(exact, values))
    assert not np.delete(found[field], index, axis=2).any()


@pytest.mark.parametrize("convention", ["distal", "proximal"])
@pytest.mark.parametrize("angles", ANGLES)
def test_denavit_hartenberg(convention, angles):
    """All numbers of a row; an angle and a length tied to one parameter."""
    rows = [kg.DH(0.1, 0.2, 0.3, 0.4), kg.DH(angles[0], 1.5, -0.7, angles[1]), kg.DH(0.3, 0.1, 0.2, 0.1)]
    model = kg.Model.from_dh(rows, convention=convention)
    tied = {"joint1.theta": 2.0, "joint1.a": 0.3, "joint1.alpha": -1.0}
    for parameters, values in (
        (["joint1.theta", "joint1.alpha", "joint1.a", "joint1.d"], [angles[0], angles[1], 0.6, 0.4]),
        ({"t": tied, "d": "joint1.d", "other": {"joint1.alpha": 0.7}}, [0.3, 0.9, -0.2]),
    ):
        design = Design(model, parameters).at(values)
        at = design.values.tolist()
        row = [mp.mpf(float(getattr(design.model.dh.rows[1], x))) for x in ("theta", "d", "a", "alpha")]

        def numbers(p, at=at, row=row):
            theta, _, a, alpha = row
            if len(p) == 4:
                return p[0], p[3], p[2], p[1]
            t, other = p[0] - at[0], p[2] - at[2]
            return theta + 2 * t, p[1], a + mp.mpf(0.3) * t, alpha - t + mp.mpf(0.7) * other

        def along(p, which, numbers=numbers):
            theta, d, a, alpha = numbers(p)
            z, x = turn("z", theta) * shift(z=d), turn("x", alpha) * shift(x=a)
            if convention == "distal":
                return z * x if which == "tip" else mp.eye(4)
            return z if which == "tip" else x

        found = second_variation(design)
        for which in ("placement", "tip"):
            expected = second(lambda p, which=which, along=along: along(p, which), at)
            if expected.any():
                close(found[which][:, :, 1], expected)
            else:
                assert which not in found


def test_ends_of_elements():
    """A bushing in a frame, both turned and moved, and a spring whose point and frame move."""
    frame = kg.rotate([1, 0, 1], 0.3) @ kg.translate(0.1, 0.2, 0.3)
    own = kg.rotate("y", 0.4) @ kg.translate(0.3, 0.1, 0.0)
    model = samples.spatial_chain(3).replace(frames={"f": Frame("bar3", frame)})
    model = model.replace(elements={
        "b": kg.Bushing("bar1", own, "f", own, stiffness=[1, 2, 3, 4, 5, 6]),
        "s": kg.SpringDamper("f", [0.1, 0.2, 0.3], None, [1.0, 0.0, 0.0], stiffness=3.0),
    })  # fmt: skip
    base = Design(model, {
        "a": {"f.placement.rx": 1.0, "b.other_placement.ry": 2.0, "s.point.x": 0.5}, "c": "f.placement.ry",
        "e": "b.other_placement.x", "g": "f.placement.x", "h": "b.placement.rz", "k": "s.stiffness", "L": "s.point.y",
    })  # fmt: skip
    values = [0.3, 0.2, 0.1, 0.4, 0.7, 5.0, -0.6]
    F, E = (mp.matrix(T.tolist()) for T in (frame, own))

    def held(p):
        T = F.copy()
        T[0, 3] = p[3]
        return T * turn("x", p[0]) * turn("y", p[1])

    def mount(p):
        T = E.copy()
        T[0, 3] = p[2]
        return held(p) * T * turn("y", 2 * p[0])

    def strap(p):
        return held(p) * shift(mp.mpf(0.1) + p[0] / 2, p[6], mp.mpf(0.3))

    found = second_variation(base.at(values))
    assert set(found) == {"frames", "elements"}
    bushing, spring = found["elements"][:, :, 0], found["elements"][:, :, 1]
    close(found["frames"][:, :, 0], second(held, values))
    outer, inner = second(mount, values), second(lambda p: E * turn("z", p[4]), values)
    close(bushing[..., 3:6], outer[..., :3, 3])
    close(bushing[..., 15:24], outer[..., :3, :3].reshape(7, 7, 9))
    close(bushing[..., 6:15], inner[..., :3, :3].reshape(7, 7, 9))
    close(spring[..., :3], second(strap, values)[..., :3, 3])
    assert not bushing[..., 24:].any()
    assert not spring[..., 3:].any()


def test_what_is_linear_has_none():
    model = samples.spatial_chain(3)
    names = ["bar1.mass", "bar2.com.x", "bar2.length", "gravity.z", "bar1.inertia.xy"]
    assert second_variation(Design(model, names)) == {}


# --- functions that build a model -------------------------------------------------------------------------------


def with_number(x):
    """A model one of whose numbers is x."""
    return PENDULUM.replace(com={"P": np.array([x, 0 * x, 1.0 + 0 * x])})


def bend(f, x):
    """f″ by the library."""
    design = Design.from_function(lambda p: with_number(f(p)), {"p": x})
    return second_variation(design).get("com", np.zeros((1, 1, 2, 3)))[0, 0, 0, 0]


HARD = {  # as NumPy and mpmath know them, at x, to a relative error
    "angle": (np.sin, mp.sin, 0.3, 1e-14),
    "at zero": (lambda p: np.cos(p) * np.exp(p), lambda p: mp.cos(p) * mp.exp(2 * p), 0.0, None),
    "oscillates": (lambda p: np.sin(1e4 * p), lambda p: mp.sin(mp.mpf(10) ** 4 * p), 0.3, 1e-11),
    "pole beside": (lambda p: 1 / (p - 0.299), lambda p: 1 / (p - mp.mpf(0.299)), 0.3, 1e-12),
    "pole close": (lambda p: 1 / (p - 0.299999), lambda p: 1 / (p - mp.mpf(0.299999)), 0.3, 1e-9),
    "root near zero": (np.sqrt, mp.sqrt, 1e-8, 1e-13),
    "logarithm": (np.log, mp.log, 1e-5, 1e-13),
    "inverse sine": (np.arcsin, mp.asin, 0.999, 1e-12),
    "steep": (lambda p: np.exp(100 * p), lambda p: mp.exp(100 * p), 0.0, 1e-13),
    "narrow": (lambda p: np.exp(-((100 * p) ** 2)), lambda p: mp.exp(-((100 * p) ** 2)), 0.001, 1e-13),
    "tangent": (np.tan, mp.tan, 1.5, 1e-13),
    "Runge": (lambda p: 1 / (1 + 25 * p * p), lambda p: 1 / (1 + 25 * p * p), 0.1, 1e-13),
    "far away": (lambda p: 1e6 + p**2, lambda p: p**2, 0.3, 1e-14),
    "large": (lambda p: p**3, lambda p: p**3, 1e6, 1e-13),
    "a kink within the circle": (lambda p: np.sin(p) if p < 0.301 else 3 * p**2, mp.sin, 0.3, 1e-11),
    "a jump very near": (lambda p: np.sin(p) if p < 0.30001 else 3 * p**2, mp.sin, 0.3, 1e-9),
    "a soft kink here": (lambda p: np.sin(p) + (p > 0.3) * (p - 0.3) ** 4, mp.sin, 0.3, 1e-11),
    "max": (lambda p: max(p, 0.1) ** 2, lambda p: p**2, 0.3, 1e-14),
    "np.maximum": (lambda p: np.maximum(p, 0.1) ** 2, lambda p: p**2, 0.3, 1e-14),
    "np.where": (lambda p: np.where(np.real(p) > 0, np.cos(p), 2.0), mp.cos, 1e-4, 1e-11),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_functions(name):
    f, in_digits, x, tolerance = HARD[name]
    if tolerance is None:  # (cos x eˣ)″ = −2 sin x eˣ
        assert abs(bend(f, x)) <= 1e-14
        return
    with mp.workdps(60):
        expected = float(mp.diff(in_digits, mp.mpf(x), 2, h=mp.mpf(10) ** -20))
    assert abs(bend(f, x) - expected) <= tolerance * abs(expected)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda p: 1 + np.abs(p) ** 2, 0.0),
        (lambda p: p + np.abs(p) ** 2, 0.0),
        (lambda p: p + np.abs(p) ** 3, 0.0),
        (lambda p: p + np.real(p) ** 2, 0.0),
        (lambda p: p + np.conj(p) * p, 0.0),
        (lambda p: np.sin(p) + (p > 0.3) * (p - 0.3) ** 3, 0.3),
        (lambda p: p + (p > 0.3) * (p - 0.3) ** 2, 0.3),
        (lambda p: np.sin(p) if p < 0.3 + 1e-9 else p**3 + np.sin(0.3) - 0.027, 0.3),
    ],
    ids=["abs²", "abs² beside", "abs³", "real²", "conjugate", "soft kink here", "kink of the slope", "kink too near"],
)
def test_functions_without_second_derivatives(f, x):
    """Refused by name, never a number: slopes of all but the last are those of differences."""
    with pytest.raises(InputError, match=r"(has no second derivatives at 'p' = |is not analytic in 'p')"):
        bend(f, x)


def test_mixed_derivatives_of_a_function():
    """By one array, not contiguous: arguments of all sizes, products at zero, one that does nothing, far placements."""

    def build(p):
        length, angle, tilt, mass, _, twist = p
        model = samples.double_pendulum()
        T = kg.translate(1e6, length * angle, length**2) @ kg.rotate("x", angle) @ kg.rotate("z", tilt * length)
        place = np.array([model.placement[0] + 0 * T, T @ kg.rotate("y", twist)])
        return model.replace(placement=place, mass=np.array([mass * length, 80.0 + 0 * mass]))

    values = np.array([0.7, 9, 0.0, 9, np.pi, 9, 80.0, 9, 3.0, 9, np.pi / 2, 9])[::2]
    found = second_variation(Design.from_function(build, values))

    def exact(p):
        length, angle, tilt, _, _, twist = p
        moved = shift(10**6, length * angle, length**2)
        return moved * turn("x", angle) * turn("z", tilt * length) * turn("y", twist)

    expected = second(exact, values)
    close(found["placement"][:, :, 1], expected)
    assert not found["placement"][:, :, 0].any()
    mass = np.zeros((6, 6))
    mass[0, 3] = mass[3, 0] = 1.0
    np.testing.assert_allclose(found["mass"][..., 0], mass, rtol=0, atol=1e-15)
    assert set(found) == {"placement", "mass"}
    np.testing.assert_array_equal(found["placement"], found["placement"].swapaxes(0, 1))


def test_at_the_edge_of_what_can_be():
    """No mass and no damper, a rod without width that turns: circles go where no body can be, and that is no matter."""

    def build(m, d, angle):
        model = samples.double_pendulum()
        rod = kg.Inertia.rod(2.0 + m**2, [0, 0, 0], [0, 0, 1.0]).moved(kg.rotate("x", angle))
        return model.replace(inertia={"Q": rod}, damping=np.array([d + m * d, 0 * d]))

    found = second_variation(Design.from_function(build, {"m": 0.0, "d": 0.0, "angle": 0.0}))
    assert found["mass"][0, 0, 1] == pytest.approx(2.0, abs=1e-14)
    assert found["damping"][0, 1, 0] == pytest.approx(1.0, abs=1e-14)
    # I_yy = m/12 cos²(angle)
    assert found["inertia"][2, 2, 1, 1, 1] == pytest.approx(-2 * 2.0 / 12, abs=1e-14)
    assert found["inertia"][0, 0, 1, 1, 1] == pytest.approx(2 / 12, abs=1e-14)


def test_a_function_that_takes_no_smaller_number():
    """It says so on every circle, and the refusal repeats it."""

    def build(m):
        if m < 0:
            raise ValueError("no mass can be negative")
        return samples.double_pendulum(MQ=1.0 + m)

    with pytest.raises(InputError, match=r"at 'm' = 0 that can be told to 1e-09: no mass can be negative; expected"):
        second_variation(Design.from_function(build, {"m": 0.0}))


@pytest.mark.parametrize("p", some_now([1, 12, 50], 2))
def test_many_parameters(p):
    """Squares and products of neighbours; all other pairs are zero, exactly."""

    def build(x):
        both = sum(x[k] * x[k + 1] for k in range(p - 1)) + sum(x * x)
        return with_number(both)

    x = np.linspace(-1.0, 2.0, p)
    found = second_variation(Design.from_function(build, x))["com"][:, :, 0, 0]
    expected = 2 * np.eye(p) + np.eye(p, k=1) + np.eye(p, k=-1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert not found[expected == 0].any()


def test_by_name_and_by_function_agree():
    """Torques by two parameters: two turns, a length and a mass, both ways."""
    model = samples.spatial_chain(3)
    joint = model.joint_names[1]
    names = [f"{joint}.placement.rx", f"{joint}.placement.rz", f"{joint}.placement.y", "bar2.mass"]
    values = np.array([0.4, np.pi / 2, 0.3, 1.7])
    named = Design(model, names).at(values)

    def build(p):
        T = np.array(model.placement[1], dtype=p.dtype)
        T[1, 3] = p[2]
        return model.replace(placement={joint: T @ kg.rotate("x", p[0]) @ kg.rotate("z", p[1])}, mass={"bar2": p[3]})

    built = Design.from_function(build, values)
    state, w = random_state(model, 5), np.array([1.0, -0.4, 0.8])
    one, two = (kg.inverse_dynamics_design_hessian(x, *state, w) for x in (named, built))
    for field in ("d2_dqdp", "d2_dvdp", "d2_dadp", "d2_dpdp"):
        expected = getattr(one, field)
        assert np.abs(getattr(two, field) - expected).max() <= 1e-13 * np.abs(expected).max()
