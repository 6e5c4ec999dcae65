"""What is between an operator that moves and its successor: takes each output once, and keeps it for the
successor, which may move too."""

from collections import deque
from dataclasses import dataclass

from node_agent.apps.mcep.graph import Stream
from node_agent.apps.mcep.moving.messages import Handed
from node_agent.apps.mcep.moving.places import Joint
from node_agent.apps.mcep.packed import decode_message
from node_agent.migration.live.messages import Deliver, Effect
from node_agent.migration.live.neighbours import Downstream, Upstream
from node_agent.migration.live.values import Limits

MOST_PIECE = 32
"""Items of one message."""


@dataclass(slots=True)
class Between:
    """A joint on the broker where it is."""

    stream: Stream
    down: Downstream
    up: Upstream

    def take(self, effects: list[Effect]) -> tuple[list[Effect], list[Effect]]:
        """Emits what the sink delivers. Returns what else the sink wants done, and what the stream wants."""
        answers: list[Effect] = []
        emitted: list[Effect] = []
        for each in effects:
            if isinstance(each, Deliver):
                for payload in each.payloads:
                    if self.stream.carries(decode_message(payload)):
                        emitted += self.up.emit(payload)
            else:
                answers.append(each)
        return answers, emitted

    def handed(self, joint: Joint, version: int) -> list[Handed]:
        kept = list(self.up.kept)
        pieces = [tuple(kept[k : k + MOST_PIECE]) for k in range(0, len(kept), MOST_PIECE)] or [()]
        down, up = self.down, self.up
        owners = (down.owner, down.term, up.owner, up.term)
        return [
            Handed(*joint, version, down.last, *owners, up.last, piece, number == len(pieces))
            for number, piece in enumerate(pieces, 1)
        ]


def begun(
    joint: Joint, stream: Stream, names: tuple[str, str], owners: tuple[str, str], limits: Limits
) -> Between:
    """``names``: of the sink and of the stream. ``owners``: of producer and successor."""
    sink, source = names
    down = Downstream(sink, owners[0], "")
    return Between(stream, down, Upstream(source, owners[1], "", limits))


def arrived(pieces: list[Handed], stream: Stream, names: tuple[str, str], limits: Limits) -> Between:
    sink, source = names
    last = pieces[-1]
    down = Downstream(sink, last.producer_at, "", last.producer_term, last.taken)
    up = Upstream(source, last.successor_at, "", limits, last.successor_term, last.emitted)
    up.kept = deque(item for piece in pieces for item in piece.kept)
    return Between(stream, down, up)
