"""What becomes of a URDF file: joints of all types, bodies fixed together, joints that follow others, shapes, notes."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io.nearest_inertia import nearest_inertia
from kinegrad.io.urdf import read
from tests.io.urdf.test_refusals import ARM, INERTIAL, LIMIT, TWO, joint, link, robot


def model_of(tmp_path, text, **options):
    return file_of(tmp_path, text, **options).model


def file_of(tmp_path, text, **options):
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return read(path, **options)


def test_numbers_of_a_joint(tmp_path):
    inside = (
        LIMIT + '<axis xyz="0 3 4"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><dynamics damping="0.7" friction="0.2"/>'
    )
    found = file_of(tmp_path, robot(*TWO, joint("a", "base", "upper", inside=inside)))
    model = found.model
    assert model.name == "arm"
    assert model.joints[0].axis == (0.0, 0.6, 0.8)
    assert model.position_limits.tolist() == [[-1, 1]]
    assert (model.effort_limits[0], model.velocity_limits[0], model.damping[0]) == (10, 2, 0.7)
    expected = kg.translate(1, 2, 3) @ kg.rotate("z", 0.3) @ kg.rotate("y", 0.2) @ kg.rotate("x", 0.1)
    np.testing.assert_array_equal(model.placement[0], expected)
    assert found.report.counts == {"joint friction": 1}
    assert "line 4: joint 'a' has Coulomb friction of 0.2 N·m, which is not smooth" in str(found.report)


def test_an_axis_is_x_unless_it_is_given(tmp_path):
    assert model_of(tmp_path, ARM).joints[0].axis == (1.0, 0.0, 0.0)


def test_a_continuous_joint_has_no_ends(tmp_path):
    model = model_of(tmp_path, robot(*TWO, joint("a", "base", "upper", "continuous", "")))
    assert model.position_limits.tolist() == [[-np.inf, np.inf]]
    assert model.joints[0].kind == "revolute"


NORMALS = {"0 0 1": (0, 0, 1), "1 0 0": (1, 0, 0), "0 0 -1": (0, 0, -1), "1 2 -2": (1 / 3, 2 / 3, -2 / 3)}


@pytest.mark.parametrize(("axis", "normal"), NORMALS.items())
def test_planar_joints_stay_in_the_plane_across_their_axis(tmp_path, axis, normal):
    model = model_of(tmp_path, robot(*TWO, joint("a", "base", "upper", "planar", f'<axis xyz="{axis}"/>')))
    assert model.n == 3
    rest = kg.forward_kinematics(model, np.zeros(3)).transform[2]
    np.testing.assert_allclose(rest, np.eye(4), atol=1e-15)
    moved = kg.forward_kinematics(model, [0.3, 0.4, 0.5]).transform[2]
    assert abs(moved[:3, 3] @ normal) < 1e-15
    np.testing.assert_allclose(np.linalg.norm(moved[:3, 3]), 0.5, rtol=1e-14)
    np.testing.assert_allclose(moved[:3, :3], kg.rotate(normal, 0.5)[:3, :3], atol=1e-15)


def test_floating_joints_and_free_roots(tmp_path):
    text = robot(*TWO, joint("a", "base", "upper", "floating", ""))
    assert model_of(tmp_path, text).coordinate_names == ("a.tx", "a.ty", "a.tz", "a.rz", "a.ry", "a.rx")
    model = model_of(tmp_path, text, quaternion=True)
    assert (model.nq, model.nv) == (7, 6)
    both = model_of(tmp_path, text, root="free", quaternion=True)
    assert (both.nq, both.nv) == (14, 12)
    taken = robot(*TWO, joint("root", "base", "upper"))
    assert model_of(tmp_path, taken, root="free").joint_names[0] == "root_2.tx"


def test_what_is_fixed_together_is_one_body(tmp_path):
    """A tool on a tool on a link: masses, centres and inertias of all, and a frame of each by name."""
    tool = INERTIAL.replace("<mass", '<origin xyz="0.1 0 0" rpy="0.3 0 0"/><mass').replace('xx="1"', 'xx="3"')
    tool = tool.replace('value="1"', 'value="2"').replace('="1"', '="2"')
    text = robot(
        *TWO, link("hand", tool), link("tip", tool), joint("a", "base", "upper"),
        joint("b", "upper", "hand", "fixed", '<origin xyz="0 0 1" rpy="0 0 1.2"/>'),
        joint("c", "hand", "tip", "fixed", '<origin xyz="0 1 0" rpy="0.5 0 0"/>'),
    )  # fmt: skip
    model = model_of(tmp_path, text)
    assert model.link_names == ("upper",)
    hand = kg.translate(0, 0, 1) @ kg.rotate("z", 1.2)
    tip = hand @ kg.translate(0, 1, 0) @ kg.rotate("x", 0.5)
    np.testing.assert_allclose(model.frame("hand").placement, hand, atol=1e-15)
    np.testing.assert_allclose(model.frame("tip").placement, tip, atol=1e-15)
    own = kg.Inertia(2, [0, 0, 0], np.diag([3.0, 2, 2])).moved(kg.translate(0.1, 0, 0) @ kg.rotate("x", 0.3))
    whole = kg.Inertia(1, [0, 0, 0], np.eye(3)).pseudo + own.moved(hand).pseudo + own.moved(tip).pseudo
    np.testing.assert_allclose(model.link_inertia("upper").pseudo, whole, rtol=0, atol=1e-13)


def test_joints_that_follow_others_that_follow_others(tmp_path):
    """q₁ = 2 q₀ + 0.1, q₂ = −3 q₁ + 0.2, whatever their order: one coordinate moves all three."""
    text = robot(
        *TWO, link("fore"), link("hand"),
        joint("j2", "base", "upper", inside=LIMIT + '<mimic joint="j1" multiplier="-3" offset="0.2"/>'),
        joint("j1", "upper", "fore", inside=LIMIT + '<mimic joint="j0" multiplier="2" offset="0.1"/>'),
        joint("j0", "fore", "hand"),
    )  # fmt: skip
    model = model_of(tmp_path, text)
    assert model.coordinate_names == ("j0",)
    assert model.joint_names == ("j2", "j1", "j0")
    q = 0.3
    joints = [-3 * (2 * q + 0.1) + 0.2, 2 * q + 0.1, q]
    found = kg.forward_kinematics(model, [q]).transform
    np.testing.assert_allclose(found, kg.forward_kinematics(model.primitive, joints).transform, atol=1e-15)
    slopes = np.array([-6.0, 2.0, 1.0])
    M = slopes @ kg.mass_matrix(model.primitive, joints) @ slopes
    np.testing.assert_allclose(kg.mass_matrix(model, [q]), [[M]], rtol=1e-14)


def test_impossible_inertias_are_projected_on_demand(tmp_path):
    text = ARM.replace('izz="1"', 'izz="4"')
    found = file_of(tmp_path, text, inertia="project")
    np.testing.assert_allclose(found.model.inertia[0], np.diag([5, 5, 10]) / 3, rtol=1e-14)
    assert {"impossible inertia", "inertia projected"} <= {note.what for note in found.report}
    text = "replaced by the nearest possible one, 0.667 kg·m² away (moments of inertia change by up to 40 %)"
    assert text in str(found.report)
    assert not found.warning  # that was asked for


def test_the_nearest_inertia_is_the_nearest():
    """No possible inertia on a fine grid around it is nearer, and possible ones stay as they are."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        given = rng.normal(size=(3, 3))
        given = given + given.T
        found = nearest_inertia(1.0, [0, 0, 0], given)
        distance = np.linalg.norm(found.inertia - given)
        for _ in range(200):
            root = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-4, -1)
            sigma = np.trace(found.inertia) / 2 * np.eye(3) - found.inertia + root @ root.T * rng.choice([0, 1])
            other = np.trace(sigma) * np.eye(3) - sigma
            assert np.linalg.norm(other - given) >= distance - 1e-12
        again = nearest_inertia(1.0, [0, 0, 0], found.inertia)
        np.testing.assert_allclose(again.inertia, found.inertia, atol=1e-14)
    assert nearest_inertia(0.0, [0, 0, 0], np.eye(3)) == kg.Inertia.zero()


