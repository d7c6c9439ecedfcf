"""The site: `make docs` builds it into out/site without the network; warnings are errors.

Pages are the Markdown files of this folder.  The reference is made from docstrings: every public name of kinegrad on
the page of the task it is for, and pages that stand elsewhere in the repository are taken as they are.
"""

import ast
import importlib
import re
import textwrap
from pathlib import Path
from types import ModuleType

import kinegrad

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "kinegrad"
author = "the kinegrad developers"
release = kinegrad.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
html_theme = "furo"
html_title = f"kinegrad {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstring says shapes and units, and the signature would only be longer
autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": False}
autodoc_class_signature = "mixed"
default_role = "code"
suppress_warnings = [
    "misc.highlighting_failure",
    "ref.python",  # words of a type, such as n of "shape (n,)", are no references
]
nitpicky = False

# --- pages that stand elsewhere ---------------------------------------------------------------------------------

ELSEWHERE = {"contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md", "examples": "examples/README.md"}
LINKS = {source: f"{page}.md" for page, source in ELSEWHERE.items()} | {"README.md": "index.md"}


DERIVATION = r"(?m)^- \[(?P<what>[^\]]+)\]\(\.\./\.\./(?P<path>src/kinegrad/[\w/]+\.py)\)$"
CONTENTS = "\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"
NAVIGATION = {
    "Start": ["install", "features", "command_line"],
    "Tutorials": [
        "tutorials/robot_from_urdf", "tutorials/robot_from_dh", "tutorials/measured_angles", "tutorials/predict_a_lift",
        "tutorials/arm_with_two_lengths", "tutorials/student",
    ],
    "Guide": [
        "conventions", "choosing", "cheat_sheet", "equations", "coming_from", "files", "design", "constraints",
        "constrained", "simulation", "motion", "solvers", "recordings", "viewer", "bridges", "examples",
    ],
    "Theory": [
        "theory/kinematics", "theory/inverse_dynamics", "theory/forward_dynamics", "theory/hessian",
        "theory/constrained_dynamics", "theory/directions", "theory/designs", "theory/simulation",
        "theory/motion_prediction", "theory/recordings",
    ],
    "Papers": ["papers", "references"],
    "Reference": [
        "reference/models", "reference/kinematics", "reference/dynamics", "reference/constraints", "reference/designs",
        "reference/simulation", "reference/motions", "reference/files", "reference/drawing", "reference/others",
        "reference/errors",
    ],
    "Project": ["benchmarks", "architecture", "decisions", "contributing", "changes"],
}  # fmt: skip


def navigation():
    """All pages in order; those of a folder that are not named above come after those that are."""
    named = {page for pages in NAVIGATION.values() for page in pages}
    found = sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.rglob("*.md"))
    rest = [page for page in found if page not in named and page != "index"]
    folders = {"Tutorials": "tutorials/", "Theory": "theory/"}
    return {
        title: [*pages, *(page for page in rest if _belongs(page, title, folders))]
        for title, pages in NAVIGATION.items()
    }


def _belongs(page, title, folders):
    home = next((name for name, folder in folders.items() if page.startswith(folder)), "Guide")
    return home == title


def write_pages(app):
    """Copies of those pages, beside the others, with their links turned to where these are on the site."""
    for page, source in ELSEWHERE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = re.sub(r"\]\((?:\.\./)?docs/", "](", text)
        folder = f"{Path(source).parent}/" if "/" in source else ""
        text = re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)]*\.(?:py|toml|yml|txt)|LICENSE)\)", rf"`{folder}\2`", text)
        _write(f"{page}.md", _turned(text))
    for page in PAGES:
        _write(f"reference/{page}.rst", reference(page))


def turn_links(app, docname, source):
    """Links to files outside this folder, derivations of kernels in place, and what the first page leads to."""
    text = re.sub(DERIVATION, _derivation, source[0])
    if docname == "index":
        text += "".join(CONTENTS.format(title=title, pages="\n".join(pages)) for title, pages in navigation().items())
    source[0] = _turned(text)


def _derivation(link):
    """The docstring of a module, under the words of its link."""
    text = ast.get_docstring(ast.parse((ROOT / link["path"]).read_text(encoding="utf-8")))
    return f"## {link['what'][0].upper()}{link['what'][1:]}\n\nFrom `{link['path']}`:\n\n{_as_markdown(text)}\n"


