"""Folders for compiled code: fresh ones, chosen ones, those that cannot be written."""

import errno
import os
import tempfile
import warnings
from pathlib import Path

from kinegrad._kernels.compiler import cache


def troubles():
    """What would be warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cache.warn_of_troubles()
    assert all(warning.category is RuntimeWarning for warning in said)
    return [str(warning.message) for warning in said]


def refuse_to_write(monkeypatch, *folders, how):
    """Writing below `folders` fails as on a read-only disk (permission bits would not stop root)."""
    mkdir, temporary = Path.mkdir, tempfile.TemporaryFile

    def refused(path):
        return any(Path(path).is_relative_to(folder) for folder in folders)

    def checked_mkdir(self, *arguments, **options):
        if how == "mkdir" and refused(self):
            raise PermissionError(13, "read-only", str(self))
        return mkdir(self, *arguments, **options)

    def checked_temporary(*arguments, **options):
        if refused(options["dir"]):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(options["dir"]))
        return temporary(*arguments, **options)

    monkeypatch.setattr(Path, "mkdir", checked_mkdir)
    monkeypatch.setattr(tempfile, "TemporaryFile", checked_temporary)