def test_massless_links_on_demand(tmp_path):
    text = robot(
        link("base"), link("upper", ""), link("fore"), joint("a", "base", "upper"), joint("b", "upper", "fore")
    )
    assert model_of(tmp_path, text, massless=True).mass.tolist() == [0, 1]


def test_shapes_are_kept(tmp_path):
    meshes = tmp_path / "robot_description" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "arm.stl").write_bytes(b"")
    folder = tmp_path / "robot_description" / "urdf"
    folder.mkdir()
    drawn = """<visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
<visual><geometry><mesh filename="package:///robot_description/meshes/arm.stl" scale="1 1 -1"/></geometry></visual>
<visual><geometry><mesh filename="../meshes/arm.stl"/></geometry></visual>
<visual><geometry><mesh filename="package://elsewhere/arm.stl"/></geometry></visual>
<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>"""
    blue = '<material name="b"><color rgba="0 0 1 1"/></material>'
    base = f'<visual><geometry><sphere radius="0.5"/></geometry>{blue}</visual>'
    text = robot(
        link("base", INERTIAL + base), link("upper"), link("hand", INERTIAL + drawn), joint("a", "base", "upper"),
        joint("b", "upper", "hand", "fixed", '<origin xyz="1 0 0"/>'),
        '<material name="red"><color rgba="1 0 0 1"/></material>',
    )  # fmt: skip
    found = file_of(folder, text)
    shapes = found.model.shapes
    assert [shape.link for shape in shapes] == [None, "upper", "upper", "upper", "upper"]
    assert shapes[0] == kg.Shape(None, kg.Sphere(0.5), color=(0, 0, 1, 1))
    assert shapes[1] == kg.Shape("upper", kg.Box([1, 2, 3]), [1, 0, 1], color=(1, 0, 0, 1))
    assert shapes[2].solid == kg.Mesh(str(meshes / "arm.stl"), (1, 1, -1))
    assert (folder / shapes[3].solid.file).resolve() == meshes / "arm.stl"
    assert [shape.collision for shape in shapes] == [False] * 4 + [True]
    assert [note.what for note in found.report if "mesh" in note.what] == ["mesh not found"]
    assert found.report.counts == {}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "arm.stl").write_bytes(b"")
    for packages in ({"elsewhere": tmp_path / "other"}, {"elsewhere": str(tmp_path / "other")}):
        shapes = model_of(folder, text, packages=packages).shapes
        assert shapes[4].solid.file == str(tmp_path / "other" / "arm.stl")
    (tmp_path / "roots" / "elsewhere").mkdir(parents=True)
    (tmp_path / "roots" / "elsewhere" / "arm.stl").write_bytes(b"")
    for packages in (tmp_path / "roots", [tmp_path / "none", tmp_path / "roots"]):
        shapes = model_of(folder, text, packages=packages).shapes
        assert shapes[4].solid.file == str(tmp_path / "roots" / "elsewhere" / "arm.stl")