def _as_markdown(docstring):
    """Paragraphs as paragraphs; formulas, which are indented, and glossaries as they stand."""
    text = re.sub(r":(?:mod|func|class):`~?([\w.]+)`", r"``\1``", docstring)
    parts = []
    for part in re.split(r"\n[ \t]*\n", text):
        indented = [line.startswith("  ") for line in part.splitlines()]
        if part.startswith("Glossary") or (all(indented) and parts):
            fence = f"```text\n{textwrap.dedent(part)}\n```"
            joined = parts and parts[-1].startswith("```text\n") and not part.startswith("Glossary")
            if joined:  # formulas with an empty line between them
                parts[-1] = f"{parts[-1][:-4]}\n\n{fence[8:]}"
            else:
                parts.append(fence)
        elif any(indented) and not re.match(r"(?:\d+\.|-) ", part):  # a list of terms, aligned by spaces
            parts.append(f"```text\n{part}\n```")
        else:
            pieces = part.split("``")  # every second one is code
            pieces[::2] = [re.sub(r"([*_<|\[\]`])", r"\\\1", piece) for piece in pieces[::2]]
            parts.append("`".join(pieces))
    return "\n\n".join(parts)


def _turned(text):
    for outside, page in LINKS.items():
        text = re.sub(rf"\]\((\.\./)*{re.escape(outside)}(#[^)]*)?\)", rf"](/{page}\2)", text)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:LICENSE|[\w/]+\.py)\)", r"\1", text)


def _write(name, text):
    """Only what has changed, so that a second build is quick."""
    target = HERE / name
    target.parent.mkdir(exist_ok=True)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


# --- reference --------------------------------------------------------------------------------------------------

PACKAGES = (
    "samples", "io", "recordings", "motion", "predictions", "objectives", "simulate", "optimize", "compare", "bridges",
    "plot", "view",
)  # fmt: skip
PAGES = {  # page → title, and the modules whose names stand there
    "models": ("Models", ("model", "samples", "loads", "configuration")),
    "kinematics": ("Kinematics and energy", ("kinematics", "energy")),
    "dynamics": ("Dynamics", ("dynamics", "forward", "hybrid", "packed_matrix", "directional", "regressor")),
    "constraints": ("Constraints", ("constraints", "constrained")),
    "designs": ("Designs", ("design", "optimize")),
    "simulation": ("Simulation and objectives", ("simulate", "objectives")),
    "motions": ("Motions and their prediction", ("motion", "predictions")),
    "files": ("Files and recordings", ("io", "recordings")),
    "drawing": ("Drawing", ("plot", "view")),
    "others": ("Other libraries, comparisons, threads", ("bridges", "compare", "_engine")),
    "errors": ("Errors", ("errors",)),
}


def public_names():
    """Name as users write it → object, of every public function and class."""
    found = {}
    for module in (kinegrad, *(importlib.import_module(f"kinegrad.{name}") for name in PACKAGES)):
        for name in module.__all__:
            thing = getattr(module, name)
            home = getattr(thing, "__module__", None)
            known = any(thing is other for other in found.values())
            if not known and not isinstance(thing, ModuleType) and isinstance(home, str) and hasattr(thing, "__name__"):
                found[f"{module.__name__}.{name}"] = thing
    return found


def page_of(thing):
    """The page where a name stands: that of its module."""
    part = thing.__module__.split(".")[1]
    for page, (_, modules) in PAGES.items():
        if any(part == module or part.startswith(f"{module}_") for module in modules):
            return page
    raise KeyError(f"{thing.__module__}.{thing.__name__}: add its module to PAGES of docs/conf.py")


def reference(page):
    """A page of the reference, functions before classes."""
    title = PAGES[page][0]
    lines = [title, "=" * len(title), ""]
    names = {name: thing for name, thing in public_names().items() if page_of(thing) == page}
    for heading, kind in (("Functions", False), ("Classes", True)):
        chosen = sorted(name for name, thing in names.items() if isinstance(thing, type) == kind)
        if chosen:
            lines += [heading, "-" * len(heading), ""]
        for name in chosen:
            lines += [f".. {'autoclass' if kind else 'autofunction'}:: {name}", ""]
    return "\n".join(lines)


def plain_signs(app, what, name, thing, options, lines):
    """Bars of magnitudes and stars of products are signs of mathematics in docstrings, not marks of their language."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "*", ":")):
            parts = line.split("``")  # every second one is code
            parts[::2] = [re.sub(r"(?<![\\*`])([|*])(?=\S)(?!\*)", r"\\\1", part) for part in parts[::2]]
            lines[k] = "``".join(parts)


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", turn_links)
    app.connect("autodoc-process-docstring", plain_signs, priority=400)  # before napoleon's
