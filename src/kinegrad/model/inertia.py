"""The mass of a link: how much there is, where its centre lies, how it is spread.

A body is a density over points r. A few of its integrals decide all of its dynamics, and [zhakatayev2023] (7)
gathers them in one symmetric matrix, the pseudo-inertia::

    J = ∫ [r; 1] [r; 1]ᵀ dm = [[ Σ + m c cᵀ, m c ],        Σ = ∫ (r − c)(r − c)ᵀ dm = ½ tr(I) 1 − I
                               [    m cᵀ   ,  m  ]]        I = tr(Σ) 1 − Σ

with mass m, centre of mass c, second moments Σ and rotational inertia I, both about the centre of mass (off
the diagonal, I holds minus the products ∫ xy dm). A rigid transform T carries J to T J Tᵀ; the J of two
bodies together is the sum. A body with given (m, c, I) exists exactly when J is positive semidefinite: m ≥ 0,
and Σ ≥ 0, which for the principal moments I₁ ≤ I₂ ≤ I₃ is the triangle inequality I₃ ≤ I₁ + I₂.

:class:`Inertia` stores m, c and I about c: moving a body far away and back then costs I no digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.numbers import LARGEST, far_from_real, flag, numbers, too_large
from kinegrad.results import frozen

__all__ = ["Inertia", "check_inertia", "rotational", "second_moments"]

Array = NDArray[np.float64]
ORIGIN = (0.0, 0.0, 0.0)

# What rounding may leave behind, relative to the largest number of its kind. Thin bodies (rods, plates) lie on the
# border of what can exist, and each rotation or sum moves them off it by about 1e-16 of their largest moment. 1e-9
# forgives any sensible number of such steps. It is what a moment may be below zero by: more of it, and the mass matrix
# is no longer positive.
TOLERANCE = 1e-9

# What I₃ − I₁ − I₂ may be above zero by, relative to I₃: moments printed with four digits are off by up to 5e-4 each,
# and I₁ + I₂ + I₃ ≈ 2 I₃ for the bodies on the border, which are plates. No positive moment is lost by that, so
# the mass matrix stays positive. Of the 1985 links of example-robot-data none is between 1e-9 and 1.8e-3, which is
# the least of those that no rounding explains.
PRINTED = 1e-3

# What is left of the moments of a point mass, by its mass, m²: a CAD program that finds them about a point up to some
# metres away and moves them to the centre of mass leaves rounding of 2.2e-16 m² (of iCub's links 1e-17 and less).
# A body whose radius of gyration is below 0.06 µm is a point.
NOISE = 16 * np.finfo(float).eps


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Inertia:
    """The mass properties of a rigid body, in some frame.

    Immutable, comparable and hashable by value. A body that cannot exist raises :class:`ModelError`: one with a
    negative mass or moment, or with a moment larger than the sum of the other two. Forgiven are rounding of 1e-9 of the
    largest moment, in the sum of the other two 1e-3 (numbers of four digits); and a body with a radius of gyration
    below 0.06 µm, of whose moments only rounding is left, is a point mass.

    Parameters
    ----------
    mass : float
        Mass, kg.
    com : array_like, shape (3,)
        Centre of mass in the frame, m.
    inertia : array_like, shape (3, 3)
        Rotational inertia about the centre of mass, along the frame's axes, kg·m².

    Examples
    --------
    >>> body = Inertia(2.0, [0, 0, 0.5], np.diag([0.2, 0.2, 0.1]))
    >>> body.about_origin.diagonal().round(12).tolist()
    [0.7, 0.7, 0.1]
    >>> body + Inertia.zero() == body
    True
    """

    mass: float
    com: Array
    inertia: Array

    def __init__(self, mass: float, com: ArrayLike, inertia: ArrayLike) -> None:
        for name, value in zip(("mass", "com", "inertia"), check_inertia(mass, com, inertia), strict=True):
            object.__setattr__(self, name, value)

    # ---- from matrices

    @classmethod
    def zero(cls) -> Inertia:
        """No mass at all, as on the virtual links inside a free joint.

        >>> Inertia.zero().mass
        0.0
        """
        return cls(0.0, ORIGIN, np.zeros((3, 3)))

    @classmethod
    def about_frame(cls, mass: float, com: ArrayLike, inertia: ArrayLike) -> Inertia:
        """A body whose `inertia` (3, 3), kg·m², is about the origin of the frame instead of about `com`.

        >>> Inertia.about_frame(2.0, [0, 0, 0.5], np.diag([0.75, 0.75, 0.0])).inertia.diagonal().tolist()
        [0.25, 0.25, 0.0]
        """
        m, c = _number("mass", mass), _numbers("com", com, (3,))
        return cls(m, c, _about_com(m, c, second_moments(_symmetric("inertia", inertia, 3))))

    @classmethod
    def from_pseudo(cls, pseudo: ArrayLike) -> Inertia:
        """A body by its pseudo-inertia J (4, 4), [zhakatayev2023] (7): kg, kg·m and kg·m².

        >>> body = Inertia.sphere(3.0, 0.1, com=[0.2, 0, 0])
        >>> np.allclose(Inertia.from_pseudo(body.pseudo).inertia, body.inertia)
        True
        """
        J = _symmetric("pseudo", pseudo, 4)
        m = J[3, 3].item()
        if m.real <= 0 and J.any() and not far_from_real():
            raise ModelError(f"inertia: `pseudo` has mass {m:g} kg at [3, 3]; expected it positive")
        with np.errstate(over="ignore"):
            c = _numbers("pseudo [3, :3] / [3, 3]", J[:3, 3] / (m or 1.0), (3,))
        return cls(m, c, _about_com(m, c, J[:3, :3]))

    # ---- from solids of uniform density; one of no mass is `zero()`, wherever it lies

    @classmethod
    def _spread(cls, mass: float, com: ArrayLike, variance: Array) -> Inertia:
        """A body by its centre (3,), m, and Σ/m (3, 3), m²."""
        m = _number("mass", mass)
        return cls(m, com, m * rotational(variance)) if m else cls.zero()

    @classmethod
    def point(cls, mass: float, at: ArrayLike) -> Inertia:
        """A point mass, kg, at a position (3,), m.

        >>> Inertia.point(2.0, at=[0, 3, 0]).about_origin.diagonal().tolist()
        [18.0, 0.0, 18.0]
        """
        return cls._spread(mass, _numbers("at", at, (3,)), np.zeros((3, 3)))

    @classmethod
    def rod(cls, mass: float, start: ArrayLike, end: ArrayLike) -> Inertia:
        """A slender rod, kg, between two points (3,), m.

        >>> Inertia.rod(12.0, [0, 0, 0], [0, 0, 2]).inertia.diagonal().round(12).tolist()
        [4.0, 4.0, 0.0]
        """
        a, b = _numbers("start", start, (3,)), _numbers("end", end, (3,))
        return cls._spread(mass, (a + b) / 2, np.outer(b - a, b - a) / 12)

    @classmethod
    def cylinder(cls, mass: float, radius: float, start: ArrayLike, end: ArrayLike) -> Inertia:
        """A solid cylinder, kg, of a radius, m, between the centres (3,) of its two faces, m.

        >>> Inertia.cylinder(12.0, 1.0, [0, 0, 0], [0, 0, 1]).inertia.diagonal().round(12).tolist()
        [4.0, 4.0, 6.0]
        """
        r = _lengths("radius", radius, ()).item()
        return cls.frustum(mass, r, r, start, end)

    @classmethod
    def frustum(cls, mass: float, radius_start: float, radius_end: float, start: ArrayLike, end: ArrayLike) -> Inertia:
        """A solid cone cut off, kg, with faces of two radii, m, between their centres (3,), m.

        >>> Inertia.frustum(1.0, 0.0, 0.1, [0, 0, 0], [0, 0, 1]).com.tolist()  # a cone from its apex
        [0.0, 0.0, 0.75]
        """
        p = _numbers("start", start, (3,))
        axis = _numbers("end", end, (3,)) - p
        a, b = _lengths("radius_start", radius_start, ()), _lengths("radius_end", radius_end, ())
        if not (size := a if a.real >= b.real else b):
            raise ModelError("inertia: the radii are 0 m; expected more (without width, use `Inertia.rod`)")
        along = np.outer(axis, axis)
        if not np.trace(along):
            raise ModelError(f"inertia: `start` and `end` are both {_text(p)} m; expected two points")
        # Means over t in [0, 1], the fraction of the way, of mass r² dt, where r = (1 − t) a + t b.
        a, b = a / size, b / size
        s = a**2 + a * b + b**2
        mean_t = (a**2 + 2 * a * b + 3 * b**2) / (4 * s)
        variance_t = 3 * (a**4 + 4 * a**3 * b + 10 * a**2 * b**2 + 4 * a * b**3 + b**4) / (80 * s**2)
        across = size**2 * 3 * (a**4 + a**3 * b + a**2 * b**2 + a * b**3 + b**4) / (20 * s)  # mean of r²/4
        variance = variance_t * along + across * (np.eye(3) - along / np.trace(along))
        return cls._spread(mass, p + mean_t * axis, variance)

    @classmethod
    def box(cls, mass: float, size: ArrayLike, com: ArrayLike = ORIGIN) -> Inertia:
        """A solid box, kg, with edges (3,) along the axes, m, around its centre, m.

        >>> Inertia.box(12.0, [1, 2, 3]).inertia.diagonal().round(12).tolist()
        [13.0, 10.0, 5.0]
        """
        return cls._spread(mass, com, np.diag(_lengths("size", size, (3,)) ** 2 / 12))

    @classmethod
    def ellipsoid(cls, mass: float, semi_axes: ArrayLike, com: ArrayLike = ORIGIN) -> Inertia:
        """A solid ellipsoid, kg, with semi-axes (3,) along the axes, m, around its centre, m.

        >>> Inertia.ellipsoid(5.0, [1, 2, 3]).inertia.diagonal().round(12).tolist()
        [13.0, 10.0, 5.0]
        """
        return cls._spread(mass, com, np.diag(_lengths("semi_axes", semi_axes, (3,)) ** 2 / 5))

    @classmethod
    def sphere(cls, mass: float, radius: float, com: ArrayLike = ORIGIN, *, hollow: bool = False) -> Inertia:
        """A solid ball, or a thin hollow one, kg, of a radius, m, around its centre, m.

        >>> Inertia.sphere(5.0, 1.0).inertia.diagonal().tolist()
        [2.0, 2.0, 2.0]
        >>> Inertia.sphere(3.0, 1.0, hollow=True).inertia.diagonal().tolist()
        [2.0, 2.0, 2.0]
        """
        share = 3 if flag("inertia: `hollow`", hollow) else 5
        return cls._spread(mass, com, _lengths("radius", radius, ()) ** 2 / share * np.eye(3))

    # ---- in other forms and frames

    @property
    def about_origin(self) -> Array:
        """Rotational inertia about the origin of the frame, shape (3, 3), kg·m².

        >>> Inertia.point(1.0, [1, 0, 0]).about_origin.diagonal().tolist()
        [0.0, 1.0, 1.0]
        """
        return self.inertia + self.mass * rotational(np.outer(self.com, self.com))

    @property
    def pseudo(self) -> Array:
        """Pseudo-inertia J = ∫ [r; 1][r; 1]ᵀ dm, shape (4, 4), [zhakatayev2023] (7): kg, kg·m and kg·m².

        >>> Inertia.point(2.0, [3, 0, 0]).pseudo[[0, 0, 3], [0, 3, 3]].tolist()
        [18.0, 6.0, 2.0]
        """
        c1 = np.append(self.com, 1.0)
        J: Array = self.mass * np.outer(c1, c1)
        J[:3, :3] += second_moments(self.inertia)
        return J

    def moved(self, transform: ArrayLike) -> Inertia:
        """The same body seen from another frame: its pseudo-inertia becomes T J Tᵀ.

        Parameters
        ----------
        transform : array_like, shape (4, 4)
            T = [[R, p], [0, 1]], which takes the coordinates of a point in the present frame A to those in
            the new frame B, r_B = R r_A + p: the pose of A in B. R may reflect: a left limb from a right one.

        Returns
        -------
        Inertia
            The body in frame B.

        Examples
        --------
        >>> T = np.eye(4)
        >>> T[:3, 3] = [0, 0, 2]
        >>> Inertia.sphere(1.0, 0.1).moved(T).com.tolist()
        [0.0, 0.0, 2.0]
        """
        T = _numbers("transform", transform, (4, 4))
        R, p = T[:3, :3], T[:3, 3]
        error = max(np.abs(R @ R.T - np.eye(3)).max(), np.abs(T[3] - (0, 0, 0, 1)).max())
        if error > TOLERANCE:
            raise ModelError(
                f"inertia: `transform` is {error:.3g} off a rigid one; expected [[R, p], [0, 1]], R Rᵀ = 1"
            )
        if not self.mass:
            return self
        # By way of Σ: R Σ Rᵀ is positive semidefinite whatever rounding R carries.
        return Inertia(self.mass, R @ self.com + p, rotational(R @ second_moments(self.inertia) @ R.T))

    def __add__(self, other: Inertia) -> Inertia:
        """The two bodies, given in one frame, welded together."""
        if not isinstance(other, Inertia):
            return NotImplemented
        if not (mass := self.mass + other.mass):
            return self
        share, apart = other.mass / mass, other.com - self.com
        between = self.mass * share * rotational(np.outer(apart, apart))
        return Inertia(mass, self.com + share * apart, self.inertia + other.inertia + between)

    # ---- as a value

    def _key(self) -> tuple[float, ...]:
        return (self.mass, *self.com.tolist(), *self.inertia.ravel().tolist())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Inertia) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Inertia(mass={self.mass}, com={self.com.tolist()}, inertia={self.inertia.tolist()})"

    def __reduce__(self) -> tuple[type[Inertia], tuple[float, Array, Array]]:
        return Inertia, (self.mass, self.com, self.inertia)  # by itself, NumPy unpickles writable arrays


def check_inertia(
    mass: float, com: ArrayLike, inertia: ArrayLike, where: str = "inertia"
) -> tuple[float, Array, Array]:
    """Mass properties as read-only arrays, or a :class:`ModelError` that says why no body has them.

    Parameters
    ----------
    mass, com, inertia
        As for :class:`Inertia`: kg; (3,), m; (3, 3) about the centre of mass, kg·m².
    where : str
        Whose they are: how the message begins.

    Returns
    -------
    mass, com, inertia : float, (3,) array, (3, 3) array
        Fresh, read-only, the inertia exactly symmetric.

    Examples
    --------
    >>> check_inertia(1.0, [0, 0, 0], np.diag([0.1, 0.1, 0.5]), where="link 'thigh'")
    Traceback (most recent call last):
    kinegrad.errors.ModelError: link 'thigh': principal moments (0.1, 0.1, 0.5) kg·m² about the centre of mass
    violate the triangle inequality: 0.5 > 0.1 + 0.1 (by 0.3)
    """
    m, c = _number("mass", mass, where), _numbers("com", com, (3,), where)
    about_c = _numbers("inertia", inertia, (3, 3), where)
    if m.real > 0 and not np.iscomplexobj(about_c) and np.abs(about_c).max() <= NOISE * m.real:
        return m, frozen(c), frozen(np.zeros((3, 3)))
    about_c = _symmetric("inertia", about_c, 3, where)
    if far_from_real():
        return m, frozen(c), frozen(about_c)
    if m.real < 0:
        raise ModelError(f"{where}: `mass` is {m.real:g} kg; expected 0 or more")
    if not m and (c.any() or about_c.any()):
        raise ModelError(
            f"{where}: `mass` is 0 kg, but `com` is {_text(c)} m and the largest entry of `inertia` "
            f"{np.abs(about_c).max():g} kg·m²; expected zeros (`Inertia.zero()`), or more mass"
        )
    low, mid, high = moments = np.linalg.eigvalsh(about_c.real)
    largest, noise = np.abs(moments).max(), NOISE * m.real
    found = f"{where}: principal moments {_text(moments)} kg·m² about the centre of mass"
    if low < -TOLERANCE * largest - noise:
        raise ModelError(f"{found}: {low:g} is negative (is the given inertia about another point?)")
    if (excess := high - mid - low) > PRINTED * largest + noise:
        reason = f"violate the triangle inequality: {high:g} > {low:g} + {mid:g} (by {excess:.3g})"
        raise ModelError(f"{found} {reason}")
    return m, frozen(c), frozen(about_c)


def rotational(sigma: Array) -> Array:
    """Return I = tr(Σ) 1 − Σ (3, 3), without cancellation on the diagonal."""
    xx, yy, zz = sigma.diagonal()
    return np.where(np.eye(3), [yy + zz, zz + xx, xx + yy], -sigma)


def second_moments(inertia: Array) -> Array:
    """Return Σ = ½ tr(I) 1 − I (3, 3)."""
    sigma: Array = np.trace(inertia) / 2 * np.eye(3) - inertia
    return sigma


def _about_com(mass: float, com: Array, about_origin: Array) -> Array:
    """I about the centre of mass, from Σ about the origin.

    Σ − m c cᵀ cancels: for a point mass only rounding is left of it. What that leaves below zero is cleared
    here, where its scale, the moment about the origin, is known.
    """
    sigma = about_origin - mass * np.outer(com, com)
    values, axes = np.linalg.eigh(sigma.real)
    rounding = (values < 0) & (values > -TOLERANCE * np.trace(about_origin).real)
    if rounding.any() and not np.iscomplexobj(sigma):
        sigma = (axes * np.where(rounding, 0.0, values)) @ axes.T
    return rotational(sigma)


def _number(name: str, value: float, where: str = "inertia") -> float:
    return _numbers(name, value, (), where).item()


def _numbers(name: str, value: ArrayLike, shape: tuple[int, ...], where: str = "inertia") -> Array:
    """A fresh array of finite float64, without negative zeros (so that equal values have equal hashes)."""
    expected = f"expected {f'real numbers of shape {shape}' if shape else 'one real number'}"
    try:
        array = numbers(value, "iufO")
    except Exception:  # whatever a foreign object raises when asked for its numbers
        raise ModelError(f"{where}: `{name}` is {shown(value)}; {expected}") from None
    if array.shape != shape:
        raise ModelError(f"{where}: `{name}` has shape {array.shape}; {expected}")
    if too_large(array):
        raise ModelError(f"{where}: `{name}` is {array.tolist()}; expected finite numbers, below {LARGEST:g}")
    array += 0.0
    return array


def _lengths(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = _numbers(name, value, shape)
    if (array.real < 0).any() and not far_from_real():
        raise ModelError(f"inertia: `{name}` is {array.real.tolist()} m; expected 0 or more")
    return array


def _symmetric(name: str, value: ArrayLike, size: int, where: str = "inertia") -> Array:
    array = _numbers(name, value, (size, size), where)
    skew = np.abs(array - array.T)
    if skew.max() > TOLERANCE * np.abs(array).max():
        i, j = (int(k) for k in np.unravel_index(skew.argmax(), skew.shape))
        entries = f"[{i}, {j}] is {array[i, j]:g} and [{j}, {i}] is {array[j, i]:g}"
        raise ModelError(f"{where}: `{name}` is not symmetric: {entries}; expected them equal")
    return (array + array.T) / 2


def _text(values: NDArray[np.floating]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
