"""Every public function on one model and batch, as a flat dictionary of arrays."""

import numpy as np

import kinegrad as kg
from kinegrad.simulate import KineticEnergy, Objective, adjoint_gradient, simulate_fixed
from tests.constraints.sets import random_constraints
from tests.mixed import mixed_loads, mixed_state, mixed_tree

PACKED = ("dtau_dq", "dtau_dv", "dtau_da")


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
    found |= forward_and_derivatives(model, q, v, a, every, links, points)
    found |= by_design(model, q, v, a, one, links, points)
    found |= constrained_motion(model, q, v, a, every)
    found |= in_steps(model, q, v, a, one)
    found |= in_coordinates(states)
    found |= constrained(model, q, v, a)
    found |= with_elements(model, q, v, a)
    flat = {}
    for name, value in found.items():
        fields = {"": value} if isinstance(value, np.ndarray) else vars(value)
        flat |= {f"{name} {field}": x for field, x in fields.items() if x is not None}
    return flat


def constrained(model, q, v, a):
    """Every kind of row: errors, Jacobian, rates, their derivatives, curvature, and by design."""
    held = kg.ConstraintSet(model, random_constraints(model, 3, loops=("weld", "xYZ", "yXZ")))
    f = np.random.default_rng(10).normal(size=(*q.shape[:-1], held.m))
    design = design_of(model)
    return {
        "rows": held.error(q),
        "rows by q": held.jacobian(q),
        "rows in motion": held.acceleration(q, v, a),
        "rows by state": held.derivatives(q, v, a),
        "rows, curvature": held.curvature(q, f),
        "rows by design": kg.constraint_design_derivatives(design, held, q, v, a),
        "G by design": kg.constraint_jacobian_design_derivatives(design, held, q),
        "rows by design twice": kg.constraint_design_hessian(design, held, q, v, f, f[..., ::-1]),
    }


def with_elements(model, q, v, a):
    """What kernels of force elements find."""
    first, *_, last = model.link_names
    spring = kg.SpringDamper(last, [0.1, 0.2, 0.3], first, [0.5, 0.0, 0.2], 20.0, 1.0, 0.3)
    mount = kg.Bushing(last, [0.1, 0.0, 0.2], None, kg.rotate("x", 0.4), np.arange(1.0, 7.0), np.ones(6))
    held = model.replace(elements={"spring": spring, "mount": mount})
    design = kg.Design(held, ["spring.stiffness", "mount.placement.rx", f"{model.joint_names[0]}.tip.x"])
    return {
        "elements": kg.bias_forces(held, q, v),
        "energy of elements": kg.potential_energy(held, q),
        "second derivatives with elements": kg.inverse_dynamics_hvp(held, q, v, a, v, a, v, q),
        "derivatives with elements": kg.inverse_dynamics_derivatives(held, q, v, a),
        "elements by design": kg.inverse_dynamics_design_derivatives(design, q, v, a),
        "elements by design twice": kg.inverse_dynamics_design_hessian(design, q, v, a, v),
    }


def forward_and_derivatives(model, q, v, a, loads, links, points):
    """Forward dynamics, with M made regular by armature, and derivatives with respect to the state and to loads."""
    stiff = model.replace(armature=model.armature + 0.5)
    found = {
        "frames by q": kg.forward_kinematics_derivatives(model, q, v, a),
        "points by q": kg.point_motion_derivatives(model, q, v, a, link=links, point=points),
        "points by q twice": kg.point_motion_hessian(model, q, v, a, link=links[0], w_acceleration=[1, 2, 3]),
        "center by q twice": kg.center_of_mass_hessian(model, q, [1, 2, 3]),
        "momentum by q twice": kg.momentum_hessian(model, q, v, w_linear=[1, 2, 3], w_angular=[3, 1, 2]),
        "center by q": kg.center_of_mass_derivatives(model, q),
        "momentum by q": kg.momentum_derivatives(model, q, v),
        "tau by loads": kg.inverse_dynamics_load_derivatives(model, q, loads=loads),
    }
    for name, given in (("none", None), ("every", loads)):
        found[f"jvp {name}"] = kg.inverse_dynamics_jvp(model, q, v, a, a, v, q, loads=given)
        found[f"vjp {name}"] = kg.inverse_dynamics_vjp(model, q, v, a, v, loads=given)
        found[f"second {name}"] = kg.inverse_dynamics_hessian(model, q, v, a, v, loads=given)
        found[f"second order {name}"] = kg.inverse_dynamics_second_order(model, q, v, a, v, loads=given)
        for method in ("spatial", "dual"):
            found[f"hvp {method} {name}"] = kg.inverse_dynamics_hvp(
                model, q, v, a, v, a, v, q, loads=given, method=method
            )
        found[f"a by state twice {name}"] = kg.forward_dynamics_hessian(stiff, q, v, a, v, loads=given)
        found[f"a by state {name}"] = kg.forward_dynamics_derivatives(stiff, q, v, a, loads=given)
        for method in ("aba", "crba"):
            found[f"a by {method} {name}"] = kg.forward_dynamics(stiff, q, v, a, loads=given, method=method)
        for method in ("spatial", "lagrange"):
            options = {"loads": given, "method": method}
            found[f"tau by state {method} {name}"] = kg.inverse_dynamics_derivatives(model, q, v, a, **options)
            packed = kg.inverse_dynamics_derivatives(model, q, v, a, packed=True, **options)
            found |= {f"packed {field} {method} {name}": vars(packed)[field].values for field in PACKED}
    return found


