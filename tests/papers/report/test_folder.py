"""Folders of results: filled at once or not at all, wherever they are, and nothing else in them is touched."""

import contextlib
import errno
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from kinegrad import InputError
from kinegrad.io.whole_file import TEMPORARY
from kinegrad.papers.report.folder import whole_folder
from tests.kernels.child import child, ended, stopping


class Stop(Exception):
    """Raised where something goes wrong."""


def fill(out, **files):
    with whole_folder(out) as folder:
        for name, text in files.items():
            (folder / name).write_text(text)


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def volume(tmp_path):
    """A folder that is a disk of its own, as a volume of a container is."""
    place = tmp_path / "volume"
    place.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a disk")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


# --- where the folder may be ----------------------------------------------------------------------------------------


def test_a_folder_that_is_a_disk_of_its_own(volume):
    (volume / "mine").write_text("kept")
    fill(volume, a="1", b="2")
    fill(volume, a="3")
    assert content(volume) == {"a": "3", "b": "2", "mine": "kept"}


def test_nothing_is_moved_between_disks(tmp_path, monkeypatch):
    """The same where no disk can be mounted: the system refuses to move anything into or out of the folder."""
    out = tmp_path / "out"
    out.mkdir()

    def within(move):
        def moved(source, target, **options):
            if not (Path(source).is_relative_to(out) and Path(target).is_relative_to(out)) or Path(source).is_dir():
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            move(source, target, **options)

        return moved

    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, within(getattr(os, name)))
    fill(out, a="1")
    fill(out, a="2", b="3")
    assert content(out) == {"a": "2", "b": "3"}


@contextlib.contextmanager
def ordinary_user():
    """Root may write anywhere, so become somebody else for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_be_written_to_in_one_that_may_not():
    with tempfile.TemporaryDirectory() as place:  # not below tmp_path, which is closed to ordinary users
        parent, out = Path(place), Path(place, "out")
        out.mkdir()
        if not os.geteuid():
            os.chown(out, 65534, 65534)
        parent.chmod(0o555)
        try:
            with ordinary_user():
                fill(out, a="1")
                with pytest.raises(InputError, match="other: cannot be written: Permission denied"):
                    fill(parent / "other", a="1")
        finally:
            parent.chmod(0o755)
        assert content(out) == {"a": "1"}


def test_the_root_of_all_folders():
    with pytest.raises((Stop, InputError)), whole_folder("/"):
        raise Stop
    assert not [name for name in os.listdir("/") if name.startswith(TEMPORARY)]


def test_links_to_folders_are_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "there", target_is_directory=True)
    fill(tmp_path / "link", a="1")
    assert content(tmp_path / "there") == {"a": "1"}


@pytest.mark.parametrize("out", [None, b"out", 3, "a\0b"], ids=ascii)
def test_what_is_no_path(out):
    with pytest.raises(InputError, match="`out`"):
        fill(out)


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name, message in (("file", "is a file"), ("file/x", "Not a directory"), ("loop", "Too many levels")):
        with pytest.raises(InputError, match=message):
            fill(tmp_path / name)


# --- all or nothing -------------------------------------------------------------------------------------------------


def test_a_failed_run_leaves_no_folder_that_it_made(tmp_path):
    with pytest.raises(Stop), whole_folder(tmp_path / "a" / "b"):
        raise Stop
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(errno.EIO, "Input/output error")])
@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("moves", range(6))
def test_a_failure_between_two_files_brings_all_back(tmp_path, monkeypatch, stop, linked, moves):
    """Also on disks that have no links, where what is replaced is moved aside."""
    old = {"a": "old a", "c": "old c", "mine": "kept"}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    replace, count = os.replace, [0]

    def fail_once(source, target):
        if count[0] == moves:
            count[0] += 1
            raise stop
        replace(source, target)
        count[0] += 1

    def no_links(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "replace", fail_once)
    if not linked:
        monkeypatch.setattr(os, "link", no_links)
    try:
        fill(tmp_path, a="new a", b="new b", c="new c")
    except (KeyboardInterrupt, InputError):
        assert content(tmp_path) == old
    else:
        assert moves >= (3 if linked else 5)
        assert content(tmp_path) == {"a": "new a", "b": "new b", "c": "new c", "mine": "kept"}


def test_a_folder_is_never_replaced_by_a_file(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_text("mine")
    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match="b: is a folder; expected a file"):
        fill(tmp_path, a="1", b="2")
    assert (tmp_path / "b" / "x").read_text() == "mine"
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_modes_of_files_that_were_there(tmp_path):
    (tmp_path / "a").touch(mode=0o600)
    fill(tmp_path, a="1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


# --- signals --------------------------------------------------------------------------------------------------------

RUN = """
import sys, time
from kinegrad import cli, papers
from kinegrad.papers.report.folder import whole_folder

