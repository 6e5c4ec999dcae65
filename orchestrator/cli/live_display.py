"""A run that is watched, as text: a block of a few lines for terminals, one line for logs."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.live.summary import AppSummary, Stop, Summary

MOST_TROUBLES = 5
MOST_DOUBTS = 4
DIED = "died: its process is gone; rove down cleans up"
_ENDLESS = 1_000_000
_STATES = {"crashed": "red", "failed": "red", "unreachable": "red", "silent": "yellow"}


class _Layout(NamedTuple):
    width: int
    whole: bool

    def line(self, text: Text) -> Text:
        if not self.whole:
            text.no_wrap, text.overflow = True, "ellipsis"
        return text

    def paragraph(self, text: Text, by: int) -> Text:
        """Returns at most two lines unless all is shown: a display must not jump with a reason's length."""
        room = max(20, self.width - by)
        if not self.whole and cell_len(text.plain) > 2 * room - 4:
            text.truncate(2 * room - 4, overflow="ellipsis")
        lines = list(text.wrap(Console(width=room), room))
        return self.line(
            Text("\n").join(Text(" " * by) + line for line in lines[: None if self.whole else 2])
        )


class RunBlock:
    """Shows a summary in as many columns as there are; long reasons wrap to a second line and are cut.

    ``whole``: nothing is cut or left out, and only terminals have a width.
    """

    def __init__(self, summary: Summary, head: str = "", with_bar: bool = True, whole: bool = False) -> None:
        self._summary = summary
        self._head = head
        self._with_bar = with_bar
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        endless = self._whole and not options.is_terminal
        layout = _Layout(_ENDLESS if endless else options.max_width, self._whole)
        if self._head:
            yield layout.line(Text(self._head, style="bold"))
        if self._with_bar:
            yield _bar(self._summary)
        for app in self._summary.apps:
            yield from _app_lines(app, self._summary, layout)
        yield from _trouble_lines(self._summary, layout)


def plain_line(summary: Summary) -> str:
    """Returns goodput, latency and loss in one line."""
    parts = [f"{summary.now:.0f} s", *([DIED] if summary.died else [])]
    for app in summary.apps:
        figures = ", ".join(_figures(app)) or "nothing yet"
        parts.append(f"{app.name}: {figures}" if len(summary.apps) > 1 else figures)
    if summary.troubles:
        first = islice(summary.troubles.items(), MOST_TROUBLES)
        parts.append(", ".join(f"{node} {state}" for node, (state, _) in first))
    if summary.doubts and not summary.verdict:
        more = f" (and {len(summary.doubts) - 1} more)" if len(summary.doubts) > 1 else ""
        parts.append(f"doubt: {summary.doubts[0]}{more}")
    return "; ".join(parts)


def path_text(path: Sequence[Stop]) -> Text:
    """Returns ``camera/0 n03 → detect/1 n07 → …``; what is broken is marked in words as well as in colour."""
    text = Text()
    for number, stop in enumerate(path):
        if number:
            text.append(" → ", "dim")
        if stop.replica is None:
            text.append(f"no way to {stop.operator}", "red")
            continue
        text.append(stop.replica, "bold" if not stop.state else _STATES.get(stop.state, ""))
        text.append(f" {stop.node}", "dim")
        if stop.state:
            text.append(f" ({stop.state})", _STATES.get(stop.state, ""))
    return text


def _bar(summary: Summary) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    done = " done" if summary.state == "finished" else ""
    over = "ended" if summary.verdict else "died" if summary.died else ""
    phase = over or f"{summary.phase or 'waiting'}{done}"
    share = summary.progress
    bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None and not over)
    percent = f"{share:.0%} " if share is not None else ""
    grid.add_row(
        Text(phase), bar if share is not None else Text(""), Text(f"{percent}at {summary.now:.1f} s")
    )
    return grid


def _app_lines(app: AppSummary, summary: Summary, layout: _Layout) -> Iterator[Text]:
    yield layout.line(Text.assemble((f"{app.name}  ", "bold"), "  ".join(_figures(app)) or "nothing yet"))
    for path in app.paths:
        yield layout.paragraph(path_text(path), 2)
    if app.more_paths:
        yield Text(f"  and {app.more_paths} more ways")
    if app.switch is not None:
        switch, ago = app.switch, max(0.0, summary.now - app.switch.t)
        new, old = switch.new or "none", switch.old or "none"
        text = f"switched {ago:.1f} s ago: {switch.replica} to {new}, was {old}. {switch.why}"
        yield layout.paragraph(Text(text), 2)


def _figures(app: AppSummary) -> list[str]:
    found = []
    if app.detections is not None:
        found.append(f"{app.detections} detections")
        if app.worst is not None:
            found.append(f"at most {_duration(app.worst)} late")
        if app.late:
            found.append(f"{app.late} later than promised")
    elif app.situations is not None:
        found.append(f"{app.situations:,} situation{'' if app.situations == 1 else 's'}")
        if app.worst is not None:
            found.append(f"at most {_duration(app.worst)} late")
        found.append(f"{app.moves:,} switch{'' if app.moves == 1 else 'es'}")
    elif app.flows:
        if app.goodput is not None:
            found.append(f"{_bits(app.goodput)} of {_bits(app.offered or 0.0)} received")
        if app.p50 is not None:
            found.append(f"delay {_duration(app.p50)}")
    elif app.goodput is not None:
        found.append(f"goodput {app.goodput:.1f}/s")
        if app.p50 is not None and app.p95 is not None:
            found.append(f"latency p50 {_duration(app.p50)} p95 {_duration(app.p95)}")
    if app.loss is not None:
        found.append(f"loss {app.loss:.1%}")
    elif app.goodput is not None and not app.flows:
        found.append("loss –")
    if app.waiting:
        found.append(f"{app.waiting:,} waiting")
    if app.ended:
        found.append(f"{app.ended} of {app.flows} flows ended")
    return found


def _trouble_lines(summary: Summary, layout: _Layout) -> Iterator[Text]:
    most_troubles = len(summary.troubles) if layout.whole else MOST_TROUBLES
    most_doubts = len(summary.doubts) if layout.whole else MOST_DOUBTS
    for node, (state, why) in islice(summary.troubles.items(), most_troubles):
        text = Text()
        text.append(f"{node} {state}", _STATES.get(state, "yellow"))
        text.append(f": {why}" if why else "")
        yield layout.paragraph(text, 0)
    if (more := len(summary.troubles) - most_troubles) > 0:
        yield Text(f"and {more} more nodes")
    if summary.verdict:
        style = "green" if summary.verdict == "valid" else "red"
        yield Text.assemble("verdict ", (summary.verdict, style))
    elif summary.died:
        yield layout.line(Text(DIED, style="red"))
    elif not summary.doubts:
        yield Text("no doubts so far", style="dim")
    for doubt in summary.doubts[:most_doubts]:
        yield layout.paragraph(Text(("" if summary.verdict else "doubt: ") + doubt, style="yellow"), 0)
    if (more := len(summary.doubts) - most_doubts) > 0:
        yield Text(f"and {more} more")


def _duration(seconds: float) -> str:
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.0f} ms" if abs(seconds) >= 0.01 else f"{seconds * 1e3:.1f} ms"


def _bits(rate: float) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f} {unit}"
    return f"{rate:.0f} bit/s"
