"""The site: `make docs` builds it into out/site without the network; warnings are errors.

Pages are the Markdown files of this folder.  The reference is made from docstrings: every public name of kinegrad on
the page of the task it is for, and pages that stand elsewhere in the repository are taken as they are.
"""

import ast
import html
import importlib
import inspect
import itertools
import re
import textwrap
from functools import partial
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.python import PyObject

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
pygments_dark_style = "github-dark"
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "deflist"]
highlight_language = "none"  # a block that does not name its language is no Python
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstring says shapes and units, and the signature would only be longer
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_class_signature = "mixed"
default_role = "code"
suppress_warnings = [
    "misc.highlighting_failure",
    "ref.python",  # words of a type, such as n of "shape (n,)", are no references
]
nitpicky = False

PHONE = 40  # letters of a table's longest words, over all columns, that fit beside each other

# --- pages that stand elsewhere ---------------------------------------------------------------------------------

ELSEWHERE = {"contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md", "examples": "examples/README.md"}
LINKS = {source: f"{page}.md" for page, source in ELSEWHERE.items()} | {"README.md": "index.md"}


DERIVATION = r"(?m)^- \[(?P<what>[^\]]+)\]\(\.\./\.\./(?P<path>src/kinegrad/[\w/]+\.py)\)$"
DESCRIBED = r"\[(?P<label>reference|`\w+`)\]\((?:\.\./)+src/kinegrad/(?P<module>[a-z]\w*)(?:/\w+)*\.py\)"
MARKED = r"(``[^`]+``|(?<![\w*×])\*{1,2}[A-Za-z][\w -]*\*{1,2}(?![\w*]))"  # code, and words that are stressed
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
    text = re.sub(DESCRIBED, _reference, text)
    text = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)  # the empty line that ends a doctest
    text = re.sub(r"!\[[^\]]*\]\(([\w/.]*images/\w+)\.(svg|png)\)", partial(_with_twins, docname), text)
    if docname == "index":
        text += "".join(CONTENTS.format(title=title, pages="\n".join(pages)) for title, pages in navigation().items())
    source[0] = _turned(text)


def _derivation(link):
    """The docstring of a module, under the words of its link."""
    text = ast.get_docstring(ast.parse((ROOT / link["path"]).read_text(encoding="utf-8")))
    return f"## {link['what'][0].upper()}{link['what'][1:]}\n\nFrom `{link['path']}`:\n\n{_as_markdown(text)}\n"


def _reference(link):
    """The page of the reference that is made from a module, where a browser of files shows the module."""
    names = {name.rpartition(".")[2] for name in public_names()}
    if link["label"] != "reference" and link["label"][1:-1] not in names:
        return link[0]
    return f"[{link['label']}](/reference/{_page_of_module(link['module'])}.rst)"


def _with_twins(docname, image):
    """An image with those for dark pages and for phones, if there are such files: site.css shows the one that fits."""
    folder = (HERE / docname).parent
    twins = []
    for shape, of_shape in (("", "wide"), ("_upright", "upright")):
        for page, of_page in (("", "only-light"), ("_dark", "only-dark")):
            path = f"{image[1]}{shape}{page}.{image[2]}"
            if (folder / path).exists():
                twins.append((path, of_shape, of_page))
    if len(twins) == 1:
        return image[0]
    shapes = {of_shape for _, of_shape, _ in twins}
    return "\n".join(
        image[0].replace(f"{image[1]}.{image[2]}", path) + f"{{.{of_page}{f' .{of_shape}' if len(shapes) > 1 else ''}}}"
        for path, of_shape, of_page in twins
    )


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
            pieces = re.split(MARKED, re.sub(r"(?<!`)`(\w[^`\n]*)`(?!`)", r"``\1``", part))
            pieces[::2] = [re.sub(r"([*_<|\[\]`])", r"\\\1", piece) for piece in pieces[::2]]
            parts.append("".join(pieces).replace("``", "`"))
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
    "samples", "io", "recordings", "motion", "predictions", "objectives", "optimize", "simulate", "compare", "bridges",
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


