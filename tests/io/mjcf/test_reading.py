"""What becomes of a file of MJCF: joints in a row, references, springs, static bodies, equalities; what is refused."""

import sys

import mujoco
import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_model
from tests.peers.test_mjcf import compare

ROD = '<geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.2 0.4"/>'
ALL = f"""<mujoco model="all of it">
<compiler angle="radian"/><option gravity="0.3 -0.2 -9.7"/>
<worldbody>
  <geom type="plane" size="1 1 1"/><site name="post" pos="1 0 0"/>
  <body name="table" pos="0 0 1"><geom size="0.1" contype="0" conaffinity="0"/>
    <body name="arm" pos="0.1 0.2 0.3" euler="0.3 0.2 0.1">
      <joint name="a" type="slide" axis="1 1 0" ref="0.3" springref="0.2" stiffness="30" damping="2" range="-1 2"/>
      <joint name="b" axis="0 1 1" pos="0.1 0 0.2" ref="-0.4" springref="0.5" stiffness="7" armature="0.3"/>
      <joint name="arm" axis="1 0 0.3" pos="0 0.1 0"/>
      {ROD}<site name="grip" pos="0 0 0.4" euler="0.1 0 0"/>
      <body name="plate" pos="0.2 0 0" quat="0.9 0.1 0.3 0.2"><geom type="box" size="0.1 0.2 0.3" rgba="1 0 0 1"/>
        <body name="ball" pos="0 0 0.3"><joint name="socket" type="ball" pos="0 0 -0.1" damping="0.4"/>
          <inertial pos="0.01 0.02 0.03" mass="2" fullinertia="0.03 0.04 0.05 0.001 0.002 0.003"/>
          <geom type="ellipsoid" size="0.1 0.2 0.3" mass="0"/>
        </body>
      </body>
    </body>
  </body>
  <body name="drone" pos="3 2 1" euler="1 0 0"><freejoint name="fly"/>{ROD}
    <body pos="0 0 0.2"><joint type="hinge" axis="0 0 1"/>{ROD}</body>
  </body>
</worldbody>
<actuator><motor name="m" joint="a" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
<position name="servo" joint="b" kp="3"/><muscle name="biceps" joint="arm" lengthrange="0 1"/></actuator>
</mujoco>"""


