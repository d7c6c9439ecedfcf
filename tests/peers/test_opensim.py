"""Closed loops in OpenSim, whose Simbody solves for accelerations and multipliers by O(n) methods of its own.

OpenSim is not in the tests' extra: it is large, and wants Python and NumPy of its own choice.
"""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kinegrad as kg
from tests.constrained.test_derivatives import closed_state
from tests.constrained.test_dynamics import relative

# with a CasADi of its own, it cannot be loaded beside that of other tests: run this file alone
osim = pytest.importorskip("opensim", exc_type=ImportError)
osim.Logger.removeFileSink()  # which writes into the working directory


def vector(x):
    return osim.Vec3(*(float(c) for c in x))


def frame(T, axis, to):
    """Location and orientation, by turns about x, y and z of the body, of T turned so that its axis `to` is `axis`."""
    across = np.eye(3)[np.argmin(np.abs(axis))]
    second = np.cross(axis, across) / np.linalg.norm(np.cross(axis, across))
    columns = {"z": [second, np.cross(axis, second), axis], "x": [axis, second, np.cross(axis, second)]}[to]
    R = T[:3, :3] @ np.transpose(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in gimbal lock, any of the turns that lead there will do
        turns = Rotation.from_matrix(R).as_euler("XYZ")
    return vector(T[:3, 3]), vector(turns)


class OpenSim:
    """A model of hinges and sliders, each with a body and an actuator of its own, and points that are tied."""

    def __init__(self, held):
        self.ours, self.model = held.model, osim.Model()
        self.model.set_gravity(vector(self.ours.gravity))
        bodies, ground = {}, self.model.getGround()
        for i, (name, joint) in enumerate(zip(self.ours.link_names, self.ours.joints, strict=True)):
            com, J = self.ours.com[i], self.ours.inertia[i]
            moments = osim.Inertia(J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
            bodies[i] = osim.Body(name, float(self.ours.mass[i]), vector(com), moments)
            self.model.addBody(bodies[i])
            parent = self.ours.parents[i]
            kind, to = (osim.PinJoint, "z") if joint.kind == "revolute" else (osim.SliderJoint, "x")
            place = frame(self.ours.placement[i], joint.axis, to)
            tip = frame(np.linalg.inv(self.ours.tip[i]), joint.axis, to)
            moving = kind(f"j{i}", ground if parent < 0 else bodies[parent], *place, bodies[i], *tip)
            moving.updCoordinate().setName(f"q{i}")
            self.model.addJoint(moving)
            motor = osim.CoordinateActuator(f"q{i}")
            motor.setName(f"motor{i}")
            self.model.addForce(motor)
        for one in held:
            (link, point), (other, there) = self.end(one.link, one.point), self.end(one.other, one.other_point)
            tied = osim.PointConstraint(bodies[other], vector(there), bodies[link], vector(point))
            tied.setName(one.name)
            self.model.addConstraint(tied)
        self.state = self.model.initSystem()

    def end(self, name, point):
        """The link of a name, which may be that of a frame, and a point in it."""
        link, placement = self.ours.locate(name)
        return link, point if placement is None else placement[:3, :3] @ point + placement[:3, 3]

    def accelerations(self, q, v, tau):
        """a, and the forces on the first body of each constraint: Simbody's multipliers act with the other sign."""
        coordinates = [self.model.getCoordinateSet().get(f"q{i}") for i in range(self.ours.n)]
        for i, coordinate in enumerate(coordinates):
            coordinate.setValue(self.state, float(q[i]), False)
            coordinate.setSpeedValue(self.state, float(v[i]))
            motor = osim.ScalarActuator.safeDownCast(self.model.getForceSet().get(f"motor{i}"))
            motor.overrideActuation(self.state, True)
            motor.setOverrideActuation(self.state, float(tau[i]))
        self.model.realizeAcceleration(self.state)
        a = [coordinate.getAccelerationValue(self.state) for coordinate in coordinates]
        return np.array(a), -self.state.getMultipliers().to_numpy()


def points_of(held):
    """Loops of shifts as contacts of two links, along axes of the world: what OpenSim's point constraint has."""
    return [kg.Contact(one.link, one.placement[:3, 3], "xyz", one.other, one.other_placement[:3, 3]) for one in held]


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "stewart_platform"])
def test_closed_loops(name):
    """Planar loops are redundant in space, and Simbody shares forces out by least norm, too.

    It takes bodies of no mass for loose ends, so all of them have some here.
    """
    slender, loops = getattr(kg.samples, name)()
    model = slender.replace(mass=slender.mass + 0.1, inertia=slender.inertia + 1e-3 * np.eye(3))
    held = kg.ConstraintSet(model, points_of(loops))
    peer = OpenSim(held)
    for seed in range(3):
        state = closed_state(model, kg.ConstraintSet(model, loops), seed)
        found = kg.constrained_dynamics(model, held, *state, redundant="least-squares")
        a, forces = peer.accelerations(*state)
        assert relative(found.a, a) < 1e-11
        assert relative(found.forces, forces) < 1e-11
