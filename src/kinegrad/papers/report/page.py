"""A report as one HTML page that needs nothing else: figures inside it, nothing from the network, and no scripts but
those that play a motion (:mod:`kinegrad.papers.report.animation`)."""

from __future__ import annotations

import base64
import datetime
import io
import os
import platform
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape, unescape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import kinegrad

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Page", "Progress", "about", "duration", "number", "powers", "write_figures", "write_page"]

DPI = 150  # of figures
ON_PHONES = 66 / DPI  # of the width of a figure, so that its letters can be read; what is too wide is swiped
R = TypeVar("R", bound=Any)  # the report of a paper, a dataclass with `page` and `figures`
Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is

STYLE = """
:root { color-scheme: light dark; --back: #f4f5f7; --paper: #fff; --ink: #1b2733; --soft: #3b4a59; --grey: #4a5a6a;
  --line: #dde2e7; --box: #f2f6fa; --link: #1d5c96; --bar: #2f6fab; --note: #fdf3f4; --quick: #fff7e0;
  --quoted: #6a7784; --canvas: #f7f9fb; --grid: #dde3e9; --force: #7a3fa0; }
@media screen and (prefers-color-scheme: dark) {
  :root { --back: #0e0f10; --paper: #171717; --ink: #e6e9ec; --soft: #c2cad2; --grey: #a7b1bb; --line: #363c43;
    --box: #20262d; --link: #7db8ee; --bar: #4f93d1; --note: #33201f; --quick: #332b14; --quoted: #8f9aa5;
    --canvas: #1d2126; --grid: #343c45; --force: #c79bea; }
  figure img { filter: invert(.928) hue-rotate(180deg) brightness(1.25); }
  figure.map img { filter: brightness(.88); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 17px/1.6 Charter, "Bitstream Charter", Georgia, serif; }
main { max-width: 60rem; margin: 0 auto; padding: 3rem 2.5rem 4rem; background: var(--paper); min-height: 100vh; }
h1, h2, nav, table, figcaption, caption, .numbers, .about {
  font-family: system-ui, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .6rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { margin: .7rem 0; max-width: 46rem; }
main ul:not(.numbers) { max-width: 46rem; padding-left: 1.3rem; } main ul:not(.numbers) li { margin: .45rem 0; }
.lead { font-size: 1.12rem; color: var(--soft); }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.numbers { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.6rem 0; padding: 0; list-style: none; }
.numbers li { flex: 1 1 9.5rem; padding: .9rem 1rem; background: var(--box); border-left: 4px solid var(--bar); }
.numbers b { display: block; font-size: 1.45rem; line-height: 1.25; white-space: nowrap; }
.numbers span { font-size: .84rem; line-height: 1.35; color: var(--grey); display: block; }
nav { margin: 1.5rem 0; font-size: .95rem; columns: 2; } nav ol { margin: 0; padding-left: 1.4rem; }
.note { padding: .9rem 1.2rem; background: var(--note); border-left: 4px solid #d1495b; }
.note p { max-width: none; }
figure { margin: 1.6rem 0; } figure img { display: block; min-width: 100%; height: auto; }
figcaption, caption { font-size: .88rem; line-height: 1.45; color: var(--grey); text-align: left; }
figcaption { margin-top: .5rem; } caption { caption-side: bottom; padding-top: .5rem; }
figcaption b, caption b { color: var(--ink); }
.table { overflow: auto hidden; margin: 1.4rem 0; }
.table caption { position: sticky; left: 0; max-width: min(55rem, 100vw - 5rem); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; line-height: 1.4; }
th, td { padding: .38rem .8rem .38rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
tr.quoted td { color: var(--quoted); }
.about { margin-top: 3rem; font-size: .85rem; color: var(--grey); }
.about dl { display: grid; grid-template-columns: 9rem 1fr; gap: .2rem 1rem; }
.about dt { font-weight: 600; } .about dd { margin: 0; overflow-wrap: anywhere; }
sup, sub { line-height: 0; font-size: .72em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere;
  font: .8rem/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
.quick { padding: .6rem 1rem; background: var(--quick); border-left: 4px solid #e0a100; max-width: 46rem; }
figure { overflow-x: auto; }
@media (min-width: 701px) { figure img { width: 100%; } }
@media (max-width: 700px) {
  body { font-size: 16px; } main { padding: 1.4rem 1.1rem 3rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
  nav { columns: 1; } .numbers li { flex: 1 1 100%; } .numbers b { white-space: normal; }
  table { width: max-content; min-width: 100%; }
  td:not(.number), th { max-width: 16rem; } .table { -webkit-overflow-scrolling: touch; }
  figcaption, .table caption { position: sticky; left: 0; max-width: calc(100vw - 2.2rem); }
  .about dl { grid-template-columns: 1fr; }
}
@media screen and (max-width: 450px) {
  .wide figcaption::after { content: " Swipe the figure sideways to see all of it."; font-style: italic; }
}
@media print { body { background: #fff; } main { padding: 0; } figure, table { break-inside: avoid; } }
"""


