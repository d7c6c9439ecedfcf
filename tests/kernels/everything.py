"""Every public function on one model and batch, as a flat dictionary of arrays."""

import numpy as np

import kinegrad as kg


def models() -> list[kg.Model]:
    """A chain, and a tree of all kinds of joints with massless links, springs, dampers and armatures."""
    return [kg.samples.spatial_chain(5), kg.samples.random_tree(7, seed=4)]


def everything(model: kg.Model, states: int, seed: int = 5) -> dict[str, np.ndarray]:
    """All that can be computed for `states` random states under random loads."""
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, states, model.n))
    force, point, torque = rng.normal(size=(3, states, model.n, 3))
    every = kg.Loads(force, point, torque)
    one = kg.Loads(force={model.link_names[-1]: [1.0, 2.0, 3.0]})
    links, points = [model.link_names[-1], model.link_names[1]], rng.normal(size=(2, 3))
    found = {
        "frames": kg.forward_kinematics(model, q),
        "moving": kg.forward_kinematics(model, q, v),
        "accelerating": kg.forward_kinematics(model, q, v, a),
        "point": kg.point_motion(model, q, link=links[0]),
        "points": kg.point_motion(model, q, v, a, link=links, point=points),
        "jacobian": kg.jacobian(model, q, link=links[0], point=points[0]),
        "jacobians": kg.jacobian(model, q, link=links, point=points),
        "mass": kg.mass_matrix(model, q),
        "bias": kg.bias_forces(model, q, v),
        "gravity": kg.gravity_forces(model, q),
        "kinetic": kg.kinetic_energy(model, q, v),
        "potential": kg.potential_energy(model, q),
        "center": kg.center_of_mass(model, q),
        "momentum": kg.momentum(model, q, v),
        "regressor": kg.inverse_dynamics_regressor(model, q, v, a),
    }
    held = {"prescribed": model.joint_names[::2]}
    design = kg.Design(model, [f"{model.link_names[-1]}.mass", f"{model.joint_names[0]}.damping"])
    slopes = dict(zip(("dq_dp", "dv_dp", "dtau_dp", "da_dp"), rng.normal(size=(4, model.n, 2)), strict=True))
    for name, loads in (("none", None), ("every", every), ("one", one)):
        found[f"hybrid {name}"] = kg.hybrid_dynamics(model, q, v, a, a, loads=loads, **held)
        change = kg.hybrid_dynamics_design_derivatives(design, q, v, a, a, loads=loads, **held, **slopes)
        found[f"hybrid by design {name}"] = change
    for method in ("spatial", "lagrange"):
        for name, loads in (("none", None), ("every", every), ("one", one)):
            found[f"{method} {name}"] = kg.inverse_dynamics(model, q, v, a, loads=loads, method=method)
    flat = {}
    for name, value in found.items():
        fields = {"": value} if isinstance(value, np.ndarray) else vars(value)
        flat |= {f"{name} {field}": x for field, x in fields.items() if x is not None}
    return flat
