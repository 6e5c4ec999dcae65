"""Implements ``Medium`` with links that come and go: node names around the pipes, driven by a Schedule.

A frame's ``size`` is that of its IP packet, as virtual hosts count it.
"""

from collections.abc import Sequence

from orchestrator.errors import BadInput
from orchestrator.radio.airtime import ETHERNET_HEADER
from orchestrator.radio.medium import BROADCAST, Frame, OnFrame, Schedule
from orchestrator.radio.pipes import Pipes, PipeStation, PipeTable
from orchestrator.radio.station import EVERYONE, Outgoing


class ContactMedium:
    """All links are down until ``use`` says which are up."""

    def __init__(self, schedule: Schedule, nodes: Sequence[str], queue_limit: int) -> None:
        self._schedule = schedule
        self._index = {name: index for index, name in enumerate(nodes)}
        self._destinations = {**self._index, BROADCAST: EVERYONE}
        self._received: list[OnFrame | None] = [None] * len(nodes)
        self._failed: list[OnFrame | None] = [None] * len(nodes)
        self._pipes = Pipes(len(nodes), queue_limit, schedule.call_at_ns, self._deliver, self._give_up)

    @property
    def stations(self) -> list[PipeStation]:
        return self._pipes.stations

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        index = self._index[node]
        self._received[index], self._failed[index] = received, failed

    def send(self, frame: Frame) -> None:
        try:
            source, destination = self._index[frame.source], self._destinations[frame.destination]
        except KeyError as error:
            raise BadInput(f'there is no node "{error.args[0]}" among these contacts') from None
        if destination == source:
            raise BadInput(f"{frame.source} cannot send a frame to itself")
        out = Outgoing(destination, frame.size + ETHERNET_HEADER, frame)
        # Not at once: who sends does not expect to hear of a failure before ``send`` returns.
        now = self._schedule.now_ns()
        self._schedule.call_at_ns(now, self._pipes.send, source, out, now)

    def use(self, table: PipeTable) -> None:
        """Lets exactly these links be up from now on."""
        self._pipes.use(table)

    def _deliver(self, receiver: int, sender: int, frame: Outgoing) -> None:
        if (received := self._received[receiver]) is not None:
            received(frame.payload)

    def _give_up(self, sender: int, frame: Outgoing) -> None:
        if (failed := self._failed[sender]) is not None:
            failed(frame.payload)
