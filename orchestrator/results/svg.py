"""Renders Matplotlib figures as inline SVG: the same data gives the same text, and colours come from the
page.

Figures are drawn in fixed colours that stand for CSS variables, so one drawing serves light and dark mode.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
from cycler import cycler

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb, to_rgba_array
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from orchestrator.results.colours import BAD, FAINT, GOOD, GRID, INK, PAPER, SERIES

WIDTH = 6.6
MOST_ROWS = 16

_VARIABLES = {
    **{colour: f"var(--series-{index})" for index, colour in enumerate(SERIES)},
    INK: "var(--ink)",
    GRID: "var(--grid)",
    FAINT: "var(--faint)",
    PAPER: "var(--paper)",
    GOOD: "var(--good)",
    BAD: "var(--bad)",
}

# As in report.css for light pages.
_LIGHT = {
    INK: "#1c2430",
    GRID: "#e4e8ee",
    FAINT: "#c9d0da",
    PAPER: "#ffffff",
    GOOD: "#00805c",
    BAD: "#c7502a",
}
PICTURE_DPI = 150

_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=SERIES),
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a label is text, not mathematics
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


@dataclass(frozen=True)
class Figure:
    """``alternative`` describes the drawing in words."""

    name: str
    title: str
    alternative: str
    markup: str
    picture: bytes = b""
    """The drawing as PNG; empty unless it was made ``with_pictures``."""


_wants_pictures: ContextVar[bool] = ContextVar("wants_pictures", default=False)


@contextmanager
def with_pictures() -> Iterator[None]:
    """Figures that are drawn meanwhile are made as PNG, too."""
    before = _wants_pictures.set(True)
    try:
        yield
    finally:
        _wants_pictures.reset(before)


@contextmanager
def canvas(rows: int = 1, columns: int = 1, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Opens a matplotlib figure and its axes (always a two-dimensional array), and closes it at the end."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = plt.subplots(rows, columns, squeeze=False, **options)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def logarithmic_x(axis: Any, span: float) -> None:
    """Makes the axis logarithmic, with plain numbers as ticks, not in TeX. ``span``: the largest over the
    smallest.
    """
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if span < 1000 else (1.0,)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def finish(drawing: Any, name: str, title: str, alternative: str) -> Figure:
    with matplotlib.rc_context({"svg.hashsalt": name}):
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawing.savefig(buffer, format="svg", metadata=nothing)
    picture = _painted(drawing) if _wants_pictures.get() else b""
    return Figure(name, title, alternative, _inline(buffer.getvalue(), name, alternative), picture)


def _painted(drawing: Any) -> bytes:
    """Returns the drawing as PNG, in the colours of a light page. It cannot be used for a page afterwards."""
    for artist in drawing.findobj():
        for kind in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = getattr(artist, f"get_{kind}", None), getattr(artist, f"set_{kind}", None)
            if get is not None and put is not None and (colours := _light(get())) is not None:
                put(colours)
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=PICTURE_DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def _light(colours: Any) -> Any:
    """Returns the colours with those of a page in place of those that stand for them; None: none does."""
    try:
        rows = to_rgba_array(colours)
    except (TypeError, ValueError):
        return None
    changed = False
    for row in rows:
        light = _LIGHT.get(to_hex(row))
        if light is not None and row[3]:
            row[:3] = to_rgb(light)
            changed = True
    if not changed:
        return None
    return rows if len(rows) > 1 else tuple(rows[0])


def _inline(document: str, name: str, alternative: str) -> str:
    svg = document[document.index("<svg") :].strip()
    # Several drawings share a page, so their ids must differ.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    head = re.match(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>', svg)
    assert head is not None
    label = escape(alternative, quote=True)
    return f'<svg viewBox="{head[1]}" role="img" aria-label="{label}">{svg[head.end() :]}'
