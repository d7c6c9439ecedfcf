"""The viewer without a browser: what is sent to it, what it refuses, and how it ends."""

import itertools
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import kinegrad as kg
from kinegrad.view import Viewer, export_page, film, picture, save_picture
from kinegrad.view.panel import MANY, _extremes
from kinegrad.view.parts import body_parts
from kinegrad.view.shown import Shown
from tests.limits import LIMIT


def swing(model, count=31, duration=1.0):
    t = np.linspace(0, duration, count)
    wave = [
        0.3 * np.outer(f(2 * t), np.ones(model.nv)) * 2**k for k, f in enumerate((np.sin, np.cos, lambda x: -np.sin(x)))
    ]
    return kg.Motion(model, t, *wave)


@pytest.fixture
def viewer():
    arm = kg.samples.two_link()
    with Viewer(arm, swing(arm), loads=kg.Loads(force={"forearm": [0, -10, 0]})) as viewer:
        yield viewer


def places(viewer):
    return np.array([node.position for node in viewer.scene.links])


def test_links_are_where_forward_kinematics_says(viewer):
    for t in (0.0, 0.35, 1.0):
        viewer.set_time(t)
        q = viewer.shown.motion([t]).q[0]
        np.testing.assert_allclose(
            places(viewer), kg.forward_kinematics(viewer.model, q).transform[:, :3, 3], atol=1e-12
        )


def test_turns_of_the_nodes_are_those_of_the_links():
    model = kg.samples.puma560()
    with Viewer(model) as viewer:
        for q in np.random.default_rng(2).uniform(-np.pi, np.pi, (10, 6)):
            viewer.set_posture(q)
            for node, pose in zip(viewer.scene.links, kg.forward_kinematics(model, q).transform, strict=True):
                w, x, y, z = node.wxyz
                vector = np.array([x, y, z])
                cross = np.cross(np.eye(3), vector)
                turn = np.eye(3) * (w * w - vector @ vector) + 2 * np.outer(vector, vector) + 2 * w * cross
                np.testing.assert_allclose(turn, pose[:3, :3], atol=1e-12)


def test_sliders_follow_and_lead(viewer):
    viewer.set_posture([0.2, -0.4])
    assert [slider.value for slider in viewer.panel._sliders] == pytest.approx([0.2, -0.4])
    for callback in viewer.panel._sliders[0]._impl.update_cb:
        viewer.panel._sliders[0]._impl.value = 0.5
        callback(None)
    np.testing.assert_allclose(viewer.q, [0.5, -0.4])


def test_forces_begin_at_their_points_and_point_along(viewer):
    viewer.set_time(0.4)
    q = viewer.q
    tip = kg.forward_kinematics(viewer.model, q).transform[1, :3, 3]
    (arrow,) = viewer.scene.forces
    np.testing.assert_allclose(arrow.position, tip, atol=1e-12)
    w, x, y, z = arrow.wxyz
    np.testing.assert_allclose(
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], [0, -1, 0], atol=1e-12
    )


def test_colours_show_what_feels_the_chosen_joint():
    human = kg.samples.human43()
    with Viewer(human) as viewer:
        knee = human.speed_index("right_knee")
        viewer.choose(knee)
        colours = {
            part.link: tuple(mesh.color) for mesh, part in zip(viewer.scene.meshes, viewer.scene.parts, strict=True)
        }
        grey = colours[human.link_index("left_hand")]
        assert colours[human.joint_index("right_knee")] != grey  # its own torque does
        viewer.choose(None)
        assert tuple(viewer.scene.meshes[0].color) != grey


def tumbler():
    """A free body with an arm, its orientation a quaternion."""
    builder = kg.ModelBuilder("tumbler")
    builder.add("root", None, kg.free(quaternion=True), link="body", inertia=kg.Inertia.point(1.0, [0.1, 0.2, 0.3]))
    builder.add("arm", "body", kg.revolute("x"), link="arm", inertia=kg.Inertia.point(1.0, [0, 0, -1.0]))
    return builder.build()


def test_links_that_no_speed_moves_lend_no_colour():
    """Behind a quaternion are hinges that only place it: the arm's column of ∂τ/∂q is not theirs."""
    model = tumbler()
    with Viewer(model, q=kg.integrate(model, kg.neutral(model), [0, 0, 0, 0.3, 0.2, 0.1, 0.4])) as viewer:
        viewer.choose(model.nv - 1)
        column = viewer.shown.sensitivity(viewer.q, np.zeros(7), np.zeros(7), model.nv - 1)
        largest = np.abs(column[:6]).max() / np.abs(column).max()
        body = next(mesh for mesh, part in zip(viewer.scene.meshes, viewer.scene.parts, strict=True)
                    if model.link_names[part.link] == "body")  # fmt: skip
        red = 191 + (204 - 191) * np.sqrt(largest)  # from grey to red, by the strongest of the body's own speeds
        assert body.color[0] == pytest.approx(red, abs=13 * (1 - np.sqrt(largest)) / 2 + 1)
        assert body.color[1] == pytest.approx(196 - (196 - 26) * np.sqrt(largest), abs=2)


