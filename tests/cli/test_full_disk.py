"""A disk that is full, for every command that writes: an error and its sentence, never a crash, and no half file."""

import os
import resource
import sys

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import write_dataset
from tests.kernels.child import child, ended

SCRIPT = """
import resource, sys, typer.testing
from kinegrad.cli import main
from kinegrad.cli.program import app
given = sys.argv[2:]  # first as usual and elsewhere, so that nothing is compiled later
first = typer.testing.CliRunner().invoke(app, ["../first/" + x if x.startswith("out") else x for x in given])
assert first.exit_code == 0, first.output
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["kinegrad", *given]
main()
"""
COMMANDS = {
    "analyze": ["analyze", "--model", "m.toml", "--motion", "m.csv", "--out", "out"],
    "torques": ["inverse-dynamics", "m.toml", "--trajectory", "m.csv", "--output", "out.nc"],
    "trajectory": ["sample-trajectory", "out.nc", "--model", "two_link"],
    "model": ["convert", "puma560", "out.toml"],
    "picture": ["view", "two_link", "--png", "out.png"],
}


@pytest.fixture
def model():
    builder, parent = kg.ModelBuilder("m"), None
    for k in range(4):
        body = kg.Inertia.rod(1, [0, 0, 0], [0.3, 0, 0])
        builder.add(f"j{k}", parent, kg.revolute("z"), link=f"l{k}", placement=[0.3, 0, 0], inertia=body)
        parent = f"l{k}"
    return builder.build()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of the size of files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_end_with_a_sentence(tmp_path, monkeypatch, model, command):
    """Files are limited to 1500 bytes, which is where HDF5, had it the file open, would end the process."""
    t = np.linspace(0, 0.5, 51)
    q = 0.1 * np.sin(t)[:, None] * np.ones(4)
    kg.save(model, tmp_path / "m.toml")
    kg.io.write_trajectory(tmp_path / "m.csv", model, t, q, 0 * q, 0 * q)
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    (tmp_path.parent / "first").mkdir(exist_ok=True)
    own = {name: x for name, x in os.environ.items() if name == "KINEGRAD_CACHE_DIR"}
    code, _, error = ended(
        child(SCRIPT, 1500, *COMMANDS[command], PYTHONDONTWRITEBYTECODE="1", **own)
    )  # would be cut, too
    assert code in (1, 2), error
    assert "cannot be written: File too large" in " ".join(error.split())
    assert "Traceback" not in error
    assert sorted(tmp_path.iterdir()) == before


def test_a_dataset_is_written_whole_or_not_at_all(tmp_path, model):
    """With the limits of this process changed for a moment: the file that was there stays."""
    motion = kg.Motion(model, [0.0, 1.0], *np.zeros((3, 2, 4))).to_xarray()
    path = tmp_path / "a.nc"
    write_dataset(path, motion)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
    try:
        with pytest.raises(kg.InputError, match=r"a.nc: cannot be written: File too large"):
            write_dataset(path, motion)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(kg.InputError, match=r"`dataset` is a ndarray; expected an xarray.Dataset"):
        write_dataset(path, np.zeros(3))
