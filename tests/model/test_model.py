"""The model as a value: unchangeable, compared and hashed by what it holds; copies, names, limits, refusals."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, Model, ModelError, samples
from tests.conftest import tree

ARRAYS = (
    "parents", "placement", "tip", "mass", "com", "inertia", "gravity", "position_limits", "velocity_limits",
    "effort_limits", "stiffness", "rest", "damping", "armature",
)  # fmt: skip


def fields(**changes):
    """Two links in a chain, as `Model` takes them."""
    eye = np.eye(4)
    return {
        "name": "leg",
        "joints": (kg.revolute("x"), kg.revolute("x")),
        "parents": [-1, 0],
        "joint_names": ("hip", "knee"),
        "link_names": ("thigh", "shank"),
        "placement": [eye, eye],
        "tip": [eye, eye],
        "mass": [9.5, 3.7],
        "com": [[0, 0, -0.2], [0, 0, -0.2]],
        "inertia": [np.diag([0.1, 0.1, 0.02])] * 2,
    } | changes


# --- a value ------------------------------------------------------------------------------------------------


def test_arrays_are_read_only(sample):
    for what in ARRAYS:
        array = getattr(sample, what)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for what in ARRAYS[1:]:
        assert getattr(sample, what).dtype == np.float64


def test_fields_cannot_be_set(sample):
    for field in dataclasses.fields(sample):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sample, field.name, None)


def test_the_callers_arrays_stay_the_callers():
    mass, com = np.array([9.5, 3.7]), np.zeros((2, 3))
    model = Model(**fields(mass=mass, com=com))
    mass[:] = com[:] = 1.0
    assert model.mass.tolist() == [9.5, 3.7]
    assert not model.com.any()


def test_pickled_and_copied_models_are_equal(sample):
    for twin in (pickle.loads(pickle.dumps(sample)), copy.copy(sample), copy.deepcopy(sample)):
        assert twin == sample
        assert hash(twin) == hash(sample)
        assert twin.topology == sample.topology
        assert not any(getattr(twin, what).flags.writeable for what in ARRAYS)


def test_pickled_random_trees_compute_the_same_bits():
    for seed in range(8):
        model = tree(seed)
        twin = pickle.loads(pickle.dumps(model))
        state = np.random.default_rng(seed).normal(size=(3, model.n))
        assert kg.inverse_dynamics(twin, *state).tobytes() == kg.inverse_dynamics(model, *state).tobytes()


def test_equal_by_value_not_by_identity():
    assert samples.human43() == samples.human43()
    assert len({samples.human43(), samples.human43(), samples.two_link()}) == 2
    assert samples.two_link() != "two_link"
    assert Model(**fields(com=np.zeros((2, 3)))) == Model(**fields(com=-np.zeros((2, 3)))), "−0 is 0"


@pytest.mark.parametrize("what", ["name", "joints", "joint_names", "link_names", *ARRAYS])
def test_every_field_counts_in_comparison(what):
    model = Model(**fields())
    other = {
        "name": "arm", "joints": (kg.revolute("x"), kg.revolute("y")), "joint_names": ("hip", "elbow"),
        "link_names": ("thigh", "foot"), "parents": [-1, -1], "placement": [np.eye(4), kg.translate(1)],
        "tip": [np.eye(4), kg.translate(1)], "gravity": (0, 0, 0), "position_limits": [(-1, 1)] * 2,
        "inertia": [np.diag([0.1, 0.1, 0.03])] * 2,
    }  # fmt: skip
    changed = model.replace(**{what: other.get(what, getattr(model, what).clip(max=1) + 0.01 if what in ARRAYS else 0)})
    assert changed != model
    assert changed.replace(**{what: getattr(model, what)}) == model


# --- replace ------------------------------------------------------------------------------------------------


def test_replace_changes_a_copy():
    model = Model(**fields())
    changed = model.replace(mass=[1, 2], gravity=(0, 0, 0), name="light leg")
    assert changed.mass.tolist() == [1, 2]
    assert not changed.gravity.any()
    assert changed.name == "light leg"
    assert model == Model(**fields())


def test_replace_by_name():
    """Masses by link, the rest by joint; what is not named stays."""
    changed = Model(**fields(damping=[1, 2])).replace(
        mass={"shank": 4.0},
        com={"thigh": [0, 0, -0.1]},
        damping={"knee": 0.5},
        position_limits={"hip": (-1, 2)},
        placement={"knee": kg.translate(0, 0, -0.4)},
    )
    assert changed.mass.tolist() == [9.5, 4.0]
    assert changed.com.tolist() == [[0, 0, -0.1], [0, 0, -0.2]]
    assert changed.damping.tolist() == [1, 0.5]
    assert changed.position_limits.tolist() == [[-1, 2], [-np.inf, np.inf]]
    assert changed.placement[:, :3, 3].tolist() == [[0, 0, 0], [0, 0, -0.4]]


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (InputError, {"weight": [1, 2]}, "`weight` is not a field of Model; expected one of actuation, armature"),
        (InputError, {"topology": None}, "`topology` is not a field of Model"),
        (InputError, {"mass": {"knee": 1.0}}, "link 'knee' does not exist in model 'leg'; it has thigh, shank"),
        (InputError, {"damping": {"kne": 1.0}}, "joint 'kne' does not exist in model 'leg'; did you mean 'knee'"),
        (InputError, {"gravity": {"x": 1.0}}, "`gravity` is given by name; expected a plain value"),
        (ModelError, {"com": {"shank": [1, 2]}}, r"`com` of 'shank' is \[1, 2\]; expected numbers of shape \(3,\)"),
        (ModelError, {"mass": {"shank": -1.0}}, "link 'shank': `mass` is -1 kg; expected 0 or more"),
    ],
)
def test_refused_replacements(error, changes, message):
    with pytest.raises(error, match=message):
        Model(**fields()).replace(**changes)


# --- what it says of itself ---------------------------------------------------------------------------------


def test_sizes(sample):
    assert sample.n == sample.nq == sample.nv == len(sample.joints) == len(sample.parents)
    assert sample.total_mass == pytest.approx(sum(sample.link_inertia(link).mass for link in sample.link_names))


def test_names_are_found(sample):
    for i, (joint, link) in enumerate(zip(sample.joint_names, sample.link_names, strict=True)):
        assert sample.joint_index(joint) == sample.link_index(link) == i


def test_repr_fits_one_screen(sample):
    lines = repr(sample).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 120


def test_repr_of_the_human():
    first, second, *_ = repr(samples.human43()).splitlines()
    assert first == "Model 'human43': 43 degrees of freedom (3 prismatic, 40 revolute), 7 branches"
    assert second == "  mass 77.5 kg in 20 links (23 massless), gravity (0, 0, -9.81) m/s²"
    pendulum = samples.multi_pendulum(1).replace(actuation=[samples.multi_pendulum(1).joint_names[0]])
    first, second, third, *_ = repr(pendulum).splitlines()
    assert "1 degree of freedom (1 revolute), 1 branch" in first
    assert "kg in 1 link (0 massless)" in second
    assert "1 actuator: " in third


def test_repr_names_passive_elements():
    assert "joints with damping, armature" in repr(Model(**fields(damping=[0, 1], armature=[1, 0])))
    assert "joints with" not in repr(Model(**fields()))


def test_limits():
    """Infinite unless given; zero and equal limits are a locked joint, not an error."""
    free = Model(**fields())
    assert free.position_limits.tolist() == [[-np.inf, np.inf]] * 2
    assert free.velocity_limits.tolist() == free.effort_limits.tolist() == [np.inf] * 2
    locked = Model(**fields(position_limits=[(0.5, 0.5), (-1, np.inf)], effort_limits=[0, 1]))
    assert locked.position_limits.tolist() == [[0.5, 0.5], [-1, np.inf]]
    assert locked.effort_limits.tolist() == [0, 1]


# --- refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parents": [1, 0]}, r"`parents` has a cycle, child → parent: joint 0 \('hip'\) → joint 1 \('knee'\) → "),
        ({"parents": [-1, 1]}, r"`parents` makes joint 1 \('knee'\) its own parent; expected a lower number"),
        ({"parents": [1, -1]}, r"`parents` numbers joint 0 \('hip'\) before its parent, joint 1 \('knee'\); expected"),
        ({"parents": [-1, 7]}, r"`parents` gives joint 1 \('knee'\) parent 7; expected -1 \(the world\) to 1"),
        ({"parents": [-1, 0.5]}, r"`parents\[1\]` is 0.5; expected a whole number"),
        ({"joint_names": ("hip", "hip")}, "`joint_names` has 'hip' twice; expected different names"),
        ({"link_names": ("leg", "leg")}, "`link_names` has 'leg' twice; expected different names"),
        ({"joint_names": ("hip",)}, "`joint_names` has 1 names; the model has 2 joints"),
        ({"link_names": ("thigh", "")}, r"`link_names` is \('thigh', ''\); expected 2 non-empty strings"),
        ({"joint_names": "ab"}, "`joint_names` is 'ab'; expected 2 non-empty strings"),
        ({"joints": ()}, "model 'leg' has no joints; expected at least one"),
        ({"joints": (kg.revolute(), "x")}, r"`joints` holds 'x'; expected Joint objects such as revolute\('z'\)"),
        ({"name": 3}, "`name` of a model is 3; expected text"),
        ({"placement": [np.eye(4)]}, "`placement` has 1 transforms; expected 2"),
        ({"placement": [np.eye(4), 2 * np.eye(4)]}, "`placement` of joint 'knee' has last row .*; expected"),
        ({"tip": [np.diag([1, -1, 1, 1]), np.eye(4)]}, "`tip` of joint 'hip' has a 3×3 part that is a reflection"),
        ({"tip": [np.eye(4), np.eye(3)]}, r"`tip` of joint 'knee' has shape \(3, 3\); expected a 4×4 transform"),
        ({"mass": [1, -2]}, "link 'shank': `mass` is -2 kg; expected 0 or more"),
        ({"mass": [1]}, r"`mass` has shape \(1,\); expected \(2,\)"),
        ({"mass": [0, 1]}, "link 'thigh': `mass` is 0 kg, but `com` is .*; expected zeros"),
        ({"inertia": [np.eye(3), np.diag([1, 1, 3])]}, "link 'shank': principal moments .* violate the triangle inequ"),
        ({"inertia": [np.diag([1, 1, -1]), np.eye(3)]}, "link 'thigh': principal moments .* is negative"),
        ({"inertia": [np.eye(3), np.eye(3) + np.eye(3, k=1)]}, "link 'shank': `inertia` is not symmetric"),
        ({"com": [[0, 0, 0], [0, np.nan, 0]]}, r"`com` at \(1, 1\) is nan; expected a finite number"),
        ({"gravity": -9.81}, r"`gravity` has shape \(\); expected \(3,\)"),
        ({"gravity": "down"}, "`gravity` is a str; expected real numbers"),
        ({"damping": [0, -1]}, "`damping` of joint 'knee' is -1.0; expected zero or more"),
        ({"armature": [-1, 0]}, "`armature` of joint 'hip' is -1.0; expected zero or more"),
        ({"effort_limits": [1, -1]}, "`effort_limits` of joint 'knee' is -1.0; expected zero or more"),
        ({"velocity_limits": [np.nan, 1]}, r"`velocity_limits` at \(0,\) is nan; expected a number"),
        ({"position_limits": [(0, 1), (1, 0)]}, r"`position_limits` of joint 'knee' are \(1.0, 0.0\); expected low"),
        ({"stiffness": [np.inf, 0]}, r"`stiffness` at \(0,\) is inf; expected a finite number"),
    ],
)
def test_refused(changes, message):
    """The message names the argument, what was found there, and what was expected."""
    with pytest.raises(ModelError, match=message):
        Model(**fields(**changes))


def test_the_fields_that_the_refusals_spoil_are_good():
    assert Model(**fields()).n == 2


def test_a_longer_cycle_is_shown_whole():
    """By name, from its lowest member, without the joints that only lead to it."""
    names = ("a", "b", "c", "d", "e")
    massless = {what: np.zeros((5, *shape)) for what, shape in (("mass", ()), ("com", (3,)), ("inertia", (3, 3)))}
    eyes = [np.eye(4)] * 5
    same = {"joints": [kg.revolute()] * 5, "joint_names": names, "link_names": names, "placement": eyes, "tip": eyes}
    path = r"joint 1 \('b'\) → joint 2 \('c'\) → joint 3 \('d'\) → joint 1 \('b'\); expected a tree"
    with pytest.raises(ModelError, match=f"`parents` has a cycle, child → parent: {path}"):
        Model(**fields(parents=[-1, 2, 3, 1, 3], **same, **massless))


# --- names ----------------------------------------------------------------------------------------------------

UNREADABLE = ["knee ", " knee", "\tknee", "kn\ree", "kn\nee", "knee\0", "kn\x1bee", "kn\x7fee", "kn\u200bee",
              "kn\u202eee", "kn\xa0ee", "\ud800", " "]  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE, ids=ascii)
def test_names_that_cannot_be_read_back_are_refused(name):
    """Files trim blanks and end lines at control characters; terminals obey them."""
    arm = samples.two_link()
    builder = kg.ModelBuilder("leg")
    for make in (
        lambda: arm.replace(name=name),
        lambda: arm.replace(joint_names=["shoulder", name]),
        lambda: arm.replace(link_names=["upper_arm", name]),
        lambda: builder.add(name, None, kg.revolute("x")),
        lambda: builder.add("knee", None, kg.revolute("x"), link=name),
        lambda: kg.ModelBuilder(name).build(),
        lambda: kg.Joint("revolute", (0, 0, 1), label=name),
        lambda: kg.Topology([-1, 0], names=["a", name]),
    ):
        with pytest.raises(ModelError, match=r"expected (printable characters|no blanks at its ends)|has no joints"):
            make()


def test_names_of_any_language_are_fine():
    names = ["колено", "膝", "left knee", "genou-gauche_2", "a.b", "½"]
    model = kg.samples.multi_pendulum(6).replace(joint_names=names, link_names=names)
    assert pickle.loads(pickle.dumps(model)).joint_names == tuple(names)


def test_long_names_are_cut_in_messages():
    long = "x" * 5000
    arm = samples.two_link().replace(joint_names=["shoulder", long], name=long)
    for make in (
        lambda: arm.replace(joint_names=[long, long]),
        lambda: arm.joint_index("y" * 5000),
        lambda: arm.replace(tip={long: np.ones((4, 4))}),
        lambda: arm.replace(damping=[0, -1]),
        lambda: arm.replace(name=list(range(5000))),
        lambda: arm.replace(**{long: 1}),
        lambda: kg.Design(arm, [f"{long}.aplha"]),
        lambda: kg.Design(arm, {long: {f"{long}.a": "x"}}),
    ):
        with pytest.raises(kg.KinegradError) as error:
            make()
        assert len(str(error.value)) < 600


# --- memory that cannot be written to -------------------------------------------------------------------------


def arrays_of(model):
    fields = [getattr(model, f.name) for f in dataclasses.fields(model)]
    tree = model.topology
    tree_arrays = [tree.parents, tree.depth, tree.support, *tree.pattern, tree.branch_of, tree.branch_parents]
    body = model.link_inertia(model.link_names[-1])
    return [*(x for x in fields if isinstance(x, np.ndarray)), *tree_arrays, body.com, body.inertia]


@pytest.mark.parametrize("make", [lambda x: x, copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_memory_cannot_be_made_writable(sample, make):
    model = make(sample)
    for array in arrays_of(model):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert model == sample


def test_numbers_hidden_by_a_mask_are_refused():
    """Alone or inside lists: NumPy would use them."""
    hidden = np.ma.masked_array([1.0, 99.0], mask=[False, True])
    arm = samples.two_link()
    for value in (hidden, list(np.ma.stack([hidden, hidden])), [hidden]):
        for what in ("mass", "damping", "com"):
            with pytest.raises(ModelError, match=f"`{what}`"):
                arm.replace(**{what: value})
    with pytest.raises(ModelError, match="has masked entries"):
        arm.replace(parents=np.ma.masked_array([-1, 0], mask=[False, True]))
