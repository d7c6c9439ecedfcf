"""Marker files: what is written is read to the last bit, gaps included; units are converted; errors are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinegrad.errors import InputError, RecordingWarning
from kinegrad.io.trc_file import Markers, read_trc, write_trc


def recording() -> Markers:
    x = np.random.default_rng(0).normal(size=(4, 3, 3))
    x[1, 2] = x[3, 2] = x[2, 0] = np.nan
    return Markers([0.0, 0.01, 0.02, 0.03], ("hip", "knee 1", "toe"), x)


def test_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    write_trc(tmp_path / "x.trc", recording())
    assert read_trc(tmp_path / "x.trc") == recording()


def test_units(tmp_path: Path) -> None:
    path = tmp_path / "x.trc"
    write_trc(path, recording())
    path.write_text(path.read_text().replace("\tm\t", "\tmm\t", 1))
    assert np.nanmax(np.abs(read_trc(path).position - recording().position / 1000)) < 1e-18


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("PathFileType", "Path"), "line 1: is 'Path"),
        (("\tm\t", "\tfurlong\t"), "line 3: Units is 'furlong'; expected mm, cm or m"),
        (("\t4\t3\t", "\t4\t2\t"), "declares 2 markers and names 3; expected as many"),
        (("\t4\t3\t", "\t4\t99999999\t"), "NumMarkers is 99999999; expected at most"),
        (("\t4\t3\t", "\t4\tx\t"), "NumMarkers is 'x'; expected a whole number"),
        (("knee 1", "hip"), "column 'hip' is there twice"),
        (("Frame#", "Frames"), "line 4: begins with"),
        (("\tX1\t", "\t1.5\t"), "line 5: begins with .*; expected X1, Y1, Z1"),
        (("2\t0.01\t", "2\t0.0\t"), "time goes from 0 to 0 s"),
        (("2\t0.01\t", "2\t\t"), "a frame has no number or no time"),
        (("2\t0.01\t", "2\t0.01\t\t"), "has 12 values; expected 11|has some of x, y, z"),
    ],
)
def test_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    path = tmp_path / "x.trc"
    write_trc(path, recording())
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(InputError, match=sentence):
        read_trc(path)


def test_frames_count_rather_than_the_header(tmp_path: Path) -> None:
    path = tmp_path / "x.trc"
    write_trc(path, recording())
    path.write_text(path.read_text().replace("\t4\t3\t", "\t5\t3\t", 1))
    with pytest.warns(RecordingWarning, match="declares '5' frames and has 4, which are read; is it cut off"):
        assert read_trc(path) == recording()


def test_markers_are_checked() -> None:
    x = np.zeros((2, 1, 3))
    with pytest.raises(InputError, match=r"`position` has shape \(2, 1, 3\); expected \(2, 2, 3\)"):
        Markers([0, 1], ("a", "b"), x)
    with pytest.raises(InputError, match="marker 'a' is there twice"):
        Markers([0, 1], ("a", "a"), np.zeros((2, 2, 3)))
    with pytest.raises(InputError, match="`t` does not increase"):
        Markers([1, 0], ("a",), x)
    half = x.copy()
    half[1, 0, 2] = np.nan
    with pytest.raises(InputError, match="marker 'a' has some of x, y, z at instant 1; expected all, or none"):
        Markers([0, 1], ("a",), half)
    with pytest.raises(InputError, match="infinite"):
        Markers([0, 1], ("a",), x + np.inf)
    with pytest.raises(InputError, match="marker 'b' is missing"):
        Markers([0, 1], ("a",), x).select(["b"])