class Page:
    """A page that is put together from top to bottom.

    What is called `html` may hold tags and must be escaped by the caller where it is not a constant;
    what is called `text` is escaped here.

    Parameters
    ----------
    title : str
        Text.
    lead : str
        A paragraph of HTML under it.
    quick : str
        What a quick run leaves out, HTML; it stands out at the top.

    Examples
    --------
    >>> page = Page("Pendulum", "It <b>swings</b>.")
    >>> page.section("Motion", "motion")
    >>> page.paragraph("To and fro.")
    >>> page.render().count('href="#motion"')
    1
    """

    def __init__(self, title: str, lead: str, quick: str = "") -> None:
        self.title, self.lead, self.quick = title, lead, quick
        self._sections: list[tuple[str, str]] = []
        self._top: list[str] = []
        self._body: list[str] = []
        self._first = b""

    def first_figure(self, png: bytes, label: str, caption: str, alt: str | None = None) -> None:
        """A picture at the top of the page: what it is about, before numbers and contents."""
        self._first = png
        self._top.append(_figure(png, label, caption, alt, name="first-figure"))

    def numbers(self, numbers: Iterable[tuple[str, str]]) -> None:
        """Large numbers at the top of the page, each with a line of HTML that says what it is."""
        items = (f"<li><b>{number}</b><span>{what}</span></li>" for number, what in numbers)
        self._top.append(f'<ul class="numbers">{"".join(items)}</ul>')

    def section(self, title: str, anchor: str) -> None:
        """A heading, listed in the table of contents."""
        self._sections.append((title, anchor))
        self._body.append(f'<h2 id="{escape(anchor)}">{escape(title)}</h2>')

    def paragraph(self, html: str) -> None:
        """A paragraph."""
        self._body.append(f"<p>{html}</p>")

    def listing(self, text: str) -> None:
        """Text whose lines and columns stay as they are; long lines can be scrolled."""
        self._body.append(f"<pre>{escape(text)}</pre>")

    def points(self, items: Iterable[str]) -> None:
        """A list of HTML points."""
        self._body.append(f"<ul>{''.join(f'<li>{html}</li>' for html in items)}</ul>")

    def note(self, *paragraphs: str) -> None:
        """Paragraphs of HTML that stand out."""
        self._body.append(f'<div class="note">{"".join(f"<p>{html}</p>" for html in paragraphs)}</div>')

    def figure(self, png: bytes, label: str, caption: str, alt: str | None = None, *, is_map: bool = False) -> None:
        """A picture with its label in bold and an HTML caption; `alt` is text for those who cannot see it.

        Without it, that is the caption.  The first figure is not shown again: its caption leads there.  A map, whose
        colours are values, keeps them on dark pages.
        """
        if png == self._first:
            place = '<a href="#first-figure">Shown at the top of this page.</a>'
            self._body.append(f"<figure><figcaption><b>{label}.</b> {place} {caption}</figcaption></figure>")
        else:
            self._body.append(_figure(png, label, caption, alt, is_map=is_map))

    def animation(self, html: str, *, first: bool = False) -> None:
        """A motion that plays, as :func:`kinegrad.papers.report.animation.animation` makes it; `first`: at the top."""
        (self._top if first else self._body).append(html)

    def table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        label: str,
        caption: str,
        *,
        words: int = 1,
        quoted: Sequence[int] = (),
    ) -> None:
        """A table of HTML cells; the first `words` columns hold words, the others numbers.

        `quoted` are the rows that are not ours, shown in grey.
        """

        def line(tag: str, cells: Sequence[str]) -> str:
            kinds = ["" if k < words else ' class="number"' for k in range(len(cells))]
            return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))

        grey = ' class="quoted"'
        body = "".join(f"<tr{grey if k in quoted else ''}>{line('td', row)}</tr>" for k, row in enumerate(rows))
        head = f"<thead><tr>{line('th', header)}</tr></thead>"
        caption = f"<caption><b>{label}.</b> {caption}</caption>"
        self._body.append(f'<div class="table"><table>{caption}{head}<tbody>{body}</tbody></table></div>')

    def made(self, html: str, facts: Mapping[str, str]) -> None:
        """The last section, how the page was made: a paragraph of HTML, and texts by name."""
        self.section("How this page was made", "made")
        self.paragraph(html)
        self.about(facts)

    def about(self, facts: Mapping[str, str]) -> None:
        """Texts by name."""
        items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items())
        self._body.append(f'<div class="about"><dl>{items}</dl></div>')

    def render(self) -> str:
        """The page."""
        contents = "".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for title, anchor in self._sections)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
            f'<h1>{escape(self.title)}</h1>\n<p class="lead">{self.lead}</p>\n'
            + (f'<p class="quick"><b>Quick run:</b> {self.quick}</p>\n' if self.quick else "")
            + "\n".join(self._top)
            + f'\n<nav aria-label="Contents"><ol>{contents}</ol></nav>\n'
            + "\n".join(self._body)
            + "\n</main>\n</body>\n</html>\n"
        )


