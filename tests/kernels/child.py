"""A fresh Python process, for what is settled at import: lane width, bounds checking, JIT, cache folder."""

import os
import subprocess
import sys
from pathlib import Path

import kinegrad

SOURCE = Path(kinegrad.__file__).parents[1]


def child(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start `script` with the settings `environment`, and none that this process has of its own."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("KINEGRAD_", "NUMBA_"))}
    env = own | environment | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output(process: subprocess.Popen[str]) -> str:
    """What `process` printed; fails with its traceback if it failed."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out
