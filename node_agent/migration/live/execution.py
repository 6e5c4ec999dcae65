"""An operator at work at its owner: input in, numbered outputs out, and savepoints behind it.

A savepoint is safe once every sink has all outputs made before it. From the safe savepoint on the operator
can be started again; its upstreams keep the input since then.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from node_agent.migration.live.buffer import Buffer
from node_agent.migration.live.messages import Effect, Outputs, Sent
from node_agent.migration.live.values import Limits, Movable, Savepoint, batches

MOST_CANDIDATES = 64


@dataclass(slots=True)
class Execution:
    """``operator``: None until its immutable state is here. ``made``: outputs so far. ``acked``: by sink, up
    to which output it has them; sinks that are not in ``following`` do not know this owner yet."""

    limits: Limits
    sinks: tuple[str, ...]
    safe: Savepoint
    operator: Movable | None = None
    made: int = 0
    pushed: dict[str, int] = field(default_factory=dict)
    pending: deque[bytes] = field(default_factory=deque)
    """The outputs up to ``made`` that some sink has not acknowledged."""
    acked: dict[str, int] = field(default_factory=dict)
    following: dict[str, int] = field(default_factory=dict)
    """By sink, the output that it is sent next."""
    candidates: deque[Savepoint] = field(default_factory=deque)
    paused: bool = False

    def start(self, operator: Movable, at: Savepoint, outputs: tuple[bytes, ...] = ()) -> None:
        """Begins at ``at``. ``outputs``: the last ones made before, if they are not acknowledged."""
        self.operator, self.made, self.pushed = operator, at.outputs, dict(at.inputs)
        self.pending = deque(outputs)
        self.candidates = deque([at]) if at != self.safe else deque()
        self.acked = {sink: self.made - len(outputs) for sink in self.sinks} | self.acked

    def run(self, buffers: Mapping[str, Buffer]) -> list[Effect]:
        """Works on what is buffered, as far as there is room for outputs."""
        operator = self.operator
        if operator is None:
            return []
        for stream, buffer in buffers.items():
            while len(self.pending) < self.limits.pending and not (self.paused and operator.at_boundary):
                following = self.pushed.get(stream, 0) + 1
                items = buffer.since(following, following)
                if not items:
                    break
                outputs = operator.push(stream, items[0])
                if outputs is None:
                    break
                self.pushed[stream] = following
                self.made += len(outputs)
                self.pending += outputs
                self._forget_acknowledged()
                self._note_boundary(operator)
        return self.send()

    def send(self) -> list[Effect]:
        """Sends outputs to the sinks that know this owner."""
        effects: list[Effect] = []
        first_pending = self.made - len(self.pending) + 1
        for sink, following in self.following.items():
            begin = max(following, first_pending)
            unsent = islice(self.pending, begin - first_pending, None)
            for batch in batches(unsent, len, self.limits):
                effects.append(Sent(sink, Outputs(begin, batch)))
                begin += len(batch)
            self.following[sink] = max(following, begin)
        return effects

    def welcomed(self, sink: str, following: int) -> list[Effect]:
        self.following[sink] = following
        self.acknowledged(sink, following - 1)
        return self.send()

    def acknowledged(self, sink: str, upto: int) -> None:
        self.acked[sink] = max(self.acked.get(sink, 0), upto)
        self._forget_acknowledged()

    def pending_up_to(self, number: int) -> tuple[bytes, ...]:
        """Returns the outputs up to that one which some sink has not acknowledged."""
        count = number - (self.made - len(self.pending))
        return tuple(self.pending[n] for n in range(max(0, count)))

    def new_safe(self) -> Savepoint | None:
        """Moves the safe savepoint on if that is worth it. Returns it."""
        done = self._acknowledged_by_all()
        fit = [each for each in self.candidates if each.outputs <= done]
        if not fit or fit[-1].age[1] - self.safe.age[1] < self.limits.grain:
            return None
        for _ in fit:
            self.safe = self.candidates.popleft()
        return self.safe

    def _acknowledged_by_all(self) -> int:
        return min((self.acked.get(each, 0) for each in self.sinks), default=self.made)

    def _forget_acknowledged(self) -> None:
        done = self._acknowledged_by_all()
        while self.pending and self.made - len(self.pending) < done:
            self.pending.popleft()

    def _note_boundary(self, operator: Movable) -> None:
        at = operator.boundary()
        newest = self.candidates[-1] if self.candidates else self.safe
        if at.age <= newest.age:
            return
        if len(self.candidates) >= MOST_CANDIDATES:
            self.candidates.pop()
        self.candidates.append(at)
