"""Tries kinegrad as it was installed, away from its source: `make dist` runs it in a fresh environment.

Not a test of pytest, which a fresh environment does not have.
"""

import subprocess
import sys
from pathlib import Path

import kinegrad

HERE = Path.cwd()


def main():
    root = Path(kinegrad.__file__).resolve().parent
    assert Path(__file__).resolve().parents[1] not in root.parents, f"this is the source, not the wheel: {root}"
    text = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    hello = text.split("```python\n")[1].split("```")[0]
    print("hello, from the README:")
    exec(compile(hello, "README.md", "exec"), {"__name__": "hello"})
    page = HERE / "zhakatayev2023"
    command = [sys.executable, "-m", "kinegrad", "reproduce", "zhakatayev2023", "--quick", "--out", str(page)]
    subprocess.run(command, check=True)
    assert (page / "index.html").stat().st_size > 100_000
    print(f"kinegrad {kinegrad.__version__} works as installed in {root}")


if __name__ == "__main__":
    main()
