"""Shapes to draw: checked, part of the model's value, and without influence on anything else."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Box, Capsule, Cylinder, Frame, Inertia, Mesh, ModelError, Shape, Sphere, samples, translate

ARM = samples.two_link()
SHAPES = (
    Shape("upper_arm", Capsule(0.04, 0.4), [-0.2, 0, 0], (0.8, 0.6, 0.5)),
    Shape("forearm", Cylinder(0.03, 0.4), translate(-0.2, 0, 0), (0.8, 0.6, 0.5, 0.3)),
    Shape("forearm", Sphere(0.05)),
    Shape("grip", Box([0.1, 0.02, 0.02])),
    Shape("grip", Mesh("meshes/grip.stl", 1e-3)),
    Shape(None, Box([1, 1, 0.1]), [0, 0, -0.05]),
    Shape("forearm", Sphere(0.2), collision=True),
)
MODEL = ARM.replace(frames={"grip": Frame("forearm", [0.05, 0, 0])}, shapes=SHAPES)


def test_models_with_shapes_are_values():
    assert MODEL.shapes == SHAPES
    for twin in (pickle.loads(pickle.dumps(MODEL)), MODEL.replace(shapes=list(SHAPES))):
        assert twin == MODEL
        assert hash(twin) == hash(MODEL)
    assert MODEL.replace(shapes=SHAPES[:2]) != MODEL
    assert MODEL.replace(shapes=()).frames == MODEL.frames
    assert "7 shapes" in repr(MODEL)
    with pytest.raises(ValueError, match="read-only"):
        MODEL.shapes[0].placement[0, 0] = 2.0


def test_nothing_moves_otherwise():
    state = np.random.default_rng(0).normal(size=(3, 2))
    assert np.array_equal(kg.inverse_dynamics(MODEL, *state), kg.inverse_dynamics(ARM, *state))


def test_numbers_are_plain():
    assert SHAPES[0].color == (0.8, 0.6, 0.5, 1.0)
    assert SHAPES[1].color == (0.8, 0.6, 0.5, 0.3)
    assert SHAPES[2].color is None
    assert SHAPES[3].solid.size == (0.1, 0.02, 0.02)
    assert SHAPES[4].solid.scale == (0.001, 0.001, 0.001)
    assert Mesh(Path("a") / "b.obj", [1, -1, 1]) == Mesh(str(Path("a/b.obj")), (1.0, -1.0, 1.0))
    assert Sphere(np.float32(0.5)) == Sphere(0.5)


def test_builders_add_shapes():
    builder = kg.ModelBuilder("door")
    leaf = builder.add("hinge", None, kg.revolute("z"), link="leaf", inertia=Inertia.point(1, [0, 0, 0]))
    knob = builder.add_frame("knob", leaf, [0.7, 0, 1])
    builder.add_shape(leaf, Box([0.8, 0.04, 2.0]), [0.4, 0, 1], color=[0.6, 0.4, 0.2])
    builder.add_shape(knob, Sphere(0.03))
    assert [shape.link for shape in builder.build().shapes] == ["leaf", "knob"]
    with pytest.raises(kg.InputError, match="did you mean 'leaf'"):
        builder.add_shape("leef", Sphere(0.03))


def test_designs_may_size_shapes():
    """Slopes end at a drawing, whose numbers are plain; the mechanism's are differentiated as ever."""

    def rod(length):
        builder = kg.ModelBuilder("rod")
        body = Inertia.rod(1.0, [0, 0, 0], [length, 0, 0])
        link = builder.add("hinge", None, kg.revolute("y"), link="rod", inertia=body)
        builder.add_shape(link, Capsule(0.01, length), [length / 2, 0, 0])
        return builder.build()

    design = kg.Design.from_function(rod, {"length": 0.5})
    found = kg.mass_matrix_design_derivatives(design, [0.3])
    np.testing.assert_allclose(found.ravel(), 2 * 0.5 / 3, rtol=1e-12)
    assert design.at([0.7]).model.shapes[0].solid.length == 0.7


def test_wrong_shapes_are_named():
    for make, message in (
        (lambda: Sphere(0.0), "`radius` of a Sphere is 0; expected a positive number, m"),
        (lambda: Cylinder(0.1, -1), "`length` of a Cylinder"),
        (lambda: Capsule("thick", 1), "`radius` of a Capsule is a str"),
        (lambda: Capsule(np.inf, 1), "expected one finite number"),
        (lambda: Box([1, 2]), "expected 3 finite numbers"),
        (lambda: Box([1, 2, 0]), "three positive numbers"),
        (lambda: Mesh(""), "expected the name of a file"),
        (lambda: Mesh(3), "expected the name of a file"),
        (lambda: Mesh("a.stl", 0), "not zero"),
        (lambda: Shape("forearm", "ball"), "`solid` of a shape is 'ball'"),
        (lambda: Shape(3, Sphere(1)), "`link` of a shape"),
        (lambda: Shape("forearm", Sphere(1), np.ones((4, 4))), "`placement` of a shape"),
        (lambda: Shape("forearm", Sphere(1), color=(1, 2, 3)), "from 0 to 1"),
        (lambda: Shape("forearm", Sphere(1), color="red"), "`color` of a shape"),
        (lambda: Shape("forearm", Sphere(1), collision=1), "`collision` of a shape is 1; expected True or False"),
        (lambda: ARM.replace(shapes=[Sphere(1)]), r"`shapes`\[0\] is .*; expected a Shape"),
        (lambda: ARM.replace(shapes=3), "`shapes` is 3"),
        (lambda: ARM.replace(shapes=[Shape("forarm", Sphere(1))]), r"`shapes`\[0\]: link or frame 'forarm' does not"),
        (lambda: MODEL.replace(frames={}), r"`shapes`\[3\]: link or frame 'grip' does not exist"),
    ):
        with pytest.raises(ModelError, match=message):
            make()
