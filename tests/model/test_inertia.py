"""Inertia against integration, point clouds and the bodies that cannot exist.

A cloud of point masses is the naive oracle: its pseudo-inertia is a plain sum of m [r; 1][r; 1]ᵀ. A
Gauss-Legendre rule turns a solid into such a cloud, exactly, since the integrands are polynomials.
"""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

import kinegrad as kg
from kinegrad.errors import ModelError
from kinegrad.model.inertia import Inertia, check_inertia

CLOSE = {"rtol": 1e-12, "atol": 1e-14}  # sums of some hundred products of order one


def cloud_pseudo(masses, points):
    """J = Σ m [r; 1][r; 1]ᵀ, term by term."""
    r1 = np.column_stack([points, np.ones(len(points))])
    return np.einsum("k,ki,kj->ij", masses, r1, r1)


def gauss(low, high):
    x, w = np.polynomial.legendre.leggauss(8)  # exact to degree 15
    return low + (high - low) * (x + 1) / 2, w * (high - low) / 2


def revolved(mass, radius, start, end):
    """Quadrature cloud of a solid of revolution of radius(t): discs of mass r², each of rings over angle."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    u, v = Rotation.align_vectors([(end - start) / np.linalg.norm(end - start)], [[0, 0, 1]])[0].as_matrix().T[:2]
    masses, points = [], []
    for t, dt in zip(*gauss(0, 1), strict=True):
        for rho, drho in zip(*gauss(0, radius(t)), strict=True):
            for angle in 2 * np.pi * np.arange(8) / 8:  # exact for trigonometric degree 2
                masses.append(dt * drho * rho)
                points.append(start + t * (end - start) + rho * (np.cos(angle) * u + np.sin(angle) * v))
    return mass * np.array(masses) / sum(masses), np.array(points)


def ball(mass, semi_axes, com, hollow=False):
    """Quadrature cloud of an ellipsoid (or spherical shell): radius, cosine of latitude, longitude."""
    masses, points = [], []
    for rho, drho in [(1.0, 1.0)] if hollow else zip(*gauss(0, 1), strict=True):
        for z, dz in zip(*gauss(-1, 1), strict=True):
            for angle in 2 * np.pi * np.arange(8) / 8:
                ring = np.sqrt(1 - z**2)
                masses.append(drho * dz * rho**2)
                points.append(rho * np.array([ring * np.cos(angle), ring * np.sin(angle), z]) * semi_axes + com)
    return mass * np.array(masses) / sum(masses), np.array(points)


def box(mass, size, com):
    (x, wx), (y, wy), (z, wz) = (gauss(-s / 2, s / 2) for s in size)
    points = np.stack(np.meshgrid(x, y, z, indexing="ij"), -1).reshape(-1, 3) + com
    weights = np.einsum("i,j,k->ijk", wx, wy, wz).ravel()
    return mass * weights / weights.sum(), points


def rod(mass, start, end):
    t, w = gauss(0, 1)
    return mass * w, np.outer(1 - t, start) + np.outer(t, end)


A, B, C = [0.1, -0.2, 0.3], [0.4, 0.5, -0.6], [0.7, -0.1, 0.2]
SIZE = [0.3, 0.5, 0.9]


@pytest.mark.parametrize(
    ("body", "cloud"),
    [
        (Inertia.point(2, A), ([2.0], [A])),
        (Inertia.rod(2, A, B), rod(2, A, B)),
        (Inertia.cylinder(2, 0.3, A, B), revolved(2, lambda t: 0.3, A, B)),
        (Inertia.frustum(2, 0.3, 0.1, A, B), revolved(2, lambda t: 0.3 - 0.2 * t, A, B)),
        (Inertia.frustum(2, 0.0, 0.4, A, B), revolved(2, lambda t: 0.4 * t, A, B)),
        (Inertia.box(2, SIZE, C), box(2, SIZE, C)),
        (Inertia.ellipsoid(2, SIZE, C), ball(2, SIZE, C)),
        (Inertia.sphere(2, 0.4, C), ball(2, [0.4] * 3, C)),
        (Inertia.sphere(2, 0.4, C, hollow=True), ball(2, [0.4] * 3, C, hollow=True)),
    ],
    ids=["point", "rod", "cylinder", "frustum", "cone", "box", "ellipsoid", "sphere", "hollow sphere"],
)
def test_solids_agree_with_integration(body, cloud):
    np.testing.assert_allclose(body.pseudo, cloud_pseudo(*cloud), **CLOSE)


def test_frustum_limits():
    cylinder = Inertia.cylinder(3, 0.2, A, B)
    length2, axis = np.sum(np.subtract(B, A) ** 2), np.subtract(B, A)
    np.testing.assert_allclose(cylinder.com, np.add(A, B) / 2, **CLOSE)
    np.testing.assert_allclose(axis @ cylinder.inertia @ axis / length2, 3 * 0.2**2 / 2, **CLOSE)
    np.testing.assert_allclose(np.trace(cylinder.inertia), 3 * 0.2**2 + 3 * length2 / 6, **CLOSE)
    cone = Inertia.frustum(3, 0.2, 0, [0, 0, 0], [0, 0, 1])  # textbook: centre at L/4 from the base
    np.testing.assert_allclose(cone.com, [0, 0, 0.25], **CLOSE)
    across = 3 * (3 / 20 * 0.2**2 + 3 / 80)
    np.testing.assert_allclose(cone.inertia, np.diag([across, across, 3 * 3 / 10 * 0.2**2]), **CLOSE)
    turned = Inertia.frustum(3, 0.1, 0.2, A, B)
    np.testing.assert_allclose(turned.pseudo, Inertia.frustum(3, 0.2, 0.1, B, A).pseudo, **CLOSE)
    # cut at a quarter, the two parts weigh as their volumes and make up the whole
    cut, r = np.add(A, 0.25 * axis), 0.125
    volumes = np.array([0.25 * (0.1**2 + 0.1 * r + r**2), 0.75 * (r**2 + r * 0.2 + 0.2**2)])
    low, high = 3 * volumes / volumes.sum()
    parts = Inertia.frustum(low, 0.1, r, A, cut) + Inertia.frustum(high, r, 0.2, cut, B)
    np.testing.assert_allclose(parts.pseudo, turned.pseudo, **CLOSE)


def test_slender_cylinder_keeps_its_small_moment():
    """The moment about the axis is 1e-12 of the others: it must not be a difference of large numbers."""
    cylinder = Inertia.cylinder(1, 1e-6, [0, 0, 0], [0, 0, 1])
    np.testing.assert_allclose(cylinder.inertia[2, 2], 0.5e-12, rtol=1e-14)


def test_pseudo_is_equation_7():
    """[zhakatayev2023] (7), entry by entry, with moments and products about the origin of the frame."""
    body = Inertia.box(2, SIZE, C) + Inertia.rod(1, A, B)
    J = body.about_origin
    xx, yy, zz = J.diagonal()
    expected = np.block([[-J, body.mass * body.com[:, None]], [body.mass * body.com, body.mass]])
    expected[range(3), range(3)] = (-xx + yy + zz) / 2, (xx - yy + zz) / 2, (xx + yy - zz) / 2
    np.testing.assert_allclose(body.pseudo, expected, **CLOSE)


def test_parallel_axis_and_round_trips():
    body = Inertia.box(2, SIZE, C) + Inertia.rod(1, A, B)
    c = body.com
    steiner = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(body.about_origin, steiner, **CLOSE)
    for again in (
        Inertia.about_frame(body.mass, body.com, steiner),
        Inertia.from_pseudo(body.pseudo),
        Inertia.from_pseudo(body.pseudo.tolist()),
    ):
        np.testing.assert_allclose(again.pseudo, body.pseudo, **CLOSE)
    assert Inertia.from_pseudo(np.zeros((4, 4))) == Inertia.zero()


def transforms(seed):
    rng = np.random.default_rng(seed)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    return T


clouds = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=st.floats(1e-3, 1e3)),
        arrays(float, (n, 3), elements=st.integers(-(10**7), 10**7).map(lambda k: k * 1e-6)),  # micrometres
    )
)


@given(clouds, st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_every_cloud_is_a_body_and_moves_as_one(cloud, seed):
    """Also one, two, three points, which are thin; by every route; moved point by point."""
    masses, points = cloud
    J = cloud_pseudo(masses, points)
    close = {"rtol": 0, "atol": 1e-12 * J.max()}
    merged = sum((Inertia.point(m, r) for m, r in zip(masses, points, strict=True)), Inertia.zero())
    np.testing.assert_allclose(merged.pseudo, J, **close)
    body = Inertia.from_pseudo(J)
    np.testing.assert_allclose(body.pseudo, J, **close)
    about = (points**2).sum(1)[:, None, None] * np.eye(3) - points[:, :, None] * points[:, None, :]
    other = Inertia.about_frame(masses.sum(), masses @ points / masses.sum(), np.tensordot(masses, about, 1))
    np.testing.assert_allclose(other.pseudo, J, **close)
    T = transforms(seed)
    expected = cloud_pseudo(masses, points @ T[:3, :3].T + T[:3, 3])
    close = {"rtol": 0, "atol": 1e-12 * (J.max() + expected.max())}
    np.testing.assert_allclose(body.moved(T).pseudo, expected, **close)
    np.testing.assert_allclose(body.moved(T).moved(np.linalg.inv(T)).pseudo, J, **close)


def test_a_point_stays_a_body_when_seen_from_itself():
    """Of a point mass given about a far origin only rounding is left, and no m|c|² to hide it behind."""
    rng = np.random.default_rng(7)
    for at in rng.normal(size=(200, 3)):
        to_itself = np.eye(4)
        to_itself[:3, 3] = -at
        point = Inertia.point(0.7, at)
        for body in (Inertia.from_pseudo(point.pseudo), Inertia.about_frame(0.7, at, point.about_origin)):
            assert np.abs(body.moved(to_itself).inertia).max() < 1e-14


def test_moving_far_and_back_costs_no_digits():
    body, far = Inertia.rod(1, A, B), np.eye(4)
    far[:3, 3] = 1e6
    back = body.moved(far).moved(np.linalg.inv(far))
    np.testing.assert_allclose(back.inertia, body.inertia, **CLOSE)


def test_reflection_makes_the_mirror_image():
    mirror = np.diag([1.0, -1, 1, 1])
    flipped = Inertia.frustum(1, 0.1, 0.2, np.multiply(A, [1, -1, 1]), np.multiply(B, [1, -1, 1]))
    np.testing.assert_allclose(Inertia.frustum(1, 0.1, 0.2, A, B).moved(mirror).pseudo, flipped.pseudo, **CLOSE)


def test_merging_halves_of_a_box():
    halves = Inertia.box(1, [1, 1, 1], [0.5, 0, 0]) + Inertia.box(1, [1, 1, 1], [-0.5, 0, 0])
    np.testing.assert_allclose(halves.pseudo, Inertia.box(2, [2, 1, 1]).pseudo, **CLOSE)
    with pytest.raises(TypeError):
        halves + 1


def test_no_mass_is_neutral():
    zero, body = Inertia.zero(), Inertia.box(2, SIZE, C)
    assert zero + body == body == body + zero
    assert zero + zero == zero == zero.moved(transforms(1)) == Inertia.rod(0, A, B)
    assert not zero.pseudo.any()


def test_planar_arm_of_xiang2008():
    """Its links, m = 0.5 kg, I = 0.1 kg·m² about z, are rods along x: zero second moments across them."""
    link = Inertia(0.5, [0.5, 0, 0], np.diag([0.0, 0.1, 0.1]))
    np.testing.assert_allclose(link.pseudo[:3, :3], np.diag([0.1 + 0.5 * 0.5**2, 0, 0]), **CLOSE)


@pytest.mark.parametrize(
    ("mass", "com", "inertia", "reason"),
    [
        (-1, A, np.eye(3), "`mass` is -1 kg; expected 0 or more"),
        (np.nan, A, np.eye(3), "`mass` is nan; expected finite numbers"),
        ([1, 2], A, np.eye(3), "`mass` has shape (2,); expected one real number"),
        ("heavy", A, np.eye(3), "`mass` is 'heavy'; expected one real number"),
        (1j, A, np.eye(3), "`mass` is 1j; expected one real number"),
        (1, [0, 0, np.inf], np.eye(3), "`com` is [0.0, 0.0, inf]; expected finite numbers"),
        (1, [0, 0], np.eye(3), "`com` has shape (2,); expected real numbers of shape (3,)"),
        (1, A, [1, 2, 3], "`inertia` has shape (3,); expected real numbers of shape (3, 3)"),
        (1, A, [[1], [2, 3]], "`inertia` is [[1], [2, 3]]; expected real numbers of shape (3, 3)"),
        (1, A, np.eye(3) + np.eye(3, k=1) / 4, "`inertia` is not symmetric: [0, 1] is 0.25 and [1, 0] is 0"),
        (
            1,
            A,
            np.diag([0.1, 0.1, 0.5]),
            "moments (0.1, 0.1, 0.5) kg·m² about the centre of mass violate the tri",
        ),
        (1, A, np.diag([0.1, 0.5, 0.1]), "triangle inequality: 0.5 > 0.1 + 0.1 (by 0.3)"),
        (1, A, np.diag([-1, 1, 1]), "-1 is negative"),
        (1, A, np.diag([0, 0, 1e-6]), "triangle inequality"),
        (0, A, np.zeros((3, 3)), "`mass` is 0 kg, but `com` is (0.1, -0.2, 0.3) m"),
        (0, [0, 0, 0], np.eye(3), "largest entry of `inertia` 1 kg·m²; expected zeros"),
    ],
)
def test_the_impossible_is_refused_by_name(mass, com, inertia, reason):
    with pytest.raises(ModelError) as named:
        check_inertia(mass, com, inertia, where="link 'thigh'")
    assert str(named.value).startswith("link 'thigh': ")
    assert reason in str(named.value)
    with pytest.raises(ModelError) as unnamed:
        Inertia(mass, com, inertia)
    assert str(unnamed.value).startswith("inertia: ")
    assert reason in str(unnamed.value)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Inertia.from_pseudo(-np.eye(4)), "`pseudo` has mass -1 kg"),
        (lambda: Inertia.from_pseudo(np.diag([1, 1, 1, 0])), "`pseudo` has mass 0 kg"),
        (lambda: Inertia.from_pseudo(np.eye(3)), "`pseudo` has shape (3, 3)"),
        (lambda: Inertia.from_pseudo(np.diag([-1, 2, 2, 1])), "triangle inequality"),
        (
            lambda: Inertia.about_frame(1, [0, 0, 1], np.eye(3) / 2),
            "is the given inertia about another point?",
        ),
        (lambda: Inertia.cylinder(1, -0.1, A, B), "`radius` is -0.1 m; expected 0 or more"),
        (lambda: Inertia.cylinder(1, 0.1, A, A), "`start` and `end` are both (0.1, -0.2, 0.3) m"),
        (lambda: Inertia.frustum(1, 0, 0, A, B), "radii are 0 m"),
        (lambda: Inertia.box(1, [1, -1, 1]), "`size` is [1.0, -1.0, 1.0] m"),
        (lambda: Inertia.sphere(-1, 1), "`mass` is -1 kg"),
        (lambda: Inertia.sphere(1, 1).moved(2 * np.eye(4)), "`transform` is 3 off a rigid one"),
        (lambda: Inertia.sphere(1, 1).moved(np.eye(3)), "`transform` has shape (3, 3)"),
    ],
)
def test_constructors_refuse_by_name(make, reason):
    with pytest.raises(ModelError) as error:
        make()
    assert reason in str(error.value)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_tolerances_are_relative_to_the_largest_moment(size):
    """A negative moment spoils the mass matrix, so it may be rounding only; I₃ > I₁ + I₂ may be printed digits."""
    for within, kind in [((-0.9e-9, 1, 1), "negative"), ((0, 1, 1 + 0.9e-3), "triangle")]:
        Inertia(size, [0, 0, 0], size * np.diag(within))
        with pytest.raises(ModelError, match=kind):
            Inertia(size, [0, 0, 0], size * np.diag([1.3 * x - 0.3 * round(x) for x in within]))


@pytest.mark.parametrize("digits", [4, 5, 6, 7])
def test_plates_printed_with_few_digits_are_bodies(digits):
    """Thin plates are on the border of the triangle inequality, and rounding takes half of them across it."""
    rng = np.random.default_rng(digits)
    for _ in range(200):
        a, b = 10 ** rng.uniform(-4, 2, 2)
        Inertia(1.0, [0, 0, 0], np.diag([float(f"{x:.{digits}g}") for x in (a, b, a + b)]))


# Links of example-robot-data 6.0.0: mass, and ixx, iyy, izz, ixy, ixz, iyz.
NOISY = {
    "icub head": (1.33687, 0, 0, 0, 0, 2.40741e-35, 0),
    "icub l_ankle_2": (0.2675, 0, 0, 0, 0, 1.35525e-20, 0),
    "icub r_hip_2": (0.526, -5.42101e-20, 0, -5.42101e-20, 0, 0, 0),
    "icub r_upper_leg": (2.175, 0, 4.07592e-18, 0, 0, 0, -2.71051e-20),
}
IMPOSSIBLE = {
    "go1 base": (1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6),  # 1e-6 everywhere, products of inertia too
    "pr2 sensor_mount_link": (0.05, 0.001, 0.001, 0.01, 0, 0, 0),
    "romeo LShoulderYaw": (0.861545, 0.00118557, 0.00312162, 0.00289955, 0.000596133, 0.0011173, -2.05919e-05),
    "a negative moment": (1.0, -1e-12, 0, 0, 0, 0, 0),
}


def from_file(mass, xx, yy, zz, xy, xz, yz):
    return Inertia(mass, [0.008, 0, 0.0553], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("numbers", NOISY.values(), ids=NOISY)
def test_what_rounding_leaves_of_a_point_mass_is_a_point_mass(numbers):
    """Exactly one: a joint about an axis through it is then singular, as it should be, rather than nearly so."""
    body = from_file(*numbers)
    assert not body.inertia.any()
    builder = kg.ModelBuilder("ankle")
    builder.add("roll", None, kg.revolute("x"), placement=[0, 0, 0.1], inertia=body)
    assert not builder.build().inertia.any()
    model = builder.build()
    assert not model.replace(inertia=[numbers[1] * np.eye(3)]).inertia.any()
    builder.add("spin", "roll", kg.revolute("z"), inertia=Inertia(numbers[0], [0, 0, 1], 1e-20 * np.ones((3, 3))))
    with pytest.raises(kg.SingularError):
        kg.forward_dynamics(builder.build(), [0, 0], [0, 0], [0, 1])


@pytest.mark.parametrize("numbers", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_no_rounding_explains_is_refused(numbers):
    with pytest.raises(ModelError, match=r"negative|triangle"):
        from_file(*numbers)


def test_small_bodies_are_not_points():
    """A silicon plate of 50 µm keeps its digits; so does a body seen from far away."""
    plate = Inertia.box(1e-9, [5e-5, 5e-5, 2e-6])
    assert plate.inertia[0, 0] == plate.mass * (5e-5**2 + 2e-6**2) / 12
    assert plate.moved(kg.translate(1e6, 0, 0)).inertia.any()


def test_numbers_that_would_overflow_are_refused():
    for make in (
        lambda: Inertia(1, [0, 0, 0], np.diag([1e308] * 3)),
        lambda: Inertia(1e308, [1e308, 0, 0], np.zeros((3, 3))),
        lambda: Inertia.rod(1, [-1e300, 0, 0], [1e300, 0, 0]),
        lambda: Inertia.box(1e90, [1e90] * 3),
        lambda: Inertia.from_pseudo(np.full((4, 4), 1e300)),
        lambda: Inertia.from_pseudo([[0, 0, 0, 1], [0] * 4, [0] * 4, [1, 0, 0, 1e-310]]),
        lambda: Inertia.sphere(1e60, 1e-30, com=[1e90, 0, 0]) + Inertia.point(1e60, [-1e90, 0, 0]),
    ):
        with pytest.raises(ModelError, match=r"below 1e\+100"):
            make()


def test_is_an_immutable_value():
    com = np.array(A)
    body = Inertia(2, com, np.eye(3))
    com[:] = 0  # what was passed in stays the caller's
    assert body.com.tolist() == A
    same, other = Inertia(2.0, A, np.eye(3).tolist()), Inertia(2, B, np.eye(3))
    assert body == same
    assert hash(body) == hash(same)
    assert body != other
    assert body != "body"
    assert hash(Inertia(1, [-0.0, 0, 0], np.eye(3))) == hash(Inertia(1, [0, 0, 0], np.eye(3)))
    assert eval(repr(body)) == body
    for twin in (pickle.loads(pickle.dumps(body)), copy.deepcopy(body), dataclasses.replace(body)):
        assert twin == body
        assert not twin.com.flags.writeable
        assert not twin.inertia.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        body.mass = 3.0
    with pytest.raises(ValueError, match="read-only"):
        body.com[0] = 1.0
