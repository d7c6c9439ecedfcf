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
