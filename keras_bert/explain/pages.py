"""Pages and pictures: HTML that needs no network, in light and dark, and figures for papers."""

import hashlib
import io
import re
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

from keras_bert.arguments import needed
from keras_bert.atomic import write_file

# Characters that control a terminal, have no glyph, or cannot be encoded as UTF-8: control
# characters other than tab and line feed, and unpaired surrogates.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
VIEWS = Path(__file__).with_name("views")  # scripts and styles; the server has those of attention
BLUE, ORANGE = "#0072b2", "#d55e00"  # told apart with every kind of colour vision (Wong 2011)
_STYLE = """
.kb { --ink: #1a1e23; --soft: #5a6572; --line: #dde2e8; --ground: #ffffff; --card: #f5f7f9;
  --good: #0072b2; --bad: #d55e00; --heat-most: 55%; color-scheme: light dark;
  box-sizing: border-box; color: var(--ink); background: var(--ground); overflow-wrap: anywhere;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
@media (prefers-color-scheme: dark) { .kb { --ink: #e7eaee; --soft: #9ba6b2; --line: #333a42;
  --ground: #14171b; --card: #1d2127; --good: #56b4e9; --bad: #ff9a52;
  --heat-most: 42%; } }
body.kb { margin: 0; padding: clamp(1rem, 4vw, 3rem); }
body.kb > main { max-width: 68rem; margin: 0 auto; }
div.kb { padding: .75rem 1rem; border-radius: 8px; }
.kb h1 { font-size: 1.65rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
.kb h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
.kb h3 { font-size: .95rem; margin: 1.25rem 0 .5rem; }
.kb p { margin: .25rem 0 .75rem; max-width: 46rem; }
.kb .soft { color: var(--soft); font-size: .875rem; }
.kb .text { font-size: 1.05rem; line-height: 2; margin: .35rem 0; white-space: pre-wrap; }
.kb mark { color: var(--ink); border-radius: 4px; padding: .12em .1em; }
.kb mark.p { background: color-mix(in srgb, var(--good)
  calc(var(--s) * var(--heat-most)), transparent); }
.kb mark.n { background: color-mix(in srgb, var(--bad)
  calc(var(--s) * var(--heat-most)), transparent); }
.kb .scroll { overflow-x: auto; }
.kb table { border-collapse: collapse; font-size: .9rem; }
.kb table.wide { width: 100%; }
.kb th { color: var(--soft); font-weight: 600; font-size: .8rem; overflow-wrap: normal; }
.kb th, .kb td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0; }
.kb td { overflow-wrap: break-word; }
.kb td.long { min-width: 13rem; }
.kb tbody tr { border-top: 1px solid var(--line); }
.kb .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.kb .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  gap: .75rem; margin: 1.25rem 0; }
.kb .card { background: var(--card); border-radius: 10px; padding: .75rem 1rem; }
.kb .card b { display: block; font-size: 1.45rem; line-height: 1.3; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.kb .card span { color: var(--soft); font-size: .8rem; }
.kb .bar { display: inline-block; height: .6rem; border-radius: 3px; background: var(--good);
  min-width: 1px; vertical-align: middle; }
.kb .bar.bad { background: var(--bad); }
.kb svg { max-width: 100%; height: auto; display: block; }
.kb svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.kb .dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; }
.kb circle.chosen { stroke: var(--ink); stroke-width: 3; fill-opacity: 1; }
.kb circle:focus { outline: none; }
.kb [role=status] { min-height: 3.1em; }
.kb input, .kb select, .kb button { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: .3rem .6rem; max-width: 100%; }
.kb button[aria-pressed=true] { border-color: var(--good); color: var(--good); }
.kb :focus-visible { outline: 2px solid var(--good); outline-offset: 1px; }
"""


def shown(text: str) -> str:
    """A text with characters that are not printed escaped as in Python's string literals."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def html_text(value) -> str:
    """A value as text in HTML, never as HTML; bytes are read as UTF-8."""
    value = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return escape(shown(value))


class Shown(ABC):
    """A result that shows itself: in a notebook, and as a page of its own."""

    @abstractmethod
    def page(self) -> tuple[str, str]:
        """The title of its page, plain text, and the body below it, HTML."""

    def _repr_html_(self) -> str:
        return f'<div class="kb"><style>{_STYLE}</style>{self.page()[1]}</div>'

    def to_html(self, path: str | Path, **options) -> Path:
        """Writes the page to a file: self-contained, and atomically.

        Args:
            path: the file to create or replace. A link is replaced, not followed.
            **options: as `page`.

        Returns:
            The path.
        """
        title, body = self.page(**options)
        title = html_text(title)
        page = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head>"
            f'<body class="kb"><main>\n<h1>{title}</h1>\n{body}\n</main></body></html>\n'
        )
        return _written(path, page.encode("utf-8", "replace"))


class Drawn(Shown):
    """A result with a picture for papers too."""

    @abstractmethod
    def picture(self):
        """The picture, a matplotlib figure; see `figure`."""

    def to_png(self, path: str | Path, **options) -> Path:
        """As `Shown.to_html`, for the picture; options are those of `picture`."""
        return write_png(path, self.picture(**options))


def run_in(body: str, script: str) -> str:
    """HTML with a script of its own, as notebooks run it too.

    In the script `box` is the element around the body. It holds no "<" but its own, so that no text
    of a user ends it.
    """
    name = "kb" + hashlib.sha256((body + script).encode()).hexdigest()[:12]
    return (
        f'<div id="{name}">{body}</div><script>(() => {{\n'
        f'const box = document.getElementById("{name}");\n{script}\n}})()</script>'
    )


def cards(figures: dict[str, str]) -> str:
    """A row of figures with their names."""
    made = (
        f'<div class="card"><b>{html_text(value)}</b><span>{html_text(name)}</span></div>'
        for name, value in figures.items()
    )
    return f'<div class="cards">{"".join(made)}</div>'


def table(
    titles: list[str],
    rows: list[list[str]],
    numbers: set[int],
    wide: bool = True,
    long: int | None = None,
) -> str:
    """A table of HTML cells under plain titles.

    Columns of `numbers` are aligned to the right; a column `long` of texts stays readable on a
    small screen; a `wide` table fills the page.
    """
    kinds = ['class="number"' if i in numbers else "" for i in range(len(titles))]
    if long is not None:
        kinds[long] = 'class="long"'
    kinds = [f" {kind}" if kind else "" for kind in kinds]

    def row(cells, tag):
        made = (f"<{tag}{k}>{c}</{tag}>" for k, c in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    head = row([html_text(title) for title in titles], "th")
    body = "\n".join(row(cells, "td") for cells in rows)
    return (
        f'<div class="scroll"><table{" class=wide" if wide else ""}><thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def figure(width: float, height: float):
    """A matplotlib figure of this size in inches.

    Not pyplot's, which would initialize a window system and keep every figure.
    """
    with needed("a picture", "matplotlib", "'keras3-bert[plots]'"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def drawn(name, longest: int = 30) -> str:
    """A name as text in a figure, where matplotlib reads text between dollar signs as a formula."""
    name = str(name)
    name = name if len(name) <= longest else f"{name[:longest]}..."
    return shown(name).replace("$", r"\$")


def write_png(path: str | Path, made) -> Path:
    """Writes a figure as PNG, as `Shown.to_html` writes a page."""
    content = io.BytesIO()
    made.savefig(content, format="png", dpi=150)
    return _written(path, content.getvalue())


def _written(path: str | Path, content: bytes) -> Path:
    path = Path(path)
    if path.is_symlink():  # it would be written through
        path.unlink()
    write_file(path, content)
    return path
