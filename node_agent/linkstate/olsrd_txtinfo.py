"""Reads olsrd's txtinfo plug-in (port 2006), or our own daemon, which answers alike.

The names asked for (/top, /mid, /int) are exact in olsrd 0.9, and prefixes of the names in 0.6. The first 0.6
answers unknown names with all its tables. Columns are found by their titles.
"""

from collections.abc import Mapping
from typing import NamedTuple

from node_agent.linkstate.ask import get, in_turn
from node_agent.linkstate.olsrd import BROKEN, Link, Tables, reading
from node_agent.linkstate.reader import Garbage, Reading, Rejected, number
from node_agent.linkstate.source import OLSR_METRICS, asking

SOURCE = "olsrd_txtinfo"
PORT = 2006


class Table(NamedTuple):
    titles: list[str]
    rows: list[list[str]]

    def dicts(self) -> list[dict[str, str]]:
        return [dict(zip(self.titles, row, strict=False)) for row in self.rows]


class TxtinfoReader:
    def __init__(self, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._host = host
        self._port = port

    async def read(self) -> Reading:
        topology, mid, interfaces = await in_turn(self._get("/top"), self._get("/mid"), self._get("/int"))
        return parse(topology, mid, interfaces)

    async def _get(self, path: str) -> bytes:
        return await get(self._host, self._port, path)


def parse(topology: bytes, mid: bytes, interfaces: bytes) -> Reading:
    """Returns the reading. The first 0.6 has no table of interfaces; only nodes with several need it."""
    own = [row.get("Src-Adress", "") for row in _tables(interfaces).get("Interfaces", Table([], [])).dicts()]
    return reading(
        Tables(
            [_link(row) for row in _table(topology, "Topology").dicts()],
            dict(pair for row in _aliases(_table(mid, "MID")) for pair in row),
            [address for address in own if address],
        ),
        SOURCE,
    )


def _table(answer: bytes, name: str) -> Table:
    found = _tables(answer).get(name)
    if found is None:
        raise Garbage(f"the answer has no table {name}")
    return found


def _tables(answer: bytes) -> Mapping[str, Table]:
    """Returns tables by name; each ends with an empty line. The first of a name counts: /all has two
    Neighbors.
    """
    try:
        text = answer.decode("ascii")
    except UnicodeDecodeError as error:
        raise Garbage("this is not the text that txtinfo writes") from error
    if text.startswith("error:"):
        raise Rejected(f"the answer is {text.strip()[:80]!r}")
    tables: dict[str, Table] = {}
    for block in text.replace("\r\n", "\n").split("Table: ")[1:]:
        table, end, _ = block.partition("\n\n")
        if not end:
            raise Garbage("the answer ends within a table")
        name, *lines = table.split("\n")
        if not lines:
            raise Garbage(f"table {name[:40]!r} has no titles")
        titles, *rows = (line.rstrip("\t").split("\t") for line in lines)
        tables.setdefault(name, Table(titles, rows))
    return tables


def _link(row: Mapping[str, str]) -> Link:
    try:
        quality, other = number(row["LQ"], "LQ"), number(row["NLQ"], "NLQ")
        cost = BROKEN if row["Cost"] == "INFINITE" else number(row["Cost"], "cost")
        return Link(row["Last hop IP"], row["Dest. IP"], cost, quality * other)
    except KeyError as error:
        raise Garbage(f"the topology has a row without {error}") from None


def _aliases(table: Table) -> list[list[tuple[str, str]]]:
    """Returns by row each alias with its main address. The main address comes first; then the aliases,
    between tabs (0.9) or semicolons (0.6), there perhaps with a time.
    """
    timed = table.titles[-1] == "VTime"
    rows = [[cell for cells in row for cell in cells.split(";") if cell] for row in table.rows]
    return [[(alias, row[0]) for alias in (row[1:-1] if timed else row[1:])] for row in rows]


READER = asking("olsrd's txtinfo plug-in", OLSR_METRICS, TxtinfoReader, PORT)
