"""The viewer, and the pages of reports, in a real browser: Debian's Chromium without a screen, its WebGL in software.

Chromium is installed by ``.ci/run``; where there is none, these tests are skipped.
"""

import shutil

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.papers.report.animation import animation, motion_scene
from kinegrad.papers.report.page import Page
from kinegrad.view import Viewer, export_page
from tests.limits import LIMIT
from tests.view.test_viewer import swing, wait_until

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox", "--disable-dev-shm-usage"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=1000 * LIMIT)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.set_default_timeout(1000 * LIMIT)
    yield page
    page.close()


def picture_of(page):
    """Pixels of the scene, without what lies over it at the left and the panel at the right."""
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(page.screenshot(timeout=1000 * LIMIT))) as image:
        return np.asarray(image.convert("RGB")).astype(int)[160:540, 60:460]


def coloured(pixels):
    """How many pixels are of a saturated colour: the model's, not the ground's."""
    return int((np.ptp(pixels, axis=-1) > 60).sum())


POINT_EVERYWHERE = """async shift => {
  const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect(), names = [];
  for (let k = 0; k < 144; k++) {
    const clientX = box.left + (shift + k % 12) / 12 * box.width;
    const clientY = box.top + (shift + k / 12) / 12 * box.height;
    canvas.dispatchEvent(new PointerEvent('pointermove', {clientX, clientY}));
    await new Promise(done => requestAnimationFrame(done));
    names.push(canvas.parentElement.dataset.name);
  }
  return names;
}"""  # what a report calls the places of a grid, one after the other


def hovered(page, model):
    """Rest the pointer on parts of the model until a name appears beside it."""
    found = []

    def seen():
        places = np.argwhere(np.ptp(picture_of(page), axis=-1) > 60)
        if len(places) < 200:
            return False
        row, column = places[len(places) // 2]
        page.mouse.move(60 + int(column), 160 + int(row))
        page.wait_for_timeout(500)
        tip = page.locator("#kinegrad-hover")
        found[:] = tip.inner_text().split("\n") if tip.count() and tip.is_visible() else []
        return bool(found)

    wait_until(seen)
    link = found[0]
    assert link in model.link_names
    assert found[1:] in ([f"joint {model.joint_names[model.link_index(link)]}"], [])
    page.mouse.move(5, 5)  # where there is nothing
    wait_until(lambda: not page.locator("#kinegrad-hover").is_visible())


def test_the_page_shows_the_model_a_slider_moves_it_and_the_clock_runs(page):
    arm = kg.samples.puma560()
    with Viewer(arm, swing(arm)) as viewer:
        page.goto(viewer.url)
        wait_until(lambda: coloured(picture_of(page)) > 200)
        before, held = picture_of(page), viewer.q
        field = page.locator("input[type=text]").filter(visible=True).last  # the number beside the last slider
        field.scroll_into_view_if_needed()
        field.fill("1.5", force=True)
        field.press("Enter")
        wait_until(lambda: not np.array_equal(viewer.q, held))  # as a visitor moves it
        np.testing.assert_allclose(viewer.q[-1], 1.5, atol=0.01)
        viewer.set_posture(held + 0.5)
        wait_until(lambda: (np.abs(picture_of(page) - before) > 40).any(axis=-1).sum() > 200)
        hovered(page, arm)
        page.get_by_role("button", name="Play").click(force=True)
        wait_until(lambda: viewer.time > 0.2)
        viewer.pause()


def test_a_click_on_a_link_colours_the_body(page):
    arm = kg.samples.puma560()
    with Viewer(arm) as viewer:
        page.goto(viewer.url)
        wait_until(lambda: coloured(picture_of(page)) > 200)
        found = np.argwhere(np.ptp(picture_of(page), axis=-1) > 60)
        row, column = found[len(found) // 2]

        def clicked():
            page.mouse.click(60 + int(column), 160 + int(row))
            page.wait_for_timeout(500)
            return viewer.chosen is not None

        wait_until(clicked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_exported_page_plays_asks_nobody_and_is_as_the_reader_has_it(browser, tmp_path, scheme):
    human = kg.samples.human43()
    target = export_page(human, swing(human), tmp_path / "human.html")
    page = browser.new_page(viewport={"width": 800, "height": 600}, color_scheme=scheme)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(target.as_uri())
    wait_until(lambda: coloured(picture_of(page)) > 300)
    first = picture_of(page)
    wait_until(lambda: (np.abs(picture_of(page) - first) > 40).any(axis=-1).sum() > 200)  # it moves
    hovered(page, human)
    outside = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert (picture_of(page)[:20].mean() < 128) == (scheme == "dark")
    page.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 390)])
def test_a_report_plays_its_model_names_it_and_fits_the_screen(browser, tmp_path, scheme, width):
    arm = kg.samples.two_link()
    motion = swing(arm)
    report = Page("Arm", "It swings.")
    report.section("Motion", "motion")
    report.listing("what was asked: " + 60 * "minimise effort, ")
    report.animation(animation(motion_scene(arm, motion.t, motion.q), "Figure 1", "An arm."))
    (tmp_path / "index.html").write_text(report.render(), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    told = []
    page.on("request", lambda request: told.append(request.url) if not request.url.startswith("file:") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto((tmp_path / "index.html").as_uri())
    wait_until(lambda: float(page.locator("output").inner_text().removesuffix(" s") or 0) > 0.1)
    page.get_by_role("button", name="pause").click()
    named = set()
    for shift in (0.5, 0.25, 0.75, 0.0):  # a bar may lie between the places of one grid
        if not {*arm.link_names} <= named:
            named |= set(page.evaluate(POINT_EVERYWHERE, shift))
    assert {*arm.link_names} <= named
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    back = page.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    assert told == []
    page.close()


DISTANCE = (
    "window.__viserMutable && window.__viserMutable.cameraControl && window.__viserMutable.cameraControl.distance"
)


def test_in_a_narrow_window_the_camera_steps_back_and_the_panel_is_closed(page):
    arm = kg.samples.puma560()
    page.set_viewport_size({"width": 390, "height": 780})
    with Viewer(arm, swing(arm)) as viewer:
        camera = viewer.server.initial_camera
        begun = float(np.linalg.norm(np.subtract(camera.position, camera.look_at)))
        page.goto(viewer.url)
        wait_until(lambda: (page.evaluate(DISTANCE) or 0) > 1.2 * begun)
        wait_until(lambda: not page.get_by_role("button", name="Play").is_visible())
        page.get_by_text(arm.name).first.click()
        wait_until(lambda: page.get_by_role("button", name="Play").is_visible())


def test_dragging_the_slider_of_time_scrubs_the_motion(page):
    arm = kg.samples.two_link()
    with Viewer(arm, swing(arm)) as viewer:
        page.goto(viewer.url)
        thumb = page.get_by_role("slider").first
        thumb.wait_for()
        box = thumb.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        viewer.play()
        viewer.pause()
        viewer.set_time(viewer.shown.motion.t[0])
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 15, y, steps=4)
        page.mouse.move(x + 30, y, steps=4)
        page.mouse.up()
        wait_until(lambda: viewer.time > viewer.shown.motion.t[0] + 0.1 * viewer.shown.duration)
        assert not viewer.playing
