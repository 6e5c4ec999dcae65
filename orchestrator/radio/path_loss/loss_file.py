"""Reads link losses from a CSV file, measured in a real mesh or computed elsewhere; fixed or changing over
time.

A line holds for both directions unless the file lists the other one, too. A link that is not listed does not
exist.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from orchestrator.mobility.trace_file import Place, TraceError, read_text
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.problems import Finding, did_you_mean

CSV = "A CSV file, relative to this one, that begins with the line"
FIXED = ("src", "dst", "loss_db")
TIMED = ("t", *FIXED)
MOST_CELLS = 20_000_000
"""Limit of times × nodes × nodes: the matrices must fit into memory."""


class LossChange(NamedTuple):
    """A loss that holds from ``t`` (seconds) on. Nodes are numbers; a loss of None: no link."""

    t: float
    source: int
    destination: int
    loss_db: float | None


read_reference = reader(FileReference, "losses.csv")


def path_of(file: FileReference | None) -> str | None:
    return None if file is None else str(file.path)


def file_findings(file: FileReference, nodes: tuple[str, ...], *, timed: bool) -> list[Finding]:
    try:
        read_loss_file(file, nodes, timed=timed)
    except TraceError as error:
        name = Path(error.file).name
        place = name if error.line is None else f"{name}, line {error.line}"
        return [Finding(("file",), f"{place}: {error.message}", error.hint)]
    return []


# The cells of a sweep are validated one by one, and mostly read the same file for the same nodes.
@lru_cache(maxsize=4)
def read_loss_file(file: FileReference, nodes: tuple[str, ...], *, timed: bool) -> tuple[LossChange, ...]:
    return read_losses(file.path, nodes, timed=timed)


def read_losses(file: Path, nodes: Sequence[str], *, timed: bool) -> tuple[LossChange, ...]:
    """Returns the changes in order of time, which is always 0 if the file is not ``timed``. Raises
    ``TraceError``.
    """
    rows = _rows(file, TIMED if timed else FIXED)
    numbers = {node: number for number, node in enumerate(nodes)}
    listed: list[LossChange] = []
    seen: dict[tuple[float, int, int], Place] = {}
    for place, row in rows:
        *moment, source, destination, loss = row
        t = place.number(moment[0], "t") if moment else 0.0
        if t < 0:
            raise place.error(f"t is {t:g} s, but a run begins at 0")
        if listed and t < listed[-1].t:
            raise place.error(f"time runs backwards: {t:g} s after {listed[-1].t:g} s")
        change = LossChange(t, *_link(place, source, destination, numbers), _loss(place, loss))
        earlier = seen.setdefault(change[:3], place)
        if earlier is not place:
            raise place.error(f"{source} to {destination} is listed twice (see line {earlier.line})")
        listed.append(change)
    if not listed:
        raise Place(str(file)).error("lists no link")
    moments = len({change.t for change in listed})
    if moments * len(nodes) ** 2 > MOST_CELLS:
        most = max(MOST_CELLS // len(nodes) ** 2, 1)
        raise Place(str(file)).error(f"{moments} moments: at most {most} are kept for {len(nodes)} nodes")
    return tuple(_both_ways(listed))


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[Place, list[str]]]:
    header = None
    for number, line in enumerate(read_text(file).splitlines(), 1):
        place, row = Place(str(file), number), [entry.strip() for entry in line.split(",")]
        if row == [""] or line.lstrip().startswith("#"):
            continue
        if header is None:
            header = tuple(row)
            if header != columns:
                raise place.error(f"the first line must be {','.join(columns)}", _other_model(header))
        elif len(row) != len(columns):
            raise place.error(f"{len(row)} values, expected {len(columns)}: {','.join(columns)}")
        else:
            yield place, row
    if header is None:
        raise Place(str(file)).error("the file is empty", f"it begins with {','.join(columns)}")


def _other_model(header: tuple[str, ...]) -> str:
    return {FIXED: "this is a file for model: matrix", TIMED: "this is a file for model: trace"}.get(
        header, ""
    )


def _link(place: Place, source: str, destination: str, numbers: dict[str, int]) -> tuple[int, int]:
    for name in (source, destination):
        if name not in numbers:
            raise place.error(f'there is no node "{name[:40]}"', did_you_mean(name, numbers))
    if source == destination:
        raise place.error(f"{source} has no link to itself")
    return numbers[source], numbers[destination]


def _loss(place: Place, text: str) -> float | None:
    if text.lower() == "inf":
        return None
    loss = place.number(text, "loss_db")
    if loss < 0:
        raise place.error(f"loss_db is {loss:g}: a link loses 0 dB or more (inf: no link)")
    return loss


def _both_ways(listed: list[LossChange]) -> Iterator[LossChange]:
    known = {(change.source, change.destination) for change in listed}
    for change in listed:
        yield change
        if (change.destination, change.source) not in known:
            yield change._replace(source=change.destination, destination=change.source)
