"""Recomputes from ground truth when the sources of an application could reach a sink."""

from itertools import groupby

from tests.independent.plan import App, Query
from tests.independent.reading import Run

Interval = tuple[int, int, bool]


def ends_of(app: App) -> tuple[list[str], list[str]]:
    if isinstance(app, Query):
        return app.nodes(app.sources), app.nodes(app.sinks)
    return [flow.source for flow in app.values()], [flow.sink for flow in app.values()]


def intervals(run: Run, app: App) -> list[Interval] | None:
    """Returns from when to when all sources could reach a sink, or not; None if the links are not known."""
    links = run.truth("links")
    if links is None:
        return None
    sources, sinks = ends_of(app)
    up: set[tuple[str, str]] = set()
    states = [(run.first_ns, all(source in sinks for source in sources))]
    for t_ns, changes in groupby(sorted(links, key=lambda each: each["t_ns"]), key=lambda each: each["t_ns"]):
        if t_ns >= run.ended_ns:
            break
        for each in changes:
            (up.add if each["up"] else up.discard)((each["src"], each["dst"]))
        connected = all(_reached(up, source) & set(sinks) for source in sources)
        states.append((max(t_ns, run.first_ns), connected))
    found: list[Interval] = []
    for (begin, connected), (end, _) in zip(states, [*states[1:], (run.ended_ns, False)], strict=True):
        if begin == end:
            continue
        if found and found[-1][2] == connected:
            found[-1] = (found[-1][0], end, connected)
        else:
            found.append((begin, end, connected))
    return found


def _reached(up: set[tuple[str, str]], source: str) -> set[str]:
    found = {source}
    while more := {b for a, b in up if a in found} - found:
        found |= more
    return found


def connected_ratio(run: Run, found: list[Interval] | None) -> float | None:
    if found is None:
        return None
    inside = (min(end, run.until_ns) - max(begin, run.from_ns) for begin, end, is_up in found if is_up)
    return sum(max(0, each) for each in inside) / (run.until_ns - run.from_ns)
