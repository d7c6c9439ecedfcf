"""docs/architecture.md lists what there is: every file of src/kinegrad where it is, and no other."""

import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import kinegrad
from tests.kernels.child import child, output

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kinegrad"
ENTRY = re.compile(r"^(?P<indent> *)(?P<name>[\w.]+/?)(?:  +|$)(?P<what>.*)$")


def listed():
    """Path → what is said of it, from the tree under `src/kinegrad/` in the page."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"^src/kinegrad/\n((?: .*\n)+)", text, flags=re.MULTILINE)
    assert tree, "the tree begins with a line src/kinegrad/"
    found, folders = {}, []
    for line in tree[1].splitlines():
        entry = ENTRY.match(line)
        assert entry, line
        depth = len(entry["indent"]) // 2 - 1
        folders[depth:] = [entry["name"].rstrip("/")]
        path = "/".join(folders)
        assert path not in found, f"{path} is listed twice"
        found[path] = entry["what"]
    return found


def there():
    """Files and folders of the package; the __init__.py of a folder is the folder."""
    files = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    names = {path.as_posix() for path in files if path.name != "__init__.py" or path.parent == Path()}
    return names | {parent.as_posix() for path in files for parent in path.parents if parent != Path()}


def test_every_file_is_listed_and_no_other():
    assert set(listed()) == there()


def test_every_file_is_described():
    assert all(listed().values())


def test_every_package_has_a_docstring():
    """It is where a reader of a folder begins."""
    for path in SOURCE.rglob("__init__.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


LAZY = ("bridges", "compare", "io", "objectives", "optimize", "papers", "plot", "predictions", "simulate", "view")
SLOW = ("matplotlib", "scipy.integrate", "scipy.optimize", "scipy.sparse", "xarray", "typer", "rich")


def test_subpackages_are_there_without_an_import():
    """What help(kinegrad) lists can be used and dir() has it, though ``import kinegrad`` loads none of it."""
    script = f"""
import sys, kinegrad
print([name for name in {(*SLOW, *(f"kinegrad.{name}" for name in LAZY))} if name in sys.modules])
print([name for name in {LAZY} if name not in dir(kinegrad) or name not in kinegrad.__all__])
print([getattr(kinegrad, name).__name__ for name in {LAZY}] == [f"kinegrad.{{name}}" for name in {LAZY}])
"""
    assert output(child(script)) == "[]\n[]\nTrue\n"


def test_every_module_that_help_lists_is_an_attribute():
    """A function may have the name of the package that it is in, as `directional` has."""
    for module in pkgutil.iter_modules(kinegrad.__path__):
        if not module.name.startswith("_"):
            assert module.name in dir(kinegrad)
            assert isinstance(getattr(kinegrad, module.name), ModuleType) or module.name == "directional"


def test_names_that_moved_are_where_they_were():
    """optimize_design and its relatives are of kinegrad.optimize now."""
    for name in kinegrad.simulate.OPTIMIZE:
        assert name in kinegrad.optimize.__all__
        assert getattr(kinegrad.simulate, name) is getattr(kinegrad.optimize, name)
        assert name in kinegrad.simulate.__all__
        assert name in dir(kinegrad.simulate)


@pytest.mark.parametrize("module", [kinegrad, kinegrad.simulate])
def test_other_names_are_errors_as_usual(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'optimise_design'"):
        _ = module.optimise_design