def written(tmp_path, text, name="a.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_all_of_it_moves_as_in_mujoco(tmp_path):
    found, twin, data = compare(written(tmp_path, ALL))
    model = found.model
    assert model.name == "all of it"
    assert model.coordinate_names[:3] == ("a", "b", "arm")
    assert model.link_names[:3] == ("a", "b", "arm")
    assert model.position_limits[0].tolist() == [-1, 2]
    assert model.frame("plate").link == "arm"
    assert model.actuator_names == ("m",)
    assert model.torques([1.0])[0] == 3.0
    what = {note.what: note.text for note in found.report}
    assert "actuator 'servo' is left out: it has a bias" in [n.text[:43] for n in found.report if n.what == "actuator"]
    assert "it has a state of its own, as muscles have" in what["actuator"]
    assert "ellipsoid geom" in what
    assert "plane geom" in what
    assert "body 'table'" in what["body of the world"]
    assert "site 'post'" in what["site of the world"]
    # frames and bodies are where MuJoCo has them
    q, *_ = kg.random_configuration(model, 3), None
    data.qpos[:] = q
    mujoco.mj_kinematics(twin, data)
    point = [0.1, 0.2, 0.3]
    for name, position, matrix in (
        ("plate", data.body("plate").xpos, data.body("plate").xmat),
        ("ball", data.body("ball").xpos, data.body("ball").xmat),
        ("grip", data.site("grip").xpos, data.site("grip").xmat),
    ):
        there = kg.point_motion(model, q, link=name, point=point).position
        np.testing.assert_allclose(there, position + matrix.reshape(3, 3) @ point, atol=1e-13)
    box = next(shape for shape in model.shapes if isinstance(shape.solid, kg.Box))
    assert (box.link, box.solid.size, box.color) == ("arm", (0.2, 0.4, 0.6), (1, 0, 0, 1))


def test_angles_instead_of_quaternions(tmp_path):
    path = written(tmp_path, ALL)
    model = kg.io.read_model(path, quaternion=False)
    assert model.model.nq == model.model.nv == 3 + 3 + 6 + 1
    assert "damping of a ball" in model.report.counts


EQUAL = f"""<mujoco><compiler angle="radian"/><worldbody>
<body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" ref="0.2"/>{ROD}
  <body name="tip" pos="0.1 0.2 0.4"/>
  <body name="b" pos="0.3 0 0"><joint name="jb" axis="1 0 0" ref="-0.1"/>{ROD}</body></body>
<body name="c" pos="1 0 1"><freejoint/>{ROD}<site name="sc" pos="0 0.1 0.2"/></body>
<body name="d" pos="2 0 1"><freejoint/>{ROD}<site name="sd" pos="0.3 0 0"/></body>
</worldbody>
<equality>
  <connect name="hook" body1="tip" body2="c" anchor="0.1 0.2 0.3"/>
  <weld name="glue" body1="c" body2="d" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.3" anchor="0.05 0 0.1"/>
  <weld name="pinned" body1="d" torquescale="0"/>
  <connect name="sites" site1="sc" site2="sd"/>
  <joint name="gear" joint1="ja" joint2="jb" polycoef="0.3 -2 0 0 0"/>
  <joint name="held" joint1="jb" polycoef="0.4 0 0 0 0"/>
  <joint name="curve" joint1="ja" joint2="jb" polycoef="0 1 1 0 0"/>
  <weld name="idle" body1="c" active="false"/>
</equality></mujoco>"""


def test_equalities_are_constraints(tmp_path):
    """Rows are zero exactly where MuJoCo's are, and their Jacobians span the same space."""
    path = written(tmp_path, EQUAL)
    found = read_model(path)
    assert found.constraints.names == ("hook", "glue", "pinned", "sites", "gear", "held")
    assert found.report.counts == {"contacts": 1, "equality joint": 1}
    assert "inactive equality" in [note.what for note in found.report]
    twin = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(twin)
    model = found.model
    rows = {name: [k for k, row in enumerate(found.constraints.row_names) if row.split(".")[0] == name]
            for name in found.constraints.names}  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = kg.random_configuration(model, rng)
        data.qpos[:] = q
        mujoco.mj_fwdPosition(twin, data)
        G, error = found.constraints.jacobian(q), found.constraints.error(q)
        J = np.zeros((data.nefc, twin.nv))
        if mujoco.mj_isSparse(twin):
            mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            J[:] = data.efc_J.reshape(data.nefc, twin.nv)
        for name in ("hook", "pinned", "sites", "gear", "held", "glue"):
            k = twin.equality(name).id
            own = (data.efc_id == k) & (data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY))
            theirs, ours = data.efc_pos[own], error[rows[name]]
            if name == "glue":  # turns far from closure are measured otherwise; shifts are the same up to the frame
                np.testing.assert_allclose(np.linalg.norm(ours[:3]), np.linalg.norm(theirs[:3]), rtol=1e-12)
                continue
            if name == "pinned":  # without torques: MuJoCo keeps three rows of zeros
                np.testing.assert_allclose(np.linalg.norm(ours), np.linalg.norm(theirs[:3]), rtol=1e-12)
                continue
            np.testing.assert_allclose(np.linalg.norm(ours), np.linalg.norm(theirs), rtol=1e-12)
            if name in ("gear", "held"):
                np.testing.assert_allclose(G[rows[name]], J[own], atol=1e-12)
    # a weld that holds in MuJoCo holds here: put d where it belongs
    q = kg.random_configuration(model, rng)
    data.qpos[:] = q
    mujoco.mj_kinematics(twin, data)
    relpose = twin.eq_data[twin.equality("glue").id]
    R1, R2 = data.body("c").xmat.reshape(3, 3), np.zeros(9)
    quat = np.zeros(4)
    mujoco.mju_mulQuat(quat, data.body("c").xquat, relpose[6:10])
    mujoco.mju_quat2Mat(R2, quat)
    at = twin.joint(int(twin.body("d").jntadr[0])).qposadr[0]
    q[at + 3 : at + 7] = quat
    q[at : at + 3] = data.body("c").xpos + R1 @ relpose[3:6] - R2.reshape(3, 3) @ relpose[:3]
    np.testing.assert_allclose(found.constraints.error(q)[rows["glue"]], 0, atol=1e-12)


def test_load_tells_of_what_is_not_in_the_model(tmp_path):
    path = written(tmp_path, EQUAL)
    with pytest.warns(kg.io.LeftOutWarning, match="1 × equality joint, 1 × contacts, 6 × constraint"):
        kg.load(path)