@pytest.mark.parametrize("solid", ['box size="0 0 0"', 'sphere radius="0.0"', 'cylinder radius="0" length="1"'])
def test_shapes_without_a_size_are_told_and_left_out(tmp_path, solid):
    """As in the published files of Sawyer and Laikago, whose bodies are sound."""
    (tmp_path / "a.urdf").write_text(ARM.replace("</link>", f"<visual><geometry><{solid}/></geometry></visual></link>"))
    found = read(tmp_path / "a.urdf")
    assert found.model.shapes == ()
    assert [note.what for note in found.report].count("empty shape") == 2


def test_nothing_is_left_out_silently(tmp_path):
    others = """<transmission name="t"/><gazebo reference="upper"><mu1>1</mu1></gazebo><sensor name="eye"/>
<gazebo><joint:hinge/></gazebo><ros2_control name="c"/><marker/>"""
    inside = LIMIT + '<safety_controller k_velocity="1"/><calibration rising="0"/><dynamics damping="1" stiffness="3"/>'
    text = robot(link("base"), '<link name="upper" kind="x">' + INERTIAL + "<contact/></link>",
                 joint("a", "base", "upper", inside=inside), others)  # fmt: skip
    report = file_of(tmp_path, text).report
    assert sorted(note.what for note in report) == [
        "<contact>", "<marker>", "attribute kind", "attribute stiffness", "calibration", "gazebo", "gazebo joint",
        "link of the world", "ros2_control", "safety controller", "sensor", "transmission",
    ]  # fmt: skip
    assert report.counts == {"attribute stiffness": 1, "gazebo joint": 1}  # what would move otherwise


