"""Checks what a node of the run says over a connection that it has proved to be its own. Pure.

A replica upstream sends items of the streams that its operator makes or passes on; a sibling passes on what
such a replica has sent. Both name positions in order. Anything else closes the connection; the agent that
receives it does not fail.
"""

from collections.abc import Sequence

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.apps.dataflow.wire.messages import (
    Acknowledgement,
    Ask,
    Data,
    Message,
    PassedOn,
    Ranges,
    Settled,
)
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair

MOST_RANGES = 8192
"""Of positions in one message; a replica that has more to say sends several messages."""
MOST_MADE = 1024


class Claims:
    """The ``Checks`` of one connection, from ``pair.sender`` to ``pair.receiver``."""

    def __init__(self, plan: DeploymentPlan, pair: Pair) -> None:
        query = plan.query
        own, self._operator = (plan.replica(replica).operator for replica in (pair.receiver, pair.sender))
        origins = query.origins()
        self._pair = pair
        counted = isinstance(query.operator(own).takes, CountWindow)
        self._passes_on = self._operator == own
        self._streams = {name: frozenset(origins[name]) for name in query.upstream(own)}
        # A source leaves no gap; an operator that takes items one by one leaves holes for those it filters.
        self._dense = frozenset(
            origin
            for streams in self._streams.values()
            for origin in streams
            if counted or origin not in query.names()
        )
        self._senders = {replica.id: name for name in self._streams for replica in plan.of(name)}

    def check_batch(self, data: Data) -> None:
        """Raise Impossible if the sender cannot have these items."""
        if data.passed_on is not None and data.floors:
            raise Impossible(f"{self._pair.sender} reported as done what it only passes on")
        self._check_items(data.items, self._upstream(data.passed_on))

    def check_message(self, message: Message) -> None:
        """Raise Impossible unless a replica upstream may say this."""
        if not isinstance(message, Settled) or self._passes_on:
            raise Impossible(f"{self._pair.sender} said what is for others to say")
        self._check_items(message.ends, self._operator)
        if not all(end.last for end in message.ends):
            raise Impossible(f"{self._pair.sender} sent as an end what is none")

    def _check_items(self, items: Sequence[StreamTuple], upstream: str) -> None:
        if not items:
            return
        origin = items[0].origin
        # Fast path: most batches are of one stream and in order.
        odd = [item for item in items if item.origin != origin or item.prev + 1 != item.tau or item.last]
        streams = self._streams[upstream]
        possible = origin in streams and all(
            item.origin in streams
            and (item.prev + 1 == item.tau or (item.prev < item.tau and item.origin not in self._dense))
            and not (item.last and item.payloads)
            for item in odd
        )
        if not possible:
            raise Impossible(f"{self._pair.sender} sent an item that it cannot have")

    def _upstream(self, passed_on: PassedOn | None) -> str:
        """Return the operator that items come from."""
        if passed_on is None and not self._passes_on:
            return self._operator
        if passed_on is None or not self._passes_on:
            raise Impossible(f"{self._pair.sender} sent what is not its own")
        check_ranges(passed_on.made, MOST_MADE)
        if (operator := self._senders.get(passed_on.sender)) is None:
            raise Impossible(f"{self._pair.sender} passed on what nobody upstream can have sent")
        return operator


def check_answer(message: Message) -> None:
    """Raise Impossible unless a replica downstream, which accepted the connection, may say this."""
    match message:
        case Acknowledgement(done, taken):
            for ranges in (done, taken):
                check_streams(ranges)
        case Ask():
            pass
        case _:
            raise Impossible("the receiver of a connection said what is for its sender to say")


def check_streams(streams: Ranges) -> None:
    for ranges in streams.values():
        check_ranges(ranges, MOST_RANGES)


def check_ranges(ranges: Sequence[tuple[int, int]], most: int) -> None:
    if len(ranges) > most:
        raise Impossible(f"{len(ranges)} ranges are more than {most}")
    for first, last in ranges:
        if first > last:
            raise Impossible(f"a range from {first} to {last}")
