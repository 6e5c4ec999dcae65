"""What the records of flows are worth: who can have written them, and arrivals of what nobody sent."""

from collections.abc import Mapping
from typing import Any

from node_agent.apps.flows.belief import scopes_of
from node_agent.apps.flows.events import FlowReceived, FlowSent
from node_agent.apps.flows.model import Flow
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.segments import Completeness
from orchestrator.planning.application import Examiner

_SENT, _RECEIVED = tag_of(FlowSent), tag_of(FlowReceived)

Start = tuple[str, int]
"""A flow, and a start of its source."""


class FlowsExaminer(Examiner):
    """Compares the counters of sinks with those of sources. Counters only grow: the largest is the last."""

    def __init__(self, flows: tuple[Flow, ...]) -> None:
        super().__init__(scopes_of(flows))
        self._flows = flows
        self._sent: dict[Start, int] = {}
        self._received: dict[Start, dict[int, int]] = {}
        """By the sink's own starts, too."""

    def take(self, node: str, record: Any) -> None:
        if record.kind == _SENT:
            key = record.flow, record.boot
            self._sent[key] = max(record.packets, self._sent.get(key, 0))
        elif record.kind == _RECEIVED:
            counts = self._received.setdefault((record.flow, record.source_boot), {})
            counts[record.boot] = max(record.packets, counts.get(record.boot, 0))

    def never_emitted(self, completeness: Mapping[str, Completeness]) -> dict[str, int]:
        """Only of flows whose source's log is whole: a source that died may not have told.

        A sink that was started anew forgets what it had, and may be sent it again.
        """
        counts: dict[str, int] = {}
        for flow in self._flows:
            if flow.source not in completeness or not completeness[flow.source].complete:
                continue
            for (name, boot), received in self._received.items():
                beyond = max(received.values()) - self._sent.get((name, boot), 0)
                if name == flow.name and beyond > 0:
                    counts[flow.sink] = counts.get(flow.sink, 0) + beyond
        return counts
