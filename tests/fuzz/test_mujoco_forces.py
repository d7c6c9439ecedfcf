"""Random files of MJCF: whatever MuJoCo simulates is in the model, among its constraints, or in the report.

Where a report names nothing that matters, the accelerations are MuJoCo's own, with everything that it simulates.
"""

import random

import mujoco
import numpy as np

import kinegrad as kg
from kinegrad.io import read_model
from tests.fuzz.cases import cases

CLOSE = 1e-9  # of 1 and the largest acceleration, m/s² or rad/s²
PLAIN = ('damping="0.3"', 'armature="0.2"', 'stiffness="4" springref="20"', 'ref="12"', 'range="-3 3" limited="false"')
ODD = (  # one of a file: where it is, and what it is
    *[("joint", text) for text in ('frictionloss="0.4"', 'range="-5 5"', 'range="0 50"', 'limited="true" range="0 1"')],
    *[("tendon", text) for text in ('stiffness="9"', 'damping="2"', 'frictionloss="1"', 'range="0 0.1"', 'group="1"')],
    ("body", 'gravcomp="0.5"'),
    ("option", 'density="1.2"'),
    ("end", '<equality><joint joint1="j0" joint2="j2"/></equality>'),
    ("end", '<actuator><position joint="j0" kp="20"/></actuator>'),
    ("end", ""),
)
FLAGS = ("gravity", "spring", "damper", "equality", "limit", "frictionloss", "constraint", "actuation")


def text_of(rng: random.Random) -> str:
    """A chain of three to five joints with ordinary numbers, something odd, and at most two flags."""
    place, odd = rng.choice(ODD)
    at = {what: odd if what == place else "" for what in ("joint", "tendon", "body", "option", "end")}
    bodies = ""
    for k in reversed(range(rng.randint(3, 5))):
        words = rng.sample(PLAIN[: 4 if "range" in odd else 5], rng.randint(0, 2)) + [at["joint"]] * (k == 1)
        kind, axis = rng.choice(("hinge", "slide")), rng.choice(("1 0 0", "0 1 0.5", "0.2 0 1"))
        bodies = f"""<body pos="0.1 0 0.2" euler="{rng.randint(0, 90)} 0 10" {at["body"] * (k == 0)}>
<joint name="j{k}" type="{kind}" axis="{axis}" {" ".join(words)}/>
<geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.2 0.4" contype="0" conaffinity="0"/>{bodies}</body>"""
    tendon = f'<tendon><fixed {at["tendon"]}><joint joint="j1" coef="1"/></fixed></tendon>' * (place == "tendon")
    off = " ".join(f'{flag}="disable"' for flag in rng.sample(FLAGS, rng.randint(0, 2)))
    option = f"<option {at['option']}><flag {off}/></option>"
    return f"<mujoco>{option}<worldbody>{bodies}</worldbody>{tendon}{at['end']}</mujoco>"


def test_what_mujoco_simulates_is_in_the_model_or_listed(tmp_path):
    path, compared, listed = tmp_path / "a.xml", 0, 0
    for seed in range(cases(60)):
        rng = random.Random(seed)
        path.write_text(text_of(rng))
        found = read_model(path)
        if found.report.counts or found.constraints.m:
            listed += 1
            continue
        twin = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(twin)
        q, v = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, twin.nv))
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(twin, data)
        ours = kg.forward_dynamics(found.model, q, v, np.zeros(twin.nv))
        error = np.abs(ours - data.qacc).max() / (1.0 + np.abs(data.qacc).max())
        assert error < CLOSE, f"case {seed}: accelerations differ by {error:.1e}, and nothing is reported"
        compared += 1
    assert min(compared, listed) > 0.2 * (compared + listed)