def test_the_cursor_is_upright_at_the_time_and_the_title_has_a_unit(viewer):
    viewer.set_time(0.4321)
    times, *_, line = viewer.panel._figure.data
    at = np.flatnonzero(np.isfinite(line))
    np.testing.assert_allclose(times[at], 0.4321, atol=1e-12)
    assert line[at[0]] < line[at[1]]
    assert viewer.panel._figure.title == "torques, N·m"


def test_long_curves_keep_their_peaks():
    values = np.zeros((50_000, 2))
    values[12_345, 0], values[44_444, 1] = 1.0, -1.0
    kept = _extremes(values)
    assert {0, 12_345, 44_444, 49_999} <= set(kept.tolist())
    assert len(kept) <= 2 * MANY
    assert (np.diff(kept) > 0).all()


def test_the_camera_has_the_motion_before_it(viewer):
    """From afar, and the middle of everything that is drawn is where it looks."""
    camera, low, high = viewer.server.initial_camera, viewer.scene.low, viewer.scene.high
    np.testing.assert_allclose(camera.look_at, (low + high) / 2)
    distance = np.linalg.norm(np.array(camera.position) - camera.look_at)
    away = (np.array(camera.position) - camera.look_at) / distance
    right = np.cross(camera.up, away) / np.linalg.norm(np.cross(camera.up, away))
    for corner in itertools.product(*zip(low, high, strict=True)):
        seen = np.array(corner) - camera.position
        for across in (right, np.cross(away, right)):  # within a window that is as wide as it is high
            assert abs(seen @ across) < -(seen @ away) * np.tan(camera.fov / 2)
    assert distance < 3 * np.linalg.norm(high - low)
    assert camera.near < 0.01 * distance < camera.far


def test_it_plays_pauses_and_begins_again(viewer):
    viewer.play()
    wait_until(lambda: viewer.time > 0.05)
    viewer.pause()
    assert not viewer.playing
    viewer.set_time(1.0)
    assert viewer.time == 1.0
    viewer.panel._loop.value = False
    viewer.set_time(0.4)
    viewer.play()  # from where it is, to its end, and no further
    assert viewer.time >= 0.4
    wait_until(lambda: not viewer.playing)
    assert viewer.time == 1.0
    viewer.play()  # at its end, from its beginning
    wait_until(lambda: not viewer.playing)


def wait_until(done):
    end = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def test_nothing_is_left_when_it_is_closed():
    before = set(threading.enumerate())
    viewer = Viewer(kg.samples.two_link())
    viewer.close()
    viewer.close()
    wait_until(lambda: not [x for x in set(threading.enumerate()) - before if x.name == "kinegrad-view-clock"])


def test_quaternions_and_couplings_have_sliders():
    builder = kg.ModelBuilder("tumbler")
    builder.add("ball", None, kg.spherical(quaternion=True), link="body", inertia=kg.Inertia.solid_box(1.0, (1, 2, 3))
                if hasattr(kg.Inertia, "solid_box") else kg.Inertia.point(1.0, [0.1, 0.2, 0.3]))  # fmt: skip
    model = builder.build()
    scene = Shown(model)
    assert scene.slider_ranges().shape == (3, 2)
    x = np.array([0.3, -0.2, 0.5])
    np.testing.assert_allclose(scene.tangent(scene.posture(x)), x, atol=1e-12)


def test_the_slider_of_a_knee_that_slides_while_it_bends_is_an_angle():
    """A coordinate of a hinge and a slider turns: its range is not that of the slider."""
    builder = kg.ModelBuilder("leg")
    rod = kg.Inertia.rod(3.7, (0, 0, 0), (0, -0.43, 0))
    builder.add("hip", None, kg.revolute("z"), link="thigh", inertia=rod)
    builder.add("knee", "thigh", kg.planar("z"), link="shank", placement=[0, -0.4, 0], inertia=rod)
    builder.couple("knee_angle", {"knee.rz": 1.0, "knee.tx": 0.01, "knee.ty": 0.01})
    scene = Shown(builder.build())
    np.testing.assert_allclose(scene.slider_ranges(), scene.slider_ranges()[0] * np.ones((2, 1)))