def other_names(name, thing):
    """What else its package calls it, as users write it."""
    package = name.rpartition(".")[0]
    module = importlib.import_module(package)
    found = [f"{package}.{other}" for other in module.__all__ if getattr(module, other) is thing]
    return [other.removeprefix("kinegrad.") for other in found if other != name]


def page_of(thing):
    """The page where a name stands: that of its module."""
    return _page_of_module(thing.__module__.split(".")[1])


def _page_of_module(part):
    """The page of the names of kinegrad.part."""
    for page, (_, modules) in PAGES.items():
        if any(part == module or part.startswith(f"{module}_") for module in modules):
            return page
    raise KeyError(f"kinegrad.{part}: add it to PAGES of docs/conf.py")


def reference(page):
    """A page of the reference: what there is, in a table, then functions before classes."""
    title = PAGES[page][0]
    names = {name: thing for name, thing in sorted(public_names().items()) if page_of(thing) == page}
    groups = [[name for name, thing in names.items() if isinstance(thing, type) == kind] for kind in (False, True)]
    lines = [title, "=" * len(title), "", ".. list-table::", "   :widths: auto", "   :class: names", ""]
    for name in [*groups[0], *groups[1]]:
        kind = "class" if isinstance(names[name], type) else "func"
        text = " ".join([_first(names[name]), *(f"Also ``{other}``." for other in other_names(name, names[name]))])
        lines += [f"   * - :py:{kind}:`{name.removeprefix('kinegrad.')} <{name}>`", f"     - {text}"]
    lines += [""]
    for heading, directive, group in zip(("Functions", "Classes"), ("autofunction", "autoclass"), groups, strict=True):
        if group:
            lines += [heading, "-" * len(heading), ""]
        for name in group:
            bases = ["   :show-inheritance:"] if page == "errors" else []
            lines += [f".. {directive}:: {name}", *bases, ""]
    return "\n".join(lines)


def _first(thing):
    """The first sentence of a docstring, on one line, up to its colon or semicolon if it is long."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    text = re.split(r"(?<=[^.]\.) ", text)[0]
    if len(text) > 120:
        text = re.split(r"[:;] ", text)[0].rstrip(".") + "."
    lines = [re.sub(r":\w+:`~?([\w.]+)`", r"``\1``", text)]
    plain_signs(None, "function", "", thing, None, lines)
    return lines[0]


def plain_signs(app, what, name, thing, options, lines):
    """Docstrings as they are meant: signs of mathematics, units and colons are no marks of the language of Sphinx.

    Bars of magnitudes and stars of products are no marks, except in examples, which stay as they are; a unit that
    begins a line, as in "s.", is no number of a list; a property has no type before a colon; several attributes of
    one line are described one by one; a page of this folder is a link.
    """
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example and not line.lstrip().startswith(("*", ":")):
            parts = re.split(MARKED, line)
            parts[::2] = [re.sub(r"(?<![\\*`])([|*])(?=\S)(?!\*)", r"\\\1", part) for part in parts[::2]]
            parts[::2] = [re.sub(r"\bdocs/([\w/]+)\.md\b", r":doc:`/\1`", part) for part in parts[::2]]
            lines[k] = re.sub(r"^(\s*)([A-Za-z]\.)(?= |$)", r"\1\\\2", "".join(parts))
    if what == "property" and lines:
        lines[:0] = ["..", ""]  # an empty comment
    if "Attributes" in lines:
        lines[:] = _one_by_one(lines, lines.index("Attributes") + 2)


def _one_by_one(lines, begin):
    """Attributes ``a, b : type`` of a docstring as two of them, with the same text."""
    result, k = lines[:begin], begin
    while k < len(lines) and lines[k].strip():
        end = next((j for j in range(k + 1, len(lines)) if not lines[j].startswith(" ")), len(lines))
        names, colon, kind = lines[k].partition(" : ")
        for name in names.split(", ") if colon else [names]:
            result += [f"{name}{colon}{kind}", *lines[k + 1 : end]]
        k = end
    return result + lines[k:]


def public_arguments(app, what, name, thing, options, signature, returned):
    """Signatures without fields that begin with an underscore, and without the name of a default that is made."""
    if signature:
        signature = re.sub(r", _\w+(?:=\w+)?(?=[,)])", "", signature).replace("<factory>", "...")
    return signature, returned


def tidy_fields(app, doctree):
    """Parameters in a row that have the same text stand on one line; the n of a shape is no link to a property."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link["reftype"] == "class" and link["reftarget"].islower():
            link.replace_self(link.children)
    for body in doctree.findall(nodes.field_body):
        for items in body.findall(nodes.bullet_list):
            for before, item in itertools.pairwise(list(items)):
                names, text = _name_and_text(before)
                if text and text == _name_and_text(item)[1]:
                    item[0].insert(0, [*(name.deepcopy() for name in names), nodes.Text(", ")])
                    items.remove(before)