def test_quaternions_of_origins(tmp_path):
    """Newer files have them; other lengths are taken as directions, as with axes."""
    x, y, z, w = 0.1, -0.2, 0.3, 0.9
    text = robot(*TWO, joint("a", "base", "upper", inside=f'{LIMIT}<origin xyz="1 2 3" quat_xyzw="{x} {y} {z} {w}"/>'))
    T = model_of(tmp_path, text).placement[0]
    n = np.linalg.norm([w, x, y, z])
    w, x, y, z = w / n, x / n, y / n, z / n
    first_column = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
    np.testing.assert_allclose(T[:3, 0], first_column, atol=1e-15)
    np.testing.assert_array_equal(T[:3, 3], [1, 2, 3])
    none = text.replace('quat_xyzw="0.1 -0.2 0.3 0.9"', 'quat_xyzw="0 0 0 -2"')
    np.testing.assert_array_equal(model_of(tmp_path, none).placement[0], kg.translate(1, 2, 3))
    for attributes, sentence in (
        ('quat_xyzw="0 0 0 0"', 'quat_xyzw="0 0 0 0" is zero; expected a unit quaternion'),
        ('quat_xyzw="0 0 0 1" rpy="0 0 1"', "stands beside rpy; remove one of them"),
        ('quat_xyzw="0 0 1"', "has 3 numbers; expected 4"),
    ):
        with pytest.raises(kg.FileError, match=sentence):
            file_of(tmp_path, robot(*TWO, joint("a", "base", "upper", inside=f"{LIMIT}<origin {attributes}/>")))


def test_attributes_that_urdf_does_not_have_are_told(tmp_path):
    text = ARM.replace('<mass value="1"/>', '<mass value="1" unit="g"/>').replace(LIMIT, LIMIT + '<axis xyz="0 0 2"/>')
    assert [note.what for note in file_of(tmp_path, text).report] == [
        "attribute unit", "link of the world", "attribute unit", "axis of another length",
    ]  # fmt: skip


def test_numbers_of_fixed_joints_are_numbers(tmp_path):
    text = robot(
        *TWO, link("c"), joint("a", "base", "upper"), joint("b", "upper", "c", "fixed", '<limit lower="1,5"/>')
    )
    with pytest.raises(kg.FileError, match='lower="1,5" is not a number'):
        file_of(tmp_path, text)


def test_a_joint_that_follows_by_nothing(tmp_path):
    """A multiplier of zero holds a joint at its offset; its body moves with the others."""
    inside = LIMIT + '<mimic joint="a" multiplier="0" offset="0.4"/>'
    text = robot(*TWO, link("c"), joint("a", "base", "upper"), joint("b", "upper", "c", inside=inside))
    model = model_of(tmp_path, text)
    q, v, a = 0.3, 0.5, -0.7
    whole = kg.inverse_dynamics(model.primitive, [q, 0.4], [v, 0], [a, 0])
    np.testing.assert_allclose(kg.inverse_dynamics(model, [q], [v], [a]), whole[:1], rtol=1e-14)


def test_many_problems_are_cut(tmp_path):
    text = robot(*[link(f"l{k}", "") for k in range(300)], *[joint(f"j{k}", f"l{k}", f"l{k + 1}") for k in range(299)])
    with pytest.raises(kg.FileError) as caught:
        file_of(tmp_path, text, strict=True)
    assert len(caught.value.problems) == 201
    assert caught.value.problems[-1] == "there are more than these 200 problems"
    assert str(caught.value).endswith("and 181 more")
