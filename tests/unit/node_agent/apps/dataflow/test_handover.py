"""Tuples that are passed on to a sibling, and those that are needed elsewhere before they have gone."""

import asyncio
from collections.abc import Sequence

from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.best_effort.replica import KEEP_S, ReplicaRuntime
from node_agent.apps.dataflow.delivery.handover import EXPIRES, Handover, HandoverCallbacks, Part
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context
from node_agent.apps.dataflow.operators.synthetic import WorkParams
from node_agent.apps.dataflow.windows.assembly import assembler_for
from node_agent.apps.dataflow.windows.units import Gaps
from node_agent.apps.dataflow.wire.codec import OnLost, OnMessage, TupleConnection
from node_agent.apps.dataflow.wire.messages import Batch
from node_agent.ports import Address
from node_agent.transport.messages import Pair
from tests.unit.connection_ends import AT, Receiver, Sender, ends, item, run
from tests.unit.networks import DATA_PORT, RadioNetwork

NOWHERE = Address("stranger", DATA_PORT)
"""A node on which nobody listens."""
SIBLINGS = Pair("detect/1", "detect/0")


class Passing:
    """From node "up" to "detect/0", which listens, or to anybody else, who does not."""

    def __init__(self, network: RadioNetwork) -> None:
        self.taken: list[tuple[str, int]] = []
        self.lost: list[tuple[int, str]] = []
        self.back: list[Part] = []
        self._port = network.port("up")
        callbacks = HandoverCallbacks(self._take, self._lose, self.back.extend)
        self.handover = Handover("camera/0", lambda to, sender, batch: False, self._open, callbacks)
        self._running = asyncio.create_task(self.handover.run())

    def put(self, sibling: str, *taus: int) -> None:
        self.handover.put(sibling, "camera/0", [item(tau) for tau in taus], [(taus[0], taus[0])])

    async def stop(self) -> None:
        self._running.cancel()
        await self.handover.close()

    def _open(self, pair: Pair, on_message: OnMessage, on_lost: OnLost) -> TupleConnection:
        return Sender(self._port, AT if pair.receiver == "detect/0" else NOWHERE, pair=SIBLINGS).connection

    def _take(self, sibling: str, items: Sequence[StreamTuple]) -> None:
        self.taken += [(sibling, each.tau) for each in items]

    def _lose(self, items: Sequence[StreamTuple], reason: str) -> None:
        self.lost += [(each.tau, reason) for each in items]


async def passing() -> tuple[Receiver, Passing]:
    network, receiver, _ = await ends()
    return receiver, Passing(network)


def test_what_has_not_gone_comes_back_when_it_is_needed_here_after_all() -> None:
    async def scenario() -> None:
        _, passing_on = await passing()
        passing_on.put("detect/1", 1, 2)
        passing_on.put("detect/1", 3)
        await asyncio.sleep(1)
        passing_on.handover.retarget(None)
        await asyncio.sleep(2 * EXPIRES)
        assert sorted(each.tau for part in passing_on.back for each in part.items) == [1, 2, 3]
        assert {first for part in passing_on.back for first, _ in part.made} == {1, 3}
        assert (passing_on.taken, passing_on.lost, passing_on.handover.waiting) == ([], [], 0)
        await passing_on.stop()

    run(scenario())


def test_what_has_not_gone_goes_to_the_sibling_that_is_now_in_use() -> None:
    async def scenario() -> None:
        receiver, passing_on = await passing()
        passing_on.put("detect/1", 1, 2)
        passing_on.put("detect/1", 3)
        await asyncio.sleep(1)
        passing_on.handover.retarget("detect/0")
        passing_on.put("detect/0", 4)
        await asyncio.sleep(1)
        assert sorted(receiver.taken) == [1, 2, 3, 4]
        assert sorted(passing_on.taken) == [("detect/0", tau) for tau in (1, 2, 3, 4)]
        assert [batch.made for batch in receiver.batches if batch.items[0].tau == 1] == [[(1, 1)]]
        assert (passing_on.back, passing_on.lost) == ([], [])
        await passing_on.stop()

    run(scenario())


def test_what_has_gone_does_not_come_back() -> None:
    async def scenario() -> None:
        receiver, passing_on = await passing()
        passing_on.put("detect/0", 1)
        await asyncio.sleep(1)
        passing_on.handover.retarget(None)
        await asyncio.sleep(1)
        assert (receiver.taken, passing_on.back, passing_on.lost) == ([1], [], [])
        await passing_on.stop()

    run(scenario())


def test_turning_to_and_fro_neither_loses_nor_prolongs() -> None:
    async def scenario() -> None:
        _, passing_on = await passing()
        passing_on.put("detect/1", 1, 2)
        for _ in range(3):
            await asyncio.sleep(1)
            passing_on.handover.retarget("detect/2")
            passing_on.handover.retarget("detect/1")
        await asyncio.sleep(EXPIRES - 3.5)
        assert (passing_on.lost, passing_on.handover.waiting) == ([], 2)
        await asyncio.sleep(1)
        assert passing_on.lost == [(1, "expired"), (2, "expired")]
        assert passing_on.handover.waiting == 0
        await passing_on.stop()

    run(scenario())


def test_what_a_sibling_passed_on_though_it_is_in_use_itself_goes_back_after_a_while() -> None:
    """The sibling sent it before the votes turned; both halves of the join are needed there."""
    spec = OperatorSpec("detect", "work", ("camera", "other"), {}, SameTau())
    origins = {"camera": ("camera/0",), "other": ("other/0",)}

    async def scenario() -> None:
        network, receiver, _ = await ends()
        port = network.port("up")
        replica = ReplicaRuntime(
            Replica("detect", 1, "up"),
            spec,
            OPERATORS["work"],
            WorkParams(),
            assembler_for(spec, origins, Gaps()),
            Context("detect/1", port, asyncio.Lock()),
            [],
            lambda pair, on_message, on_lost: Sender(port, pair=SIBLINGS).connection,
            lambda event: None,
            Limits(),
        )
        running = [asyncio.create_task(each) for each in replica.runs().values()]
        replica.assemble_at("detect/0")
        await replica.take(Batch("camera/0", [item(1)], {}), via="detect/0")
        for _ in range(3):
            await asyncio.sleep(KEEP_S / 4)
            replica.assemble_at("detect/0")
        await asyncio.sleep(0)
        assert (receiver.taken, replica.queued()) == ([], 0)
        await asyncio.sleep(KEEP_S / 2)
        replica.assemble_at("detect/0")
        await asyncio.sleep(1)
        assert receiver.taken == [1]
        await asyncio.sleep(2 * KEEP_S)
        replica.assemble_at("detect/0")
        await asyncio.sleep(1)
        assert receiver.taken == [1]
        for task in running:
            task.cancel()
        await replica.close()

    run(scenario())
