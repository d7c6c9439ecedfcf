"""Fixtures of tests of the compiler and its cache."""

import pytest

from kinegrad._kernels.compiler import cache


@pytest.fixture
def fresh(monkeypatch):
    """The choice of folder made anew, without settings; the real choice is made anew afterwards too."""

    def clear():
        cache.folders.cache_clear()
        cache.folder.cache_clear()
        cache._troubles.clear()
        cache._warned.clear()

    for name in ("KINEGRAD_CACHE_DIR", "KINEGRAD_QUIET", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    clear()
    yield monkeypatch
    monkeypatch.undo()
    clear()