@pytest.mark.parametrize(("dark", "told"), [(True, "true"), (False, "false"), (None, "matchMedia")])
def test_exported_pages_are_dark_if_asked_or_as_the_reader_has_it(tmp_path, dark, told):
    page = export_page(kg.samples.two_link(), None, tmp_path / "arm.html", dark=dark)
    assert f"__VISER_EMBED_CONFIG__={{darkMode:{told}" in page.read_text(encoding="utf-8")


BAD = {
    "model": (lambda: Viewer("arm"), "`model`"),
    "motion": (lambda: Viewer(kg.samples.two_link(), "walk.csv"), "`motion` is 'walk.csv'; expected a Motion"),
    "other model": (
        lambda: Viewer(kg.samples.puma560(), swing(kg.samples.two_link())),
        "`motion` is of a model with other",
    ),
    "q": (lambda: Viewer(kg.samples.two_link(), q=[0.1]), r"`q` has shape \(1,\); expected \(2,\)"),
    "nan": (lambda: picture(kg.samples.two_link(), [0.1, np.nan]), "`q`"),
    "loads": (lambda: Viewer(kg.samples.two_link(), loads=[1, 2, 3]), "`loads` is"),
    "port": (lambda: Viewer(kg.samples.two_link(), port=70000), "`port` is 70000"),
    "suffix": (lambda: export_page(kg.samples.two_link(), None, "arm.txt"), "ends in .html"),
    "film": (lambda: film(kg.samples.two_link(), swing(kg.samples.two_link()), "arm.avi"), "ends in .gif or .mp4"),
    "picture": (lambda: save_picture(kg.samples.two_link(), "arm.bmp"), "ends in .png, .pdf or .svg"),
    "speed": (lambda: export_page(kg.samples.two_link(), None, "arm.html", speed=0), "`speed` is 0"),
    "angle": (lambda: picture(kg.samples.two_link(), azimuth=np.inf), "`azimuth` is inf"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    call, message = BAD[name]
    with pytest.raises(kg.InputError, match=message):
        call()


def test_pictures_have_the_model_in_the_middle():
    figure = picture(kg.samples.human43())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    inked = np.argwhere((pixels != 255).any(axis=-1))
    assert len(inked) > 0.05 * pixels[..., 0].size
    assert (inked.min(0) > 0).all()
    assert (inked.max(0) < np.array(pixels.shape[:2]) - 1).all()


def test_a_link_without_extent_or_mass_is_a_picture_of_nothing():
    builder = kg.ModelBuilder("nothing")
    builder.add("hinge", None, kg.revolute("z"), link="point")
    assert len(picture(builder.build()).axes) == 1


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="there is no ffmpeg: apt install ffmpeg")
def test_a_film_as_mp4(tmp_path):
    arm = kg.samples.two_link()
    whole = film(arm, swing(arm, 7, 0.2), tmp_path / "arm.mp4")
    told = ["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,pix_fmt,nb_read_frames"]
    found = subprocess.run([*told, "-of", "csv=p=0", whole], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert found.stdout.strip() == "h264,yuv420p,6"  # 25 a second, both ends; what every player shows


def test_a_missing_ffmpeg_is_told_with_the_package(monkeypatch, tmp_path):
    from matplotlib.animation import FFMpegWriter

    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda kind: False))
    arm = kg.samples.two_link()
    with pytest.raises(kg.InputError, match="apt install ffmpeg"):
        film(arm, swing(arm), tmp_path / "arm.mp4")
    assert not list(tmp_path.iterdir())


def test_a_missing_viser_is_told_with_the_command(monkeypatch):
    import importlib

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'kinegrad\[view\]'"):
        Viewer(kg.samples.two_link())


def test_curves_to_begin_with_are_torques_of_hinges_of_the_body():
    """Not the forces that would hold up the pelvis, beside which others are flat lines; of an arm, the largest."""
    human, arm = kg.samples.human43(), kg.samples.puma560()
    first = [human.speed_names[k] for k in Shown(human, kg.samples.sample_motion(human)).strongest()[:6]]
    assert not [name for name in first if name.startswith("pelvis")]
    motion = kg.samples.sample_motion(arm)
    shown = Shown(arm, motion)
    assert shown.strongest()[0] == np.abs(shown.tau).max(axis=0).argmax()


def test_sliders_have_few_digits_and_leave_the_others_as_they_are(viewer):
    viewer.set_posture([0.123456789, -0.5])
    sliders = viewer.panel._sliders
    assert sliders[0].value == pytest.approx(0.123456789, abs=sliders[0].step / 2)
    assert len(f"{sliders[0].value}") <= 6
    sliders[1].value = -0.75
    wait_until(lambda: viewer.q[1] == -0.75)
    assert viewer.q[0] == 0.123456789


def test_bodies_of_one_branch_differ_from_their_neighbours():
    parts = body_parts(kg.samples.two_link())
    assert parts[0].color != parts[1].color
