"""A folder of results that appears whole: nothing of a run that was interrupted or failed stays behind."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kinegrad.errors import InputError

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(out: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside `out` whose files move there at the end, or vanish if anything went wrong.

    Files that `out` already holds are replaced where the names agree, each in one step, and otherwise left alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with whole_folder(Path(place, "results")) as folder:
    ...         _ = (folder / "a.txt").write_text("1")
    ...         assert not Path(place, "results").exists()
    ...     sorted(path.name for path in Path(place).rglob("*"))
    ['a.txt', 'results']
    """
    target = Path(out).resolve()
    made: list[Path] = []
    temporary: Path | None = None
    try:
        try:
            if target.exists() and not target.is_dir():
                raise InputError(f"{out}: is a file; expected a folder, or a name for a new one")
            made = _make(target.parent)
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            temporary.mkdir()
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror or error}") from None
        yield temporary
        try:
            if target.exists():
                for path in sorted(temporary.iterdir()):
                    os.replace(path, target / path.name)
            else:
                temporary.rename(target)
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror or error}") from None
        made = []
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for folder in reversed(made):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _make(folder: Path) -> list[Path]:
    """Make `folder` and those above it; the ones that were not there."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()][::-1]
    folder.mkdir(parents=True, exist_ok=True)
    return missing
