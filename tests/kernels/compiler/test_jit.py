"""What is said while compiling."""

import threading

import pytest

from kinegrad._kernels.compiler import cache, jit
from tests.kernels.child import child, output
from tests.limits import LIMIT

compiled_only = pytest.mark.skipif(not jit.JIT, reason="nothing is compiled without the JIT")


def test_notice_names_kernel_and_folder(monkeypatch, capsys):
    monkeypatch.delenv("KINEGRAD_QUIET", raising=False)
    jit._notice("rnea")
    said = capsys.readouterr()
    assert said.err == f"kinegrad: compiling rnea (once, usually for a few seconds; kept in {cache.folder()})\n"
    assert said.out == ""


def test_notice_is_silent_if_asked(monkeypatch, capsys):
    monkeypatch.setenv("KINEGRAD_QUIET", "1")
    jit._notice("rnea")
    assert capsys.readouterr() == ("", "")


@compiled_only
@pytest.mark.parametrize(("limit", "kept"), [(0.0, False), (1000.0, False), (0.0, True)])
def test_notice_only_when_compiling_takes_long(monkeypatch, limit, kept):
    """A compiler that is done once the notice appeared, if it is to appear, and at once otherwise.

    It does not appear where code is loaded from the cache, however long that takes on a busy machine.
    """
    said = threading.Event()
    expected = limit == 0.0 and not kept

    class Compiler:
        _compile_for_args = None

        def compile(self, signature):
            if not kept:
                self._cache.missed()
            return said.wait(LIMIT) if expected else signature

    monkeypatch.setattr(jit, "_NOTICE_AFTER", limit)
    monkeypatch.setattr(jit, "_notice", lambda name: name == "some_kernel" and said.set())

    def compiler(function):
        made = Compiler()
        made.py_func = function
        return made

    monkeypatch.setattr(jit.numba, "njit", lambda **options: compiler)

    def some_kernel(x):
        return x

    assert jit.kernel(some_kernel).compile("signature")
    assert said.is_set() == expected


def test_nothing_of_numba_leaks_to_the_users_settings():
    """Importing kinegrad must not change how the user's own Numba functions behave."""
    script = "from numba import config; old = dict(vars(config)); import kinegrad; print(old == vars(config))"
    assert output(child(script)) == "True\n"