def test_names_that_are_missing_or_taken(tmp_path):
    text = f"""<mujoco><worldbody><body><joint/><joint axis="1 0 0"/>{ROD}<site name="body1"/>
<body name="joint0"><joint name="joint1" axis="0 1 0"/>{ROD}</body></body></worldbody></mujoco>"""
    model = read_model(written(tmp_path, text)).model
    assert model.joint_names == ("joint0", "joint1_", "joint1")
    assert model.link_names == ("joint0.link", "body1", "joint0")


def test_what_is_switched_off(tmp_path):
    flag = '<option><flag gravity="disable" spring="disable" damper="disable"/></option>'
    if not hasattr(mujoco.mjtDisableBit, "mjDSBL_SPRING"):
        flag = flag.replace(' spring="disable" damper="disable"', ' passive="disable"')
    model = read_model(written(tmp_path, ALL.replace("<worldbody>", flag + "<worldbody>"))).model
    assert not model.gravity.any()
    assert not model.damping.any()
    assert not model.stiffness.any()
    compare(tmp_path / "a.xml")


LIMITED = f"""<mujoco><option><flag contact="disable"/></option><worldbody>
<body><joint name="a" range="-90 45" solreflimit="0.02 1"/>{ROD}
<body><joint name="b" type="slide" range="-1.8 1.8"/>{ROD}
<body><joint name="c" range="0 1" limited="false"/>{ROD}
<body><joint name="d" type="ball" range="0 60"/>{ROD}
<body><joint name="e" frictionloss="0.2" actuatorfrcrange="-3 4"/>{ROD}</body></body></body></body></body></worldbody>
<tendon><fixed name="cable" limited="true" range="0 1" frictionloss="2"><joint joint="a" coef="1"/></fixed></tendon>
<equality><joint name="held" joint1="c"/></equality>
<actuator><motor name="late" joint="a" group="2"/></actuator></mujoco>"""


def test_stops_are_listed(tmp_path):
    """MuJoCo pushes a joint back at its limits and no simulation here does, so that the file moves otherwise."""
    found = read_model(written(tmp_path, LIMITED))
    assert found.report.counts == {"joint stop": 3, "joint friction": 1, "tendon": 1}
    stops = [note.text for note in found.report if note.what == "joint stop"]
    assert (
        stops[0]
        == "joint 'a' has stops at -1.5708 and 0.785398 rad, which are its position_limits and are not simulated"
    )
    assert stops[1] == "joint 'b' has stops at -1.8 and 1.8 m, which are its position_limits and are not simulated"
    assert stops[2] == "ball joint 'd' has a stop at a turn of 1.0472 rad"
    np.testing.assert_allclose(
        found.model.position_limits[:3], [[-np.pi / 2, np.pi / 4], [-1.8, 1.8], [-np.inf, np.inf]]
    )
    texts = [note.text for note in found.report]
    assert "joint 'e' has limits of the sum of its actuators from -3 to 4" in texts
    assert "tendon 'cable' with frictionloss, limits is left out" in texts
    with pytest.warns(kg.io.LeftOutWarning, match="not in the model: 3 × joint stop, 1 × joint friction, 1 × tendon"):
        kg.load(tmp_path / "a.xml")


@pytest.mark.parametrize("flags", ['constraint="disable"', 'limit="disable" frictionloss="disable" equality="disable"'])
def test_what_mujoco_switches_off_is_neither_listed_nor_a_constraint(tmp_path, flags):
    """Stops, friction and equalities that the file switches off do not act in MuJoCo."""
    found = read_model(written(tmp_path, LIMITED.replace('contact="disable"', f'contact="disable" {flags}')))
    assert found.report.counts == {}
    assert found.constraints.names == ()
    texts = [note.text for note in found.report]
    assert "equality 'held' (joint) is there, but switched off by <flag>" in texts
    assert "limit is switched off by <flag>" in texts


def test_motors_that_are_switched_off_or_late(tmp_path):
    """They are no motors of the model, which acts at once."""
    assert read_model(written(tmp_path, LIMITED)).model.actuator_names == ("late",)
    off = LIMITED.replace("<option>", '<option actuatorgroupdisable="2">')
    assert "'late' is left out: its group is switched off" in str(read_model(written(tmp_path, off)).report)