def constrained_motion(model, q, v, tau, loads):
    """Under a contact, a rod and a coupling: values, impacts, and their derivatives."""
    stiff = model.replace(armature=model.armature + 0.5)
    link, (joint, other) = model.link_names[-1], (model.joint_names[0], model.joint_names[-1])
    contact, rod = (
        kg.Contact(link, [0.1, 0.2, 0.3], [[0.6, 0.0, 0.8]]),
        kg.Distance(link, [0.3, 0, 0], None, [9, 9, 9], 1.0),
    )
    held = kg.ConstraintSet(stiff, [contact, rod, kg.Coupling(joint, other, 0.5)])
    found = {"impact": kg.impact(stiff, held, q, v, restitution=0.5)}
    found["impact by state"] = kg.impact_derivatives(stiff, held, q, v)
    for name, given in (("none", None), ("every", loads)):
        options = {"loads": given, "stabilisation": 2.0}
        found[f"constrained {name}"] = kg.constrained_dynamics(stiff, held, q, v, tau, **options)
        found[f"constrained by state twice {name}"] = kg.constrained_dynamics_hessian(
            stiff, held, q, v, tau, w_a=v, **options
        )
        found[f"constrained by state {name}"] = kg.constrained_dynamics_derivatives(stiff, held, q, v, tau, **options)
    return found


def design_of(model: kg.Model) -> kg.Design:
    """Four parameters of different kinds: so that lanes run over states for many of them, else over directions."""
    link, joint = model.link_names[int(np.argmax(model.mass))], model.joint_names[-1]
    names = [f"{link}.mass", f"{joint}.placement.x", f"{model.joint_names[0]}.damping", "gravity.z"]
    return kg.Design(model, names)


def by_design(model, q, v, a, loads, links, points):
    """Derivatives of everything with respect to design parameters; M is made regular by armature."""
    stiff = model.replace(armature=model.armature + 0.5)
    design = design_of(stiff)
    slope = np.random.default_rng(9).normal(size=(3, *q.shape, design.p))
    follow = dict(zip(("dq_dp", "dv_dp", "dtau_dp"), slope, strict=True))
    return {
        "design tau": kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads),
        "design y tau": kg.inverse_dynamics_design_vjp(design, q, v, a, v, loads=loads),
        "design y tau by state": kg.inverse_dynamics_design_hessian(design, q, v, a, v, loads=loads),
        "design y tau alone": kg.inverse_dynamics_design_vjp(design, q, v, a, v),
        "design a": kg.forward_dynamics_design_derivatives(design, q, v, a, loads=loads),
        "design a, total": kg.forward_dynamics_design_derivatives(design, q, v, a, **follow),
        "design M": kg.mass_matrix_design_derivatives(design, q),
        "design T": kg.transform_design_derivatives(design, q),
        "design points": kg.point_motion_design_derivatives(design, q, v, a, link=links, point=points),
        "design energy": kg.energy_design_derivatives(design, q, v),
    }


def in_coordinates(states):
    """Coordinates that are not joints: a ball with couplings in series, and couplings across branches."""
    found = {}
    for seed in (0, 1):
        model = mixed_tree(seed, joints=3)
        q, v, a = mixed_state(model, seed, (states,))
        loads, held = mixed_loads(model, seed), {"prescribed": model.speed_names[:1]}
        found |= {
            f"{seed} tau": kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads),
            f"{seed} mass": kg.mass_matrix(model, q),
            f"{seed} a": kg.forward_dynamics_derivatives(model, q, v, a, loads=loads),
            f"{seed} a by crba": kg.forward_dynamics(model, q, v, a, method="crba"),
            f"{seed} hybrid": kg.hybrid_dynamics(model, q, v, a, a, loads=loads, **held),
        }
    return found


def in_steps(model, q, v, tau, loads):
    """Fixed steps: states, tangents, a design for each state, and backwards."""
    stiff = model.replace(armature=model.armature + 0.5)
    design = design_of(stiff)
    models = [design.at(design.values * (1 + 0.1 * k)).model for k in range(len(q))]
    run = {"step": 0.01, "steps": 2, "loads": loads}
    held = np.stack([tau, -tau])
    motions = {
        "steps": simulate_fixed(stiff, q, v, tau=held, design=design, **run),
        "steps by euler": simulate_fixed(stiff, q, v, method="semi_implicit_euler", every=2, **run),
        "steps of designs": simulate_fixed(models, q, v, tau=held, **run),
    }
    effort = Objective(end=[KineticEnergy()], integral=[KineticEnergy()])
    motions |= {
        "adjoint": adjoint_gradient(stiff, q, v, effort, tau=held, design=design, **run),
        "adjoint of euler": adjoint_gradient(stiff, q, v, effort, method="semi_implicit_euler", step=0.01, steps=2),
    }
    fields = ("q", "v", "a", "dq_dp", "dv_dp", "da_dp", "dvalue_dp", "dvalue_dq0", "dvalue_dv0", "dvalue_dtau")
    return {f"{name} {x}": getattr(motion, x) for name, motion in motions.items() for x in fields
            if getattr(motion, x, None) is not None}  # fmt: skip
