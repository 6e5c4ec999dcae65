"""Computes from ground truth when the sources could have reached a sink: an upper bound for any routing."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from orchestrator.results.link_changes import read_link_lines

LinkChange = tuple[int, str, str, bool]
"""Time, from node, to node, whether the link is up from then on."""


class Interval(NamedTuple):
    from_ns: int
    until_ns: int
    connected: bool


def changes_in(links: Path) -> tuple[LinkChange, ...]:
    """Returns when links came up or went down; of the files asked for last, without reading them again."""
    try:
        status = links.lstat()
    except OSError:
        return ()
    return _changes_in(links, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=128)
def _changes_in(links: Path, size: int, mtime_ns: int) -> tuple[LinkChange, ...]:
    return tuple(read_changes(links))


def read_changes(links: Path) -> Iterator[LinkChange]:
    """Yields when links came up or went down, in the order of the ground truth; ignores changes of cost."""
    up: set[tuple[str, str]] = set()
    for line in read_link_lines(links):
        link = (line.src, line.dst)
        if line.up != (link in up):
            (up.add if line.up else up.discard)(link)
            yield line.t_ns, *link, line.up


def connected_intervals(
    changes: Iterable[LinkChange], sources: Sequence[str], sinks: Sequence[str], from_ns: int, until_ns: int
) -> list[Interval]:
    """Splits the time from ``from_ns`` to ``until_ns`` by whether every source has a path to some sink."""
    neighbours: dict[str, set[str]] = {}
    intervals: list[Interval] = []
    since, connected = from_ns, all(source in sinks for source in sources)
    for t_ns, at_once in groupby(sorted(changes), key=itemgetter(0)):
        if t_ns >= until_ns:
            break
        for _, src, dst, up in at_once:
            if up:
                neighbours.setdefault(src, set()).add(dst)
            else:
                neighbours.get(src, set()).discard(dst)
        now_connected = all(_reaches(neighbours, source, sinks) for source in sources)
        if now_connected != connected:
            if t_ns > since:
                intervals.append(Interval(since, t_ns, connected))
                since = t_ns
            connected = now_connected
    if until_ns > since:
        intervals.append(Interval(since, until_ns, connected))
    return intervals


def _reaches(neighbours: dict[str, set[str]], source: str, sinks: Sequence[str]) -> bool:
    seen, frontier = {source}, [source]
    while frontier:
        node = frontier.pop()
        if node in sinks:
            return True
        fresh = neighbours.get(node, set()) - seen
        seen |= fresh
        frontier.extend(fresh)
    return False
