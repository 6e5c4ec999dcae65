"""Who may connect to a replica, and what it may say, by the deployment plan."""

import asyncio

import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.wire.admission import PlanAdmission, connections_between
from node_agent.apps.dataflow.wire.messages import (
    PROTOCOL_VERSION,
    Acknowledgement,
    Ask,
    Data,
    Header,
    PassedOn,
    Settled,
)
from node_agent.transport.greeting import hello_frame
from node_agent.transport.half_open import PER_PEER, HalfOpen
from node_agent.transport.messages import Hello
from tests.unit.connection_ends import (
    HELLO,
    NONCE,
    credentials_of,
    ends,
    expect_closed,
    greeted,
    item,
    raw,
    run,
)


def test_a_sibling_may_pass_something_on() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        await greeted(network, Hello(PROTOCOL_VERSION, "detect/1", "detect/0"))
        await asyncio.sleep(1)
        assert not receiver.refused
        await receiver.server.close()

    run(scenario())


def test_a_node_speaks_for_its_own_replicas_only() -> None:
    """A member of the run that is taken over cannot send as a replica of another node."""

    async def scenario() -> None:
        network, receiver, _ = await ends()
        own = credentials_of("down").to("down", "connection")
        await expect_closed(await raw(network, hello_frame(own, HELLO, NONCE)))
        assert receiver.refused == {("down", "sender"): 1}
        assert receiver.taken == []
        await receiver.server.close()

    run(scenario())


SIBLING = Hello(PROTOCOL_VERSION, "detect/1", "detect/0")


@pytest.mark.parametrize(
    ("hello", "header"),
    [
        (HELLO, Data([StreamTuple("nobody/0", 1, 0, 0, 0)])),
        (HELLO, Data([item(1), StreamTuple("nobody/0", 2, 1, 0, 0)])),
        (HELLO, Data([StreamTuple("camera/0", 1, 1, 0, 0)])),
        (HELLO, Data([StreamTuple("camera/0", 0, 0, 0, 0)])),
        (HELLO, Data([StreamTuple("camera/0", 2, 1, 0, 0, (b"x",), last=True)])),
        (HELLO, Data([item(1)], passed_on=PassedOn("camera/0"))),
        (HELLO, Settled({}, [item(1)])),
        (HELLO, Settled({}, [StreamTuple("nobody/0", 1, 0, 0, 0, last=True)])),
        (HELLO, Acknowledgement({"camera/0": [(1, 2)]})),
        (HELLO, Ask()),
        (SIBLING, Data([item(1)])),
        (SIBLING, Data([item(1)], passed_on=PassedOn("detect/0"))),
        (SIBLING, Data([item(1)], passed_on=PassedOn("camera/0", [(2, 1)]))),
        (SIBLING, Data([item(1)], passed_on=PassedOn("camera/0", [(1, 1)] * 2000))),
        (SIBLING, Settled({"camera/0": 3})),
    ],
)
def test_a_member_that_says_what_it_cannot_is_cut_off(hello: Hello, header: Header) -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        connection, stream = await greeted(network, hello)
        connection.post(header)
        await expect_closed(stream)  # type: ignore[arg-type]
        await sender.send(item(1))
        await asyncio.sleep(1)
        assert receiver.refused == {("up", "impossible"): 1}
        assert receiver.taken == [1] and receiver.messages == [] and receiver.failures == []
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_as_many_greetings_at_once_as_the_plan_has_links_are_no_crowd() -> None:
    names = [f"{kind}{i}" for i in range(12) for kind in ("s", "k")]
    specs = [
        OperatorSpec(n, "synthetic_source") if n[0] == "s" else OperatorSpec(n, "sink", (f"s{n[1:]}",))
        for n in names
    ]
    replicas = tuple(Replica(n, 0, "up" if n[0] == "s" else "down") for n in names)
    plan = DeploymentPlan(Query("q", tuple(specs)), replicas)
    assert connections_between(plan, "up", "down") == 12 and connections_between(plan, "down", "up") == 0
    peers = {"up": "host", "other": "host"}
    half_open = HalfOpen(peers, PlanAdmission(plan, "down").expected, lambda host: None)
    assert half_open._of_host == {"host": 12 + PER_PEER}
