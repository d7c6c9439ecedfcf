"""Inertias that no body has, and joints that move no mass: judged by what moves, in files of all formats."""

import warnings

import mujoco
import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import LeftOutWarning, read_model
from kinegrad.io.moving_bodies import CLOSE, Bodies, MassProperties, Part
from kinegrad.io.nearest_inertia import largest_change, nearest_inertia
from tests.io.opensim.files import J, new_layout
from tests.io.toml.test_round_trip import bits
from tests.io.urdf.test_refusals import LIMIT, TWO, body, joint, link, moments, robot

# --- the measure ------------------------------------------------------------------------------------------------------


def test_the_change_bounds_all_entries_in_all_frames():
    """|ΔIᵢⱼ| ≤ change · √(Iᵢᵢ Iⱼⱼ) in random frames and about random points, and the bound is reached."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        given = np.diag([1.0, rng.uniform(1, 2), 3.5])
        near = nearest_inertia(1.0, [0, 0, 0], given).inertia
        change, most = largest_change(given, near), 0.0
        for _ in range(300):
            R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            c = rng.normal(size=3) * rng.choice([0, 1])
            after = R @ near @ R.T + (c @ c * np.eye(3) - np.outer(c, c))
            part = np.abs(R @ (near - given) @ R.T) / np.sqrt(np.outer(after.diagonal(), after.diagonal()))
            most = max(most, part.max())
        axes = np.linalg.eigh(near)[1]
        exact = np.abs((axes.T @ (near - given) @ axes).diagonal() / (axes.T @ near @ axes).diagonal()).max()
        assert most <= change * (1 + 1e-12)
        np.testing.assert_allclose(change, exact, rtol=1e-12)


def test_the_change_of_what_has_no_moment_is_infinite():
    """A rod has none about its axis: 1e-3 of the largest one there is no small change."""
    assert largest_change(np.diag([1.0, 1.0, -1e-3]), np.diag([1.0, 1.0, 0.0])) > 1e5
    assert largest_change(np.eye(3), np.zeros((3, 3))) == np.inf
    assert largest_change(np.zeros((3, 3)), np.zeros((3, 3))) == 0


def test_sums_are_those_of_bodies():
    """Mass properties that no body has obey the formulas of those that bodies have."""
    rng = np.random.default_rng(1)
    bodies = [kg.Inertia.box(rng.uniform(1, 2), rng.uniform(0.1, 1, 3), rng.normal(size=3)) for _ in range(3)]
    T = kg.translate(*rng.normal(size=3)) @ kg.rotate(rng.normal(size=3), 1.1)
    whole, same = kg.Inertia.zero(), MassProperties.zero()
    for one in bodies:
        whole = whole + one.moved(T)
        same += MassProperties(one.mass, one.com, one.inertia).moved(T)
    assert (same.mass, same.com.tolist()) == (whole.mass, whole.com.tolist())
    np.testing.assert_allclose(same.inertia, whole.inertia, rtol=0, atol=1e-15)


# --- URDF -------------------------------------------------------------------------------------------------------------


def written(tmp_path, text, name="a.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


def close_to(excess):
    """An arm whose moments violate the triangle inequality by a part of the largest one."""
    return robot(link("base"), link("upper", body(inertia=moments(1, 1, 2 + excess))), joint("a", "base", "upper"))


def said(path, **options):
    """What load warns of: one warning, or none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kg.load(path, **options)
    assert len(caught) <= 1
    assert all(warning.category is LeftOutWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return str(caught[0].message) if caught else ""


def test_what_is_nearly_possible_is_projected_with_one_warning(tmp_path):
    path = written(tmp_path, close_to(0.02))
    sentence = (
        "no body can have the inertia of 'upper' (0.66 %); the nearest possible one was taken, which changes "
        "moments of inertia by the part in brackets; to accept it silently: inertia='project'; to refuse it: "
        "strict=True"
    )
    assert said(path) == f"{path}: {sentence}"
    assert said(path, inertia="project") == ""
    near = nearest_inertia(1.0, [0, 0, 0], np.diag([1, 1, 2.02]))
    for options in ({}, {"inertia": "project"}):
        found = read_model(path, **options)
        np.testing.assert_allclose(found.model.inertia[0], near.inertia, rtol=1e-14)
        assert [note.what for note in found.report][-1] == "inertia projected"
    assert largest_change(np.diag([1, 1, 2.02]), near.inertia) < CLOSE
    kg.save(found, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(found.model)


def test_what_is_farther_away_is_refused(tmp_path):
    """The bound is 1 % of the moment about any axis, not of the largest one: a slender body keeps its small moment."""
    assert read_model(written(tmp_path, close_to(0.03))).model.n == 1
    for text in (close_to(0.04), close_to(0.04).replace('ixx="1"', 'ixx="0.01"').replace('izz="2.04"', 'izz="1.012"')):
        with pytest.raises(kg.FileError, match=r"which changes a moment of inertia by (1\.3|6\.3) %"):
            read_model(written(tmp_path, text))


CAMERA = body("0.1", moments("1e-3", "1e-3", "3e-3"))
HELD = robot(
    *TWO, link("camera", CAMERA), joint("a", "base", "upper"),
    joint("b", "upper", "camera", "fixed", '<origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/>'),
)  # fmt: skip


def test_what_moves_is_judged_not_its_parts(tmp_path):
    """The camera alone is impossible; with the arm that it is fixed to it is added as the file states it."""
    path = written(tmp_path, HELD)
    found = read_model(path)
    T = kg.translate(0.1, 0.2, 0.3) @ kg.rotate("z", 0.1) @ kg.rotate("y", 0.2) @ kg.rotate("x", 0.3)
    R, c = T[:3, :3], T[:3, 3]
    at_com, mass = 0.1 * c / 1.1, 1.1
    d = c - at_com
    inertia = np.eye(3) + at_com @ at_com * np.eye(3) - np.outer(at_com, at_com)
    inertia += R @ np.diag([1e-3, 1e-3, 3e-3]) @ R.T + 0.1 * (d @ d * np.eye(3) - np.outer(d, d))
    assert found.model.mass.tolist() == [mass]
    np.testing.assert_allclose(found.model.com[0], at_com, rtol=1e-15)
    np.testing.assert_allclose(found.model.inertia[0], inertia, rtol=0, atol=1e-15)
    assert found.report.counts == {}
    note = next(note for note in found.report if note.what == "impossible inertia")
    assert "link 'camera' has an inertia that no body has: principal moments (0.001, 0.001, 0.003)" in note.text
    assert "what moves, 'upper' with all that is fixed to it, is possible and was not changed" in note.text
    assert said(path) == (
        f"{path}: no body can have the inertia of 'camera', but what moves together with it can (nothing was changed); "
        "to accept it silently: inertia='project'; to refuse it: strict=True"
    )
    assert read_model(path, inertia="project").model == found.model
    kg.save(found, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(found.model)


def test_moments_without_mass_are_added(tmp_path):
    """As the feet of Bolt: rotor inertias, maybe; Pinocchio adds them, too."""
    found = read_model(written(tmp_path, HELD.replace('value="0.1"', 'value="0"')))
    assert found.model.mass.tolist() == [1.0]
    np.testing.assert_allclose(np.trace(found.model.inertia[0]), 3 + 5e-3, rtol=1e-15)


def test_what_is_fixed_in_the_world_has_a_note_and_no_warning(tmp_path):
    text = robot(link("base", CAMERA), link("upper"), joint("a", "base", "upper"))
    path = written(tmp_path, text)
    assert said(path) == ""
    assert "link 'base', which is fixed in the world, has an inertia that no body has" in str(read_model(path).report)
    with pytest.raises(kg.FileError, match="which changes a moment of inertia by 25 %"):
        read_model(path, root="free")


FINGERS = robot(
    *TWO, *[link(f"f{k}", "") for k in range(6)], joint("a", "base", "upper"),
    *[joint(f"j{k}", "upper" if k % 2 == 0 else f"f{k - 1}", f"f{k}", "continuous", "") for k in range(6)],
)  # fmt: skip


def test_joints_that_move_no_mass(tmp_path):
    """Inverse dynamics needs none; forward dynamics names a joint, as ever."""
    path = written(tmp_path, FINGERS)
    assert said(path) == (
        f"{path}: no mass is moved by 'j0', 'j1', 'j2', 'j3', … (6): forward dynamics needs some, inverse does not; "
        "to accept it silently: massless=True; to refuse it: strict=True"
    )
    assert said(path, massless=True) == ""
    model = read_model(path).model
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 7))
    tau = kg.inverse_dynamics(model, q, v, a)
    arm = read_model(written(tmp_path, robot(*TWO, joint("a", "base", "upper")), "b.urdf")).model
    np.testing.assert_array_equal(tau[1:], np.zeros(6))
    np.testing.assert_allclose(tau[:1], kg.inverse_dynamics(arm, q[:1], v[:1], a[:1]), rtol=1e-14)
    with pytest.raises(kg.SingularError, match="'j"):
        kg.forward_dynamics(model, q, v, tau)
    kg.save(model, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(model)


def test_massless_links_that_carry_mass_are_as_usual(tmp_path):
    """Hinges in a row make a ball joint; nothing of that is to be told."""
    text = robot(
        link("base"), link("upper", ""), link("fore"), joint("a", "base", "upper"),
        joint("b", "upper", "fore", inside=LIMIT + '<axis xyz="0 1 0"/>'),
    )  # fmt: skip
    path = written(tmp_path, text)
    assert said(path) == ""
    model = read_model(path).model
    assert model.mass.tolist() == [0, 1]
    assert np.isfinite(kg.forward_dynamics(model, [0.1, 0.2], [0, 0], [1.0, 1.0])).all()


def test_all_that_was_repaired_is_one_warning(tmp_path):
    inside = '<limit lower="-1" upper="1" effort="-1"/><mimic joint="absent"/><dynamics friction="1"/>'
    text = HELD.replace(LIMIT, inside).replace("</robot>", link("f", "") + joint("c", "camera", "f") + "</robot>")
    path = written(tmp_path, text)
    assert said(path) == (
        f"{path}: not in the model: 1 × joint friction; see kinegrad.io.read_model; "
        "no body can have the inertia of 'camera', but what moves together with it can (nothing was changed); "
        "no mass is moved by 'c': forward dynamics needs some, inverse does not; "
        "joints that mimic an absent one move by themselves: 'a'; "
        "limits that are missing or -1 are not in the model: effort of 'a', velocity of 'a'; "
        "to accept it silently: kinegrad.io.read_model; to refuse it: strict=True"
    )
    silent = "to accept it silently: inertia='project' and massless=True; to refuse it: strict=True"
    assert said(written(tmp_path, text.replace(inside, LIMIT), "b.urdf")).endswith(silent)
    found = read_model(path)
    assert found.model.coordinate_names == ("a", "c")
    assert (found.model.effort_limits[0], found.model.velocity_limits[0]) == (np.inf, np.inf)
    assert found.report.counts == {"joint friction": 1, "mimic of an absent joint": 1}
    for other in ('effort="-2"', 'effort="x"'):  # no number, or none that means that there is no limit
        with pytest.raises(kg.FileError):
            read_model(written(tmp_path, text.replace('effort="-1"', other)))


def test_those_that_follow_a_joint_that_follows_an_absent_one(tmp_path):
    text = robot(
        *TWO, link("fore"), joint("a", "base", "upper", inside=LIMIT + '<mimic joint="absent"/>'),
        joint("b", "upper", "fore", inside=LIMIT + '<mimic joint="a" multiplier="2"/>'),
    )  # fmt: skip
    assert read_model(written(tmp_path, text)).model.coordinate_names == ("a",)


def test_defects_of_what_is_not_used_are_noted(tmp_path):
    drawn = '<visual><geometry/></visual><visual><geometry><sphere radius="1"/></geometry><material name="a"/>'
    text = robot(
        link("base", drawn + '<material name="b"/></visual>'), link("upper"), link("c"), joint("a", "base", "upper"),
        joint("b", "upper", "c", "fixed", '<axis xzy="0 0 1"/>'),
        '<material name="a"><color rgba="1 0 0 1"/></material>',
    ).replace(' name="arm"', "")  # fmt: skip
    found = read_model(written(tmp_path, text))
    assert found.model.name == "a"
    assert found.model.shapes[0].color == (1, 0, 0, 1)
    kinds = ["robot without a name", "empty shape", "link of the world", "second material"]
    assert sorted(note.what for note in found.report) == sorted(kinds)
    assert found.warning == ""


# --- OpenSim ----------------------------------------------------------------------------------------------------------

TOES = "0.0001 0.0002 0.001 0 0 0"  # of many published models


@pytest.mark.parametrize("locked", ["true", "false"])
def test_toes_of_opensim(tmp_path, locked):
    """Where the toes' joint is locked they are part of the foot, which is possible; where it moves they are refused."""
    flags = {"mtp": f"<locked>{locked}</locked>"}
    foot = [J("PinJoint", "foot", coordinates=("ankle",)),
            J("PinJoint", "toes", "foot", ("mtp",), flags=flags, mass="0.2", inertia=TOES)]  # fmt: skip
    path = written(tmp_path, new_layout(foot), "m.osim")
    if locked == "false":
        with pytest.raises(
            kg.FileError, match=r"read with inertia='project' for .*, which changes a moment .* by 70 %"
        ):
            read_model(path)
        return
    assert said(path).startswith(f"{path}: no body can have the inertia of 'toes', but what moves together with it can")
    found = read_model(path)
    assert found.model.n == 1
    for options in ({"strict": True}, {"locked": "free"}):
        with pytest.raises(kg.FileError, match="violate the triangle inequality"):
            read_model(path, **options)
    kg.save(found.model, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(found.model)


# --- MJCF -------------------------------------------------------------------------------------------------------------

ARM = """<mujoco><worldbody><body name="arm"><joint name="a" axis="0 1 0.2"/>
<inertial pos="0.1 0 0" mass="1" diaginertia="1 1.1 1.2"/>
<body name="camera" pos="0.1 0.2 0.3" euler="20 30 40"><inertial pos="0 0 0.1" mass="0.1" {}/></body>
</body></worldbody></mujoco>"""
STATED = {
    "principal": 'diaginertia="1e-3 1e-3 3e-3" euler="10 20 30"',
    "whole": 'fullinertia="1e-3 1e-3 3e-3 1e-4 2e-4 0"',
}


@pytest.mark.parametrize("how", STATED)
def test_parts_of_mjcf(tmp_path, how):
    """MuJoCo refuses the file; with the inertia in the place of MuJoCo's balanced one, its M and τ are ours."""
    path = written(tmp_path, ARM.format(STATED[how]), "a.xml")
    found = read_model(path)
    assert [repair.what for repair in found.report.repairs] == ["impossible inertia"]
    assert said(path).startswith(f"{path}: no body can have the inertia of 'camera', but what moves together")
    for options in ({"strict": True}, {"inertia": "refuse"}):
        with pytest.raises(kg.FileError, match="MuJoCo refuses it: Error: inertia must satisfy"):
            read_model(path, **options)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.compiler.balanceinertia = True
    twin = spec.compile()
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, twin.body_iquat[2])
    R = R.reshape(3, 3)
    given = R @ np.diag([1e-3, 1e-3, 3e-3]) @ R.T
    if how == "whole":
        given = np.array([[1e-3, 1e-4, 2e-4], [1e-4, 1e-3, 0], [2e-4, 0, 3e-3]])
    moments, axes = np.linalg.eigh(given)
    axes[:, 0] *= np.linalg.det(axes)
    mujoco.mju_mat2Quat(twin.body_iquat[2], axes.ravel())
    twin.body_inertia[2] = moments
    mujoco.mj_setConst(twin, data := mujoco.MjData(twin))
    q, v, a = 0.3, 0.5, -0.7
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_inverse(twin, data)
    tau = kg.inverse_dynamics(found.model, [q], [v], [a])
    np.testing.assert_allclose(tau, data.qfrc_inverse, rtol=1e-12)


def test_moving_bodies_of_mjcf(tmp_path):
    """Nearly possible ones are projected; others are refused; moments without mass are added, as MuJoCo does."""
    alone = '<mujoco><worldbody><body name="a"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 {}"/></body>'
    text = alone + "</worldbody></mujoco>"
    path = written(tmp_path, text.format("2.02"), "a.xml")
    near = nearest_inertia(1.0, [0, 0, 0], np.diag([1, 1, 2.02])).inertia
    np.testing.assert_allclose(read_model(path).model.inertia[0], near, rtol=1e-14)
    assert "no body can have the inertia of 'a' (0.66 %)" in said(path)
    path = written(tmp_path, text.format("3"), "a.xml")
    with pytest.raises(kg.FileError, match=r"body 'a': principal moments .* read with inertia='project'.* by 25 %"):
        read_model(path)
    assert said(path, inertia="project") == ""
    path = written(tmp_path, ARM.format('diaginertia="1 2 3"').replace('mass="0.1"', 'mass="0"'), "a.xml")
    found = read_model(path).model
    np.testing.assert_allclose(np.trace(found.inertia[0]), 3.3 + 6, rtol=1e-14)


def test_older_mujoco_refuses_as_it_did(tmp_path, monkeypatch):
    path = written(tmp_path, ARM.format(STATED["principal"]), "a.xml")
    monkeypatch.delattr(mujoco, "MjSpec")
    with pytest.raises(kg.FileError, match="MuJoCo refuses it: Error: inertia must satisfy"):
        read_model(path)


# --- bodies themselves ------------------------------------------------------------------------------------------------


def test_sums_that_overflow_are_problems():
    """Numbers that a file may contain, and a body may not."""
    made = Bodies("link")
    T = kg.translate(1e80, 0, 0)
    one = MassProperties(1e60, np.zeros(3), np.eye(3))
    made.make("a", [(Part("a", one, ""), np.eye(4)), (Part("b", one, ""), T)])
    assert "expected finite numbers" in made.problems[0][1]