class Paper:
    @staticmethod
    def reproduce(out, quick, progress):
        progress("stage", 1, 2)
        with whole_folder(out) as folder:
            (folder / "index.html").write_text("half")
            print("ready", flush=True)
            time.sleep(1e6)

papers.load = lambda key: Paper
sys.argv = ["kinegrad", "reproduce", "anderson2002", "--out", sys.argv[1]]
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("there", [True, False])
def test_a_signal_leaves_nothing(tmp_path, name, there):
    out = tmp_path / "deep" / "out"
    if there:
        out.mkdir(parents=True)
        (out / "index.html").write_text("old")
    number = getattr(signal, name)
    process = child(RUN, out)
    with stopping(process):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        code, _, err = ended(process)
    assert code == 128 + number
    assert "Traceback" not in err
    if there:
        assert content(out) == {"index.html": "old"}
    else:
        assert not list(tmp_path.iterdir())


# --- the page -----------------------------------------------------------------------------------------------


def test_a_page_begins_with_its_picture_and_says_that_it_is_quick():
    from kinegrad.papers.report.page import Page

    page = Page("Swings, in words", "What it is about.", "fewer instants.")
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1800).to_bytes(4, "big")  # a figure of 12 inches
    page.first_figure(png, "The swing", "How <i>q</i> goes &amp; comes.")
    page.numbers([("3", "swings")])
    page.section("Motion", "motion")
    html = page.render()
    order = [html.index(part) for part in ("<h1>", "Quick run:", "<figure ", 'class="numbers"', "<nav", "<h2")]
    assert order == sorted(order)
    assert 'alt="The swing. How q goes &amp; comes."' in html  # for those who cannot see it
    assert "Quick run" not in Page("a", "b").render()
    assert "max-width: 700px" in html  # a layout for phones
    assert '<figure id="first-figure" class="wide"><img width="792"' in html  # on phones, 66 px for an inch


def test_the_first_figure_is_shown_once_and_maps_keep_their_colours_on_dark_pages():
    from kinegrad.papers.report.page import Page

    page = Page("Swings, in words", "What it is about.")
    png, other = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") for width in (1800, 300))
    page.first_figure(png, "The swing", "At first sight.")
    page.figure(png, "Figure 4", "In detail.")
    page.figure(other, "Figure 5", "Errors.", is_map=True)
    html = page.render()
    assert html.count("<img") == 2
    assert '<b>Figure 4.</b> <a href="#first-figure">Shown at the top of this page.</a> In detail.' in html
    assert html.count('id="first-figure"') == 1
    assert '<figure class="map"><img' in html


def test_a_busy_machine_is_noticed():
    from kinegrad.papers.report.disturbance import disturbed, disturbed_words

    assert not disturbed([1.0, 1.1])  # too few to tell
    assert disturbed([1.0, 1.9, 2.0, 1.8, 1.7])
    assert "3 of 9 times" in disturbed_words(3, 9)
