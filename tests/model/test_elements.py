"""Force elements as parts of a model: values, names, links, and what is refused."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Bushing, SpringDamper, samples
from kinegrad.errors import InputError, ModelError
from kinegrad.model.elements import way

STRAP = SpringDamper("forearm", [0.1, 0, 0], None, [0, 0.3, 0], 100.0, 2.0, 0.3)
MOUNT = Bushing("forearm", kg.rotate("z", 0.1), "upper_arm", [0.1, 0, 0], np.arange(6.0), np.ones(6))


def held():
    return samples.two_link().replace(elements={"strap": STRAP, "mount": MOUNT})


def test_values():
    """Equal and hashed by value, pickled, read-only, and copies of what was given."""
    point = np.array([0.1, 0, -0.0])
    twin = SpringDamper("forearm", point, None, (0, 0.3, 0), 100, 2, 0.3)
    point[0] = 5.0
    assert twin == STRAP
    assert hash(twin) == hash(STRAP)
    assert twin != SpringDamper("forearm", [0.1, 0, 0], None, [0, 0.3, 0], 100.0, 2.0, 0.31)
    assert STRAP != MOUNT
    assert STRAP != 5
    for element in (STRAP, MOUNT):
        assert pickle.loads(pickle.dumps(element)) == element
    for array in (STRAP.point, MOUNT.placement, MOUNT.damping):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    model = held()
    assert pickle.loads(pickle.dumps(model)) == model
    assert model == held()
    assert model != model.without_elements
    assert model.without_elements == samples.two_link()
    assert model.without_elements.without_elements is model.without_elements
    with pytest.raises(TypeError):
        model.elements["other"] = STRAP


def test_shown():
    """By repr, and in the summary of the model."""
    assert repr(STRAP) == "SpringDamper(between 'forearm' and the world: stiffness 100, damping 2, rest length 0.3)"
    assert repr(MOUNT).startswith("Bushing(between 'forearm' and 'upper_arm': stiffness (0, 1, 2, 3, 4, 5), damping (1")
    assert "  'strap': SpringDamper(between 'forearm' and the world" in repr(held())


def test_numbers_by_name():
    """What designs read and change, one by one."""
    assert STRAP.number("rest_length") == 0.3
    assert STRAP.changed("point.y", lambda x: x + 2).point.tolist() == [0.1, 2.0, 0.0]
    assert MOUNT.number("stiffness.rx") == 3.0
    assert MOUNT.number("placement.rz") == 0.0
    assert np.allclose(MOUNT.changed("placement.rz", lambda x: x + 0.2).placement, kg.rotate("z", 0.3))
    assert MOUNT.changed("other_placement.x", lambda x: 2 * x).other_placement[0, 3] == 0.2
    for element in (STRAP, MOUNT):
        for name in element.constants:
            assert element.changed(name, lambda x: x) == element


def test_ways():
    """Joints that move one link with respect to another: not those that both hang on."""
    parents = [-1, 0, 1, 1, 3, -1]
    assert way(parents, 2, 4) == ([2], [3, 4])
    assert way(parents, 4, -1) == ([4, 3, 1, 0], [])
    assert way(parents, 0, 4) == ([], [1, 3, 4])
    assert way(parents, 5, 2) == ([5], [0, 1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpringDamper(None), "`link` of a SpringDamper is None; expected text"),
        (lambda: SpringDamper("a", [1, 2]), "`point` of a SpringDamper is .*; expected 3 finite numbers"),
        (lambda: SpringDamper("a", other_point=[1, 2, np.nan]), "`other_point` of a SpringDamper is"),
        (lambda: SpringDamper("a", other_point="abc"), "`other_point` of a SpringDamper is a str; expected 3 numbers"),
        (lambda: SpringDamper("a", stiffness=[1.0]), "`stiffness` of a SpringDamper is .*; expected a finite number"),
        (lambda: SpringDamper("a", stiffness=1e200), "`stiffness` of a SpringDamper is"),
        (lambda: SpringDamper("a", damping=-1), "`damping` of a SpringDamper is -1.0; expected zero or more"),
        (lambda: SpringDamper("a", rest_length=-1), "`rest_length` of a SpringDamper is -1.0; expected zero or more"),
        (lambda: Bushing("a", stiffness=[1, 2, 3]), "`stiffness` of a Bushing is .*; expected 6 finite numbers"),
        (lambda: Bushing("a", damping=[-1, 0, 0, 0, 0, 0]), "`damping` of a Bushing is .*; expected six numbers, zero"),
        (lambda: Bushing("a", np.zeros((4, 4))), "`placement` of a Bushing"),
        (lambda: Bushing("a", other=5), "`other` of a Bushing is 5; expected text"),
    ],
)
def test_elements_that_are_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([STRAP], "`elements` is .*; expected a dictionary from names to SpringDamper and Bushing objects"),
        ({"strap": 5}, "element 'strap' is 5; expected a SpringDamper or a Bushing"),
        ({5: STRAP}, "the name of an element is 5; expected text"),
        ({"": STRAP}, "the name of an element is ''"),
        ({"elbow": STRAP}, "element 'elbow' has the name of a joint; choose another name"),
        ({"forearm": STRAP}, "element 'forearm' has the name of a link; choose another name"),
        ({"gravity": STRAP}, "the name of an element is 'gravity'"),
        ({"s": SpringDamper("forarm")}, "element 's': link 'forarm' does not exist in model 'two_link'; did you mean"),
        ({"s": SpringDamper("forearm", other="forearm")}, "element 's' acts between 'forearm' and itself"),
    ],
)
def test_models_that_are_refused(elements, message):
    with pytest.raises(ModelError, match=message):
        samples.two_link().replace(elements=elements)


def test_builder():
    """Elements between what is there, each name once; links inside a ball are no bodies."""
    builder = kg.ModelBuilder("leg")
    thigh = builder.add("hip", None, kg.spherical(quaternion=True), link="thigh", inertia=kg.Inertia.sphere(1, 0.1))
    builder.add_frame("knee cap", thigh, [0, 0, -0.4])
    assert builder.add_element("muscle", SpringDamper("knee cap", stiffness=5.0)) == "muscle"
    with pytest.raises(ModelError, match="element 'muscle' is in model 'leg' already"):
        builder.add_element("muscle", SpringDamper("knee cap"))
    with pytest.raises(InputError, match="link or frame 'shank' does not exist"):
        builder.add_element("other", SpringDamper("thigh", other="shank"))
    with pytest.raises(ModelError, match="element 'knee cap' has the name of a frame"):
        builder.add_element("knee cap", SpringDamper("thigh"))
    with pytest.raises(ModelError, match="is None; expected a SpringDamper or a Bushing"):
        builder.add_element("none", None)
    model = builder.build()
    assert list(model.elements) == ["muscle"]
    inside = model.link_names[3]
    with pytest.raises(ModelError, match="which is inside a ball joint and not a body"):
        model.replace(elements={"s": SpringDamper(inside)})
    assert model.primitive.elements == model.elements
