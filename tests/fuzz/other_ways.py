"""Other ways to the same numbers: of fuzzed cases with ordinary mechanisms and states."""

import numpy as np

import kinegrad as kg
from kinegrad import PackedMatrix

ROUNDING = 1e-12  # of sums over a mechanism of some joints, by their largest term


class Compared:
    """States and loads of a case of one batch shape, to compute the same in another way."""

    def __init__(self, case):
        self.case, self.model, self.shape = case, case.model, case.common()
        self.state = [np.broadcast_to(case.number(x), (*self.shape, case.model.n)) for x in case.given]
        self.loads = {"loads": case.arguments["loads"]} if "loads" in case.arguments else {}
        self.q = self.state[0]

    def largest(self, x):
        """Of each state."""
        return np.abs(np.asarray(x).reshape(*self.shape, -1)).max(axis=-1, initial=0.0)

    def agree(self, actual, wanted, *terms, condition=1.0):
        """Within the rounding of the terms that were added up, times a condition of each state."""
        size = np.max([self.largest(x) for x in (wanted, *terms)], axis=0)
        error, allowed = self.largest(actual - wanted), ROUNDING * condition * size
        assert (error <= allowed).all(), f"differs by {error.max()}; expected at most {allowed.max()}"

    def terms(self, q, v, a):
        """Inertial and other forces, which may cancel; M and its condition with ones on its diagonal."""
        M = kg.mass_matrix(self.model, q)
        d = 1 / np.sqrt(np.einsum("...ii->...i", M))
        forces = kg.bias_forces(self.model, q, v, **self.loads), kg.gravity_forces(self.model, q)
        condition = np.linalg.cond(M * d[..., :, None] * d[..., None, :])
        return (M * a[..., None, :], *forces), M, condition

    def inverse_dynamics(self, result):
        method = {"spatial": "lagrange", "lagrange": "spatial"}[self.case.arguments["method"]]
        other = kg.inverse_dynamics(self.model, *self.state, method=method, **self.loads)
        self.agree(result, other, *self.terms(*self.state)[0])

    def forward_dynamics(self, result):
        q, v, tau = self.state
        terms, _, condition = self.terms(q, v, result)
        self.agree(kg.inverse_dynamics(self.model, q, v, result, **self.loads), tau, *terms, condition=condition)

    def hybrid_dynamics(self, result):
        q, v = self.state[:2]
        terms, _, condition = self.terms(q, v, result.a)
        self.agree(
            kg.inverse_dynamics(self.model, q, v, result.a, **self.loads), result.tau, *terms, condition=condition
        )

    def mass_matrix(self, result):
        zero = np.zeros_like(self.q)
        lagrange = kg.inverse_dynamics_derivatives(self.model, self.q, zero, zero, method="lagrange")
        self.agree(result, lagrange.dtau_da)

    def kinetic_energy(self, result):
        q, v = self.state
        M = kg.mass_matrix(self.model, q)
        self.agree(result, np.einsum("...i,...ij,...j->...", v, M, v) / 2, v[..., :, None] * M * v[..., None, :])

    def derivatives(self, q, v, a):
        found = kg.inverse_dynamics_derivatives(self.model, q, v, a, method="lagrange", **self.loads)
        return [found.dtau_dq, found.dtau_dv, found.dtau_da]

    def inverse_dynamics_derivatives(self, result):
        dense = [x.to_dense() if isinstance(x, PackedMatrix) else x for x in list(vars(result).values())[1:]]
        lagrange = self.derivatives(*self.state)
        for actual, wanted in zip(dense, lagrange, strict=True):
            self.agree(actual, wanted, *self.terms(*self.state)[0])

    def inverse_dynamics_jvp(self, result):
        terms = [J * dx[..., None, :] for J, dx in zip(self.derivatives(*self.state[:3]), self.state[3:], strict=True)]
        self.agree(result, sum(x.sum(axis=-1) for x in terms), *terms)

    def weighted(self, q, v, a, w):
        """Forces that may cancel, as above, by the largest weight."""
        largest = self.largest(w)
        return [x * largest.reshape(*self.shape, *[1] * (x.ndim - largest.ndim)) for x in self.terms(q, v, a)[0]]

    def inverse_dynamics_vjp(self, result):
        w = self.state[3]
        for actual, J in zip(vars(result).values(), self.derivatives(*self.state[:3]), strict=True):
            terms = J * w[..., :, None]
            self.agree(actual, terms.sum(axis=-2), terms, *self.weighted(*self.state))

    def inverse_dynamics_hvp(self, result):
        q, v, a, *d, w = self.state
        method = {"spatial": "dual", "dual": "spatial"}[self.case.arguments["method"]]
        other = kg.inverse_dynamics_hvp(self.model, q, v, a, w, *d, method=method, **self.loads)
        size = 1 + max(float(np.abs(x).max(initial=0.0)) for x in (v, *d))
        terms = [size**2 * x for x in self.weighted(q, v, a, w)]
        for actual, wanted in zip(vars(result).values(), vars(other).values(), strict=True):
            self.agree(actual, wanted, *terms)

    def inverse_dynamics_design_vjp(self, result):
        q, v, a, y = self.state
        slopes = kg.inverse_dynamics_design_derivatives(self.case.design, q, v, a, **self.loads)
        terms = slopes * y[..., :, None]
        self.agree(result, terms.sum(axis=-2), terms, *self.weighted(*self.state))

    def inverse_dynamics_regressor(self, result):
        zero = np.zeros(self.model.n)
        bare = self.model.replace(stiffness=zero, damping=zero, armature=zero)
        terms = result * kg.inertial_parameters(self.model)
        self.agree(kg.inverse_dynamics(bare, *self.state), terms.sum(axis=-1), terms)

    def forward_dynamics_derivatives(self, result):
        _, M, condition = self.terms(*self.state[:2], result.a)
        product = result.da_dtau[..., None] * M[..., None, :, :]
        self.agree(product.sum(axis=-2), np.eye(self.model.n) + 0 * M, product, condition=condition)

    def jacobian(self, result):
        v = np.broadcast_to(self.case.numbers.normal(size=self.model.n), self.q.shape)
        link, point = self.case.arguments["link"], self.case.arguments["point"]
        moved = kg.point_motion(self.model, self.q, v, link=link, point=point).velocity
        along = v.reshape(*self.shape, *[1] * (result.linear.ndim - v.ndim), -1)
        self.agree((result.linear * along).sum(axis=-1), moved, result.linear * along)

    def momentum_derivatives(self, result):
        q, v = self.state
        terms = result.dlinear_dv * v[..., None, :]
        self.agree(terms.sum(axis=-1), kg.momentum(self.model, q, v).linear, terms)