def _name_and_text(item):
    """Nodes of the names that an item is about, and what it says of them."""
    parts = list(item[0])
    begin = next((k for k, part in enumerate(parts) if part.astext().startswith((" (", " – "))), len(parts))
    return parts[:begin], "".join(part.astext() for part in (*parts[begin:], *item[1:]))


def finish(app, pagename, templatename, context, doctree):
    """Paths may be broken after a slash; keys of references are links; tables too wide for a phone become cards."""
    body = context.get("body", "")
    code = r'(?<=<span class="pre">)[^<]*/[^<]*(?=</span>)'
    body = re.sub(code, lambda path: path[0].replace("/", "/<wbr>"), body)
    keys = "|".join(re.findall(r"(?m)^\*\*(\w+)\*\*$", (HERE / "references.md").read_text(encoding="utf-8")))
    if pagename == "references":
        body = re.sub(rf"<strong>({keys})</strong>", r'<strong id="\1">\1</strong>', body)
    elif "pathto" in context:
        page = context["pathto"]("references")
        body = re.sub(rf"\[({keys})\]", rf'<a href="{page}#\1">[\1]</a>', body)
        body = re.sub(rf'(?<=references\.html)("[^>]*>(?:<span[^>]*>)?)({keys})\b', r"#\2\1\2", body)
    if pagename in ("cheat_sheet", "equations"):
        body = re.sub(rf"(<p>|[;,] )({keys})\b", rf'\1<a href="{page}#\2">\2</a>', body)
    if pagename != "benchmarks":
        body = re.sub(r"<table class=\"docutils.*?</table>", _cards, body, flags=re.DOTALL)
    context["body"] = body


def _cards(table):
    """A table whose longest words need more than a phone's width: each cell knows the title of its column."""
    titles = [_plain(title) for title in re.findall(r"<th\b[^>]*>(.*?)</th>", table[0], re.DOTALL)]
    rows = [re.findall(r"<td\b[^>]*>(.*?)</td>", row, re.DOTALL) for row in table[0].split("<tr")]
    rows = [[_plain(cell) for cell in row] for row in rows if row]
    if len(titles) < 3 or any(len(row) != len(titles) for row in rows):
        return table[0]
    columns = [" ".join(column).split() for column in zip(*rows, strict=True)]
    if sum(max(map(len, words), default=0) for words in columns) <= PHONE:
        return table[0]
    cells = iter(zip(itertools.cycle(titles), itertools.chain(*rows)))

    def named(cell):
        title, text = next(cells)
        return f'{cell[0]} data-title="{html.escape(title)}"' if text else cell[0]

    return re.sub(r"<td\b", named, table[0]).replace('class="docutils', 'class="cards docutils', 1)


def _plain(text):
    return html.unescape(re.sub(r"<[^>]+>", "", text.replace("<wbr>", " "))).strip()


def setup(app):
    """Called by Sphinx."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("builder-inited", write_pages)
    app.connect("source-read", turn_links)
    app.connect("doctree-read", tidy_fields)
    app.connect("html-page-context", finish)
    app.connect("autodoc-process-docstring", plain_signs, priority=400)  # before napoleon's
    app.connect("autodoc-process-signature", public_arguments)
