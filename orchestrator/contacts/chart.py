"""Draws a contact plan: who meets whom when, as text for a terminal, as SVG, or as a trace file."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from orchestrator.contacts.plan import FOREVER, ContactLink, ContactPlan

UP, PARTLY, DOWN = "█", "▌", "·"
ALWAYS = "always up"
_LEFT, _WIDTH, _ROW, _TOP = 150, 900, 18, 30


class ChartRow(NamedTuple):
    link: str
    drawn: str
    facts: str


def chart_rows(plan: ContactPlan, width: int) -> list[ChartRow]:
    """Returns a row for each link; each of ``width`` characters stands for as much of the time."""
    return [
        ChartRow(name_of(link), _drawn(link, plan.until, width), facts_of(link, plan)) for link in plan.links
    ]


def axis(until: float, width: int, marks: int = 5) -> str:
    """Returns a line of times to be put above the rows."""
    line = ""
    for mark in range(marks):
        line = line.ljust(mark * width // marks)
        line += f"|{_seconds(until * mark / marks)}"
    return line[:width].ljust(width)


def name_of(link: ContactLink) -> str:
    return f"{link.a} {'→' if link.one_way else '–'} {link.b}"


def facts_of(link: ContactLink, plan: ContactPlan) -> str:
    share = link.up_time(plan.until) / plan.until if plan.until else 0.0
    if not link.contacts:
        return "no contact in this time"
    if link.contacts[0].down >= FOREVER:
        return ALWAYS
    count, longest = len(link.contacts), link.longest_down(plan.until)
    return (
        f"{count} contact{'s' if count != 1 else ''}, up {share:.0%}, "
        f"EAP {_seconds(link.eap)}, EDP {_seconds(link.edp)}, longest gap {_seconds(longest)}"
    )


def to_csv(plan: ContactPlan) -> str:
    """Returns the plan as a trace file. Rates, latencies and directions are not in it."""
    rows = [
        f"{link.a},{link.b},{contact.up:.1f},{contact.down:.1f}\n"
        for link in plan.links
        for contact in link.contacts
    ]
    return "from,to,t_up,t_down\n" + "".join(rows)


def to_svg(plan: ContactPlan, title: str) -> str:
    """Returns a drawing: one bar for each contact, and its time where the pointer is."""
    height = _TOP + _ROW * len(plan.links) + 25
    scale = _WIDTH / plan.until if plan.until else 0.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<text x="4" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for mark in range(6):
        x = _LEFT + _WIDTH * mark / 5
        parts.append(f'<line x1="{x:g}" y1="{_TOP}" x2="{x:g}" y2="{height - 22}" stroke="#ccc"/>')
        label = _seconds(plan.until * mark / 5)
        parts.append(f'<text x="{x:g}" y="{height - 8}" text-anchor="middle" fill="#555">{label}</text>')
    for number, link in enumerate(plan.links):
        parts += _bars(link, plan.until, scale, _TOP + _ROW * number)
    return "\n".join([*parts, "</svg>\n"])


def _bars(link: ContactLink, until: float, scale: float, y: float) -> Iterator[str]:
    name = escape(name_of(link))
    yield f'<text x="{_LEFT - 6}" y="{y + 13:g}" text-anchor="end">{name}</text>'
    for contact in link.contacts:
        end = min(contact.down, until)
        x, length = _LEFT + contact.up * scale, max((end - contact.up) * scale, 0.5)
        yield (
            f'<rect x="{x:.2f}" y="{y + 3:g}" width="{length:.2f}" height="{_ROW - 6}" fill="#2a6fb0">'
            f"<title>{name}: {contact.up:g} s to {end:g} s</title></rect>"
        )


def _drawn(link: ContactLink, until: float, width: int) -> str:
    edges = [until * cell / width for cell in range(width + 1)]
    return "".join(_cell(share) for share in _shares(link, edges))


def _shares(link: ContactLink, edges: Sequence[float]) -> list[float]:
    """Returns for how much of each cell the link is up."""
    totals = [link.up_time(edge) for edge in edges]
    return [
        (later - earlier) / (end - begin) if end > begin else 0.0
        for earlier, later, begin, end in zip(totals, totals[1:], edges, edges[1:], strict=False)
    ]


def _cell(share: float) -> str:
    return UP if share > 0.75 else PARTLY if share > 0 else DOWN


def _seconds(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 600 else f"{seconds:.3g} s"
