"""Which nodes an agent says it reaches: those that routing knows a way to and the kernel has a route to."""

import asyncio
from pathlib import Path

import pytest

from node_agent.agent.costs import AgentCosts
from node_agent.linkstate import olsrd_jsoninfo
from node_agent.linkstate.kernel import KernelReach
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.reader import Reading
from tests.unit.captured import captured
from tests.unit.node_agent.linkstate.test_linkstate_other_daemons import TITLES, route

NAMES = {f"10.0.0.{number}": f"n{number}" for number in range(1, 6)}
HOSTS = {node: host for host, node in NAMES.items()}


class Captured:
    """What olsrd told of a line of five nodes when it counted hops."""

    async def read(self) -> Reading:
        topology = captured("olsrd/variant_rfc/node1_json_topology.json")
        return olsrd_jsoninfo.parse(topology, b'{"mid": []}', b'{"interfaces": []}')


def reaches(table: Path | None) -> set[str]:
    def routed(nodes: object) -> set[str]:
        assert table is not None
        return {NAMES[host] for host in KernelReach("10.0.0.1", table).among(HOSTS.values())}

    link_state = MeasuredLinkState(Captured(), NAMES, lambda: 0, "hops")
    costs = AgentCosts("n1", link_state, {}, None if table is None else routed)
    return set(asyncio.run(costs.ways()))


def test_links_that_a_daemon_knows_are_no_routes_yet(tmp_path: Path) -> None:
    """At LinkQualityLevel 0 olsrd knows the whole network, and has routes to its neighbours only."""
    table = tmp_path / "route"
    assert reaches(None) == {"n2", "n3", "n4", "n5"}
    table.write_text(TITLES + route("10.0.0.2", "10.0.0.2", 2))
    assert reaches(table) == {"n2"}
    table.write_text(TITLES + "".join(route(host, "10.0.0.2", 2) for host in NAMES))
    assert reaches(table) == {"n2", "n3", "n4", "n5"}


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (route("10.0.0.3", "10.0.0.2", 2), True),
        (route("10.0.0.3", "0.0.0.0", 0, flags=0x205), False),  # unreachable
        (route("10.0.0.3", "10.0.0.2", 2, flags=6), False),  # not up
        (route("0.0.0.0", "10.0.0.9", 0, flags=3, mask="0.0.0.0"), False),
        # The own network: who is in it need not be near.
        (route("10.0.0.0", "0.0.0.0", 0, flags=1, mask="255.255.255.0"), False),
        # Another interface's network, which daemons leave alone.
        (route("10.0.0.2", "0.0.0.0", 0, flags=1, mask="255.255.255.254"), True),
    ],
)
def test_what_counts_as_a_route(tmp_path: Path, row: str, counts: bool) -> None:
    table = tmp_path / "route"
    table.write_text(TITLES + row)
    assert ("10.0.0.3" in KernelReach("10.0.0.1", table).among(["10.0.0.3", "10.0.0.9"])) == counts


def test_a_machine_that_shows_no_routes_is_believed(tmp_path: Path) -> None:
    assert KernelReach("10.0.0.1", tmp_path / "absent").among(["10.0.0.3"]) == {"10.0.0.3"}