def _figure(png: bytes, label: str, caption: str, alt: str | None, *, name: str = "", is_map: bool = False) -> str:
    data = base64.b64encode(png).decode("ascii")
    text = alt or f"{label}. {unescape(re.sub('<[^>]*>', '', caption))}"
    width = round(ON_PHONES * int.from_bytes(png[16:20], "big"))  # a PNG states its width there
    image = f'<img width="{width}" src="data:image/png;base64,{data}" alt="{escape(text)}">'
    kinds = " ".join(["wide"] * (width > 450) + ["map"] * is_map)
    kind = (f' id="{name}"' if name else "") + (f' class="{kinds}"' if kinds else "")
    return f"<figure{kind}>{image}<figcaption><b>{label}.</b> {caption}</figcaption></figure>"


def write_figures(folder: Path, makers: Mapping[str, Callable[[], Figure]], say: Progress) -> dict[str, bytes]:
    """Draw figures and write them into a folder, as PNG; their content by name."""
    pictures = {}
    for k, (name, make) in enumerate(makers.items()):
        say("page", k, len(makers))
        buffer = io.BytesIO()
        make().savefig(buffer, format="png", dpi=DPI)
        pictures[name] = buffer.getvalue()
        (folder / f"{name}.png").write_bytes(pictures[name])
    say("page", len(makers), len(makers))
    return pictures


def write_page(
    folder: Path,
    report: R,
    makers: Mapping[str, Callable[[], Figure]],
    page: Callable[[dict[str, bytes]], Page],
    say: Progress,
) -> R:
    """Draw the figures of a report, and write them and the page that shows them; the report with their final paths."""
    pictures = write_figures(folder, makers, say)
    (folder / report.page.name).write_text(page(pictures).render(), encoding="utf-8")
    return replace(report, figures=tuple(report.page.with_name(f"{name}.png") for name in pictures))


def about(paper: str, out: str | os.PathLike[str], quick: bool, packages: Sequence[str]) -> dict[str, str]:
    """Command, date, machine and versions."""
    command = ["kinegrad", "reproduce", paper, "--out", os.fspath(out), *(["--quick"] if quick else [])]
    versions = [f"kinegrad {kinegrad.__version__}", f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {
        "command": shlex.join(command),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} logical processors",
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(versions),
    }


def duration(seconds: float) -> str:
    """Seconds in a unit that reads well.

    >>> duration(0.00125), duration(75), duration(2.62e5)
    ('1.25 ms', '75.0 s', '3.03 days')
    """
    units = (("days", 86400, 2), ("h", 3600, 2), ("min", 60, 2), ("s", 1, 1), ("ms", 1e-3, 1), ("µs", 1e-6, 0))
    name, size = next((unit, size) for unit, size, least in units if seconds >= least * size)
    return f"{seconds / size:#.3g}".rstrip(".") + f" {name}"


def number(x: float, digits: int = 2) -> str:
    """A few digits, and a power of ten where it takes one, as HTML.

    >>> number(1.7e-11), number(0), number(0.0121), number(-197.58, 4), number(53412)
    ('1.7·10<sup>−11</sup>', '0', '0.012', '−197.6', '53\u202f000')
    """
    if x == 0 or 1e-3 <= abs(x) < 1e7:
        places = max(digits - 1 - int(np.floor(np.log10(abs(x) or 1.0))), 0 if abs(x) < 1e4 else -9)
        text = f"{round(x, places):,.{max(places, 0)}f}" if abs(x) >= 1e4 else f"{x:.{places}f}"
        return (text if x else "0").replace(",", "\u202f").replace("-", "−")
    mantissa, power = f"{x:.{digits - 1}e}".split("e")
    return f"{mantissa}·10<sup>{int(power)}</sup>".replace("-", "−")


def powers(text: str) -> str:
    """Text as HTML, with powers of ten.

    >>> powers("1.1e-05 < 5e-06, 1e-14, 0.0e+00")
    '1.1·10<sup>−5</sup> &lt; 5·10<sup>−6</sup>, 10<sup>−14</sup>, 0'
    """
    return re.sub(
        r"(\d+(?:\.\d+)?)e([+-]?)0?(\d+)",
        lambda m: f"{'' if m[1] == '1' else f'{m[1]}·'}10<sup>{'−' * (m[2] == '-')}{m[3]}</sup>",
        re.sub(r"\b0(?:\.0+)?e\+00\b", "0", escape(text)),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())
