"""C3D files: markers in metres with gaps, forces on the foot; errors instead of what ezc3d says of damaged files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinegrad.errors import InputError
from kinegrad.recordings import read_c3d

ezc3d = pytest.importorskip("ezc3d")


def written(path: Path) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(3, 2, 5)).astype(np.float32).astype(float) * 1000
    x[:, 1, 3] = np.nan
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [100]
    file["parameters"]["POINT"]["LABELS"]["value"] = ("hip", "knee")
    file["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    file["data"]["points"] = np.concatenate([x, np.ones((1, 2, 5))])
    file.write(str(path))
    return np.moveaxis(x, (0, 1, 2), (2, 1, 0)) / 1000


def test_markers(tmp_path: Path) -> None:
    x = written(tmp_path / "a.c3d")
    markers, plates = read_c3d(tmp_path / "a.c3d")
    assert (markers.names, plates) == (("hip", "knee"), [])
    assert np.diff(markers.t) == pytest.approx(0.01)
    assert np.nanmax(np.abs(markers.position - x)) < 1e-6
    assert np.isnan(markers.position[3, 1]).all()
    turned, _ = read_c3d(tmp_path / "a.c3d", up="z")
    assert np.nanmax(np.abs(turned.position - x[..., [0, 2, 1]] * [1, 1, -1])) < 1e-6


def test_more_markers_than_one_list_of_names_can_hold(tmp_path: Path) -> None:
    """C3D has POINT:LABELS for 255 names, then LABELS2; a residual of −1 is a marker that was not seen."""
    path, names = tmp_path / "a.c3d", tuple(f"m{k}" for k in range(300))
    file = ezc3d.c3d()
    point = file["parameters"]["POINT"]
    point["RATE"]["value"], point["UNITS"]["value"], point["LABELS"]["value"] = [50], ["cm"], names
    file["data"]["points"] = np.ones((4, 300, 2)) * np.arange(300)[None, :, None]
    residuals = np.zeros((1, 300, 2))
    residuals[0, 299, 1] = -1
    file["data"]["meta_points"] = {"residuals": residuals, "camera_masks": np.zeros((7, 300, 2), dtype=bool)}
    file.write(str(path))
    markers, _ = read_c3d(path)
    assert markers.names == names
    np.testing.assert_allclose(markers.position[:, 280], 2.80, rtol=1e-6)
    assert markers.seen.sum() == 599
    assert not markers.seen[1, 299]
    for units, sentence in (([], "POINT:UNITS is ''; expected mm, cm or m"), (["inch"], "POINT:UNITS is 'inch'")):
        point["UNITS"]["value"] = units
        file.write(str(path))
        with pytest.raises(InputError, match=sentence):
            read_c3d(path)


def test_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.c3d"
    written(path)
    good = path.read_bytes()
    for text, sentence in ((b"", "is empty"), (b"hello", "does not begin as C3D files do"), (None, "No such file")):
        path.unlink()
        if text is not None:
            path.write_bytes(text)
        with pytest.raises(InputError, match=sentence):
            read_c3d(path)
        path.write_bytes(good)
    with pytest.raises(InputError, match="`up` is 'x'; expected 'y' or 'z'"):
        read_c3d(path, up="x")
    path.write_bytes(good[:600])
    with pytest.raises(InputError):
        read_c3d(path)


def test_layouts_that_ezc3d_is_not_given(tmp_path: Path) -> None:
    """It crashes at such files, or takes minutes."""
    path = tmp_path / "a.c3d"
    written(path)
    good = path.read_bytes()
    at = good.index(b"UNITS")
    cases = [
        (good[:3] + b"\xff" + good[4:], "declares frames 1 to 5 of 65282 points|declares frames"),
        (good[:515] + b"\x10" + good[516:], "byte 516: the processor is 16; expected 84, 85 or 86"),
        (b"\xff" + good[1:], "its parameters begin in block 255; expected that in its"),
        (good.replace(b"UNITS", b"\x01NITS", 1), f"byte {at + 1}: the name of a parameter cannot be printed"),
        (good.replace(b"FRAMES", b"FRANES", 1), "POINT:FRAMES has 0 numbers; expected 1"),
        (good[: at + 5] + b"\x02\x00" + good[at + 7 :], "a parameter is longer than the way to the next"),
    ]
    for content, sentence in cases:
        path.write_bytes(content)
        with pytest.raises(InputError, match=sentence):
            read_c3d(path)