JOINT = f"<mujoco>\n<worldbody><body>\n<joint/>{ROD}</body></worldbody></mujoco>"
REFUSED = {
    "nothing moves": ("<mujoco/>", "has no joint, so that nothing moves; expected at least one"),
    "unknown type": (JOINT.replace("<joint/>", '<joint type="bal"/>'), "line 3: MuJoCo refuses it: XML Error: invalid"),
    "comma": (JOINT.replace("<joint/>", '<joint damping="1,5"/>'), "line 3: MuJoCo refuses it: XML Error"),
    "hexadecimal": (
        JOINT.replace("<joint/>", '<joint damping="0x10"/>'),
        "line 3: <joint>: damping=\"0x10\" holds '0x10'; expected finite decimal numbers, as 1.5 or -2e-3",
    ),
    "nan": (JOINT.replace("<joint/>", '<joint axis="nan 0 0"/>'), "axis=\"nan 0 0\" holds 'nan'; expected finite"),
    "infinite": (JOINT.replace("<joint/>", '<joint armature="inf"/>'), "armature=\"inf\" holds 'inf'"),
    "absurd sizes": (
        JOINT.replace("<worldbody>", '<size nkey="2000000000"/><worldbody>'),
        'line 2: <size>: nkey="2000000000" is absurdly large; expected at most 100000',
    ),
    "absurd memory": (
        JOINT.replace("<worldbody>", '<size memory="100T"/><worldbody>'),
        'memory="100T" is absurdly large',
    ),
    "absurd copies": (
        JOINT.replace(ROD, f'{ROD}<replicate count="1000"><replicate count="1000">{ROD}</replicate></replicate>'),
        "<replicate>: makes 1e+06 copies; expected at most 30000",
    ),
    "absurd pictures": (
        JOINT.replace("<worldbody>", '<asset><hfield nrow="60000" ncol="60000" size="1 1 1 1"/></asset><worldbody>'),
        "<hfield>: has 60000 by 60000 points; expected at most 67108864 together",
    ),
    "absurd pictures together": (
        JOINT.replace("<worldbody>", '<asset><texture width="8000" height="8000"/></asset><worldbody>'),
        "has 3.84e+08 points of textures, height fields and made meshes; expected at most 67108864",
    ),
    "absurd meshes": (
        JOINT.replace("<worldbody>", '<asset><mesh builtin="plate" params="20000 20000"/></asset><worldbody>'),
        "has 2.56e+10 points of textures",
    ),
    "absurd copies together": (
        JOINT.replace(ROD, ROD + f'<replicate count="20000">{ROD}</replicate>' * 2),
        "has 39998 elements that are made",
    ),
    "absurd user data": (
        JOINT.replace("<worldbody>", '<size nuser_geom="90000"/><worldbody>').replace(ROD, ROD * 500),
        "numbers of user data; expected at most 30000000",
    ),
    "absurd default classes": (
        JOINT.replace("<worldbody>", f"<default>{'<default/>' * 10_000}</default><worldbody>"),
        "has 10001 default classes; expected at most 10000",
    ),
    "zero axis": (JOINT.replace("<joint/>", '<joint axis="0 0 0"/>'), "axis too small in joint"),
    "no mass": (JOINT.replace(ROD, ""), "mass and inertia of moving bodies must be larger than mjMINVAL"),
    "DTD": ('<!DOCTYPE mujoco [<!ENTITY a "1">]>' + JOINT, "line 1: declares a document type (DTD)"),
    "not XML": ("mujoco", "is not well-formed XML"),
    "other XML": ("<sdf/>", "begins with <sdf>; expected <mujoco>"),
    "file that is missing": (
        JOINT.replace("<worldbody>", '<asset><mesh file="no.stl"/></asset><worldbody>'),
        "MuJoCo refuses it: Error: Error opening file",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_sentence(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    text, sentence = REFUSED[what]
    with pytest.raises(kg.FileError) as caught:
        read_model(written(tmp_path, text))
    assert sentence in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a.xml"]  # MuJoCo leaves no log behind


def test_included_files_are_checked_too(tmp_path):
    part = written(tmp_path, f'<mujocoinclude>\n<body><joint damping="inf"/>{ROD}</body></mujocoinclude>', "part.xml")
    whole = '<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>'
    with pytest.raises(kg.FileError, match=r"part.xml, line 2: <joint>: damping=\"inf\" holds 'inf'"):
        read_model(written(tmp_path, whole))
    part.write_text(f'<mujocoinclude>\n<body><joint damping="0.3"/>{ROD}</body></mujocoinclude>')
    assert read_model(written(tmp_path, whole)).model.damping.tolist() == [0.3]
    part.write_text('<mujocoinclude><include file="part.xml"/></mujocoinclude>')
    with pytest.raises(kg.FileError, match="MuJoCo refuses it"):
        read_model(written(tmp_path, whole))


ATTACH = '<asset><model name="{0}" file="{0}.xml"/></asset><worldbody>{1}</worldbody>'


def attached(body, name="sub", times=1):
    """A model that attaches the body `body` of another file, some times."""
    each = [f'<frame><attach model="{name}" body="{body}" prefix="p{k}_"/></frame>' for k in range(times)]
    return f'<mujoco model="m{name}">{ATTACH.format(name, "".join(each))}</mujoco>'


def sub_model(inner=""):
    return f'<mujoco>\n<worldbody><body name="b">\n<joint damping="{{0}}"/>{ROD}{inner}</body></worldbody></mujoco>'


def test_attached_files_are_checked_by_the_same_rules(tmp_path):
    """MuJoCo reads them itself, hexadecimal numbers, copies and all; where they lie beside each other, too."""
    path = written(tmp_path, attached("b"))
    sub = written(tmp_path, sub_model().format(0.3), "sub.xml")
    assert read_model(path).model.damping.tolist() == [0.3]
    sub.write_text(sub_model().format("0x10"))
    with pytest.raises(kg.FileError, match=r"sub.xml, line 3: <joint> in .*: damping=\"0x10\" holds '0x10'"):
        read_model(path)
    sub.write_text(sub_model(f'<replicate count="2000000">{ROD}</replicate>').format(0.3))
    with pytest.raises(kg.FileError, match=r"sub.xml, line 3: <replicate>.*makes 2e\+06 copies"):
        read_model(path)
    (tmp_path / "far").mkdir()
    sub.write_text(sub_model().format(0.3).replace("<worldbody>", '<worldbody><include file="far/i.xml"/>'))
    (tmp_path / "far" / "i.xml").write_text('<mujocoinclude><body><joint damping="inf"/></body></mujocoinclude>')
    with pytest.raises(kg.FileError, match=r"i.xml, line 1: <joint>: damping=\"inf\" holds 'inf'"):
        read_model(path)


def test_what_is_attached_is_counted_as_often_as_it_is_made(tmp_path):
    """A chain of files, each of which attaches the next one ten times, is a small file and a large model."""
    for k in range(6):
        inner = "".join(f'<frame><attach model="s{k + 1}" body="b" prefix="p{j}_"/></frame>' for j in range(10))
        asset = f'<asset><model name="s{k + 1}" file="s{k + 1}.xml"/></asset>' if k < 5 else ""
        text = sub_model(inner if k < 5 else "").format(0.1).replace("<mujoco>", f"<mujoco>{asset}")
        written(tmp_path, text, f"s{k}.xml")
    with pytest.raises(
        kg.FileError, match=r"elements that are made by copies and attached files; expected at most 30000"
    ):
        read_model(tmp_path / "s0.xml")
    with pytest.raises(kg.FileError, match=r"elements that are made"):
        read_model(written(tmp_path, f'<mujoco>{ATTACH.format("s4", "")}</mujoco>'.replace(
            "<worldbody>", '<worldbody><replicate count="1000"><frame><attach model="s4" body="b" prefix="q"/></frame>'
            "</replicate>")))  # fmt: skip
    assert read_model(tmp_path / "s4.xml").model.nv == 11


def test_a_model_that_attaches_itself_is_refused(tmp_path):
    """MuJoCo follows it until its stack is full, and the process with it."""
    path = written(tmp_path, attached("b", "a"))
    with pytest.raises(kg.FileError, match=r"attaches a.xml within itself; expected models without a cycle"):
        read_model(path)


def test_wrong_options(tmp_path):
    with pytest.raises(kg.InputError, match="`quaternion` is 1; expected True or False"):
        read_model(written(tmp_path, JOINT), quaternion=1)


def test_without_mujoco(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(kg.InputError, match=r"install it with: pip install 'kinegrad\[mjcf\]'"):
        read_model(written(tmp_path, JOINT))


def test_round_trip(tmp_path):
    for text in (ALL, EQUAL):
        found = read_model(written(tmp_path, text))
        kg.save(found, tmp_path / "a.toml")
        again = read_model(tmp_path / "a.toml")
        assert again.model == found.model
        assert again.constraints == found.constraints
