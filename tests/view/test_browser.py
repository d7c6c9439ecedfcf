"""The viewer in a real browser: Debian's Chromium without a screen, its WebGL in software.

Chromium is installed by ``.ci/run``; where there is none, these tests are skipped.
"""

import shutil

import numpy as np
import pytest

import kinegrad as kg
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


@pytest.mark.parametrize("dark", [False, True])
def test_an_exported_page_plays_and_asks_nobody(page, tmp_path, dark):
    human = kg.samples.human43()
    target = export_page(human, swing(human), tmp_path / "human.html", dark=dark)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(target.as_uri())
    wait_until(lambda: coloured(picture_of(page)) > 300)
    first = picture_of(page)
    wait_until(lambda: (np.abs(picture_of(page) - first) > 40).any(axis=-1).sum() > 200)  # it moves
    outside = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert (picture_of(page)[:20].mean() < 128) == dark
