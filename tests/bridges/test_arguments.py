"""Bridges are optional: nothing is imported before it is asked for, and what is missing is named."""

import sys

import pytest

from kinegrad import InputError, bridges, samples
from tests.kernels.child import child, output

PACKAGES = ("jax", "torch", "casadi")
packages = pytest.mark.parametrize("name", PACKAGES)


@packages
def test_a_missing_package_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # as if not installed
    install = "pip install casadi" if name == "casadi" else rf"pip install 'kinegrad\[{name}\]'"
    with pytest.raises(ImportError, match=rf"to_{name} needs the package '{name}'.*{install}"):
        getattr(bridges, f"to_{name}")(samples.two_link())


@packages
def test_a_broken_package_speaks_for_itself(name, monkeypatch, tmp_path):
    (tmp_path / f"{name}.py").write_text("import part_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match="part_that_is_missing"):
        getattr(bridges, f"to_{name}")(samples.two_link())


def test_importing_kinegrad_imports_none_of_them():
    code = "import sys, kinegrad.bridges, kinegrad.compare; print(*sys.modules)"
    loaded = output(child(code)).split()
    assert "kinegrad.bridges" in loaded
    assert not {*PACKAGES, "numdifftools"} & set(loaded)


@packages
@pytest.mark.parametrize("model", [None, "two_link", 3])
def test_what_is_no_model_or_no_loads(name, model):
    pytest.importorskip(name)
    with pytest.raises(InputError, match="`model` is a"):
        getattr(bridges, f"to_{name}")(model)
    with pytest.raises(InputError, match="`loads` is a int; expected Loads"):
        getattr(bridges, f"to_{name}")(samples.two_link(), loads=3)
