"""An operator that can move to another broker: deterministic, and able to say where it stands.

Its outputs, heartbeats among them, follow from the sequences of its inputs. A savepoint names the events in
its windows by their positions and holds what else it takes to go on; the input since then makes the same
outputs again, with the same numbers.
"""

from collections.abc import Callable, Iterable, Sequence

from node_agent.apps.mcep.channel import ChannelId, Marker, Message
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.model import Event, Mark
from node_agent.apps.mcep.moving.merge import Merge
from node_agent.apps.mcep.moving.note import Note, Reference, decode_note, encode_note, events_of
from node_agent.apps.mcep.packed import decode_message, encode_message
from node_agent.migration.live.values import Item, Savepoint

GRAIN = 32
"""Messages after which it says anew where it stands, unless it is asked."""


def stream_name(channel: ChannelId) -> str:
    """What machines of migration call a channel; no broker is named like this."""
    return f"from {channel.producer}" + (f" at {channel.origin}" if channel.origin else "")


class MovingOperator:
    """``counted``: gets how many selections were processed since it was called last, and how many bytes of
    outputs they made."""

    def __init__(
        self,
        execution: Execution,
        savepoint: Savepoint,
        most_note: int,
        counted: Callable[[int, int], None] = lambda count, size: None,
    ) -> None:
        self.execution = execution
        self._channels = {stream_name(each): each for each in execution.gate.inlets}
        self._merge = Merge(execution.gate.inlets)
        self._most_note, self._counted = most_note, counted
        self._outputs = savepoint.outputs
        self._taken = self._noted = 0
        """Messages so far, and as many there were at the boundary."""
        self._boundary = savepoint
        self._places: dict[tuple[str, Mark], Reference] = {}
        """By producer and key, the stream and position of each event of this epoch."""
        self._note: Note | None = None
        """Where it is to go on, as long as not all events in its windows have come."""
        self._missing: dict[ChannelId, int] = {}
        self._found: dict[Reference, Event] = {}
        if savepoint.at:
            self._note = decode_note(savepoint, execution)
            channels = self._channels.values()
            for channel, position, at in zip(channels, self._note.taken, self._note.at, strict=True):
                self._merge.resume(channel, position, at)
                if position > savepoint.position(stream_name(channel)):
                    self._missing[channel] = position
            self._try_to_resume(self._note)

    def push(self, stream: str, item: Item) -> Sequence[bytes]:
        channel, message = self._channels[stream], decode_message(item.payload)
        upto = self._missing.get(channel)
        if upto is not None and self._note is not None:
            place = Reference(list(self._channels).index(stream), item.position)
            if isinstance(message, Event) and place in self._note.references:
                self._found[place] = message
            if item.position >= upto:
                del self._missing[channel]
                return self._try_to_resume(self._note)
            return ()
        self._merge.put(channel, item.position, message)
        return () if self._note is not None else self._work()

    @property
    def waiting(self) -> int:
        """Messages that wait for others."""
        return self._merge.waiting + self.execution.gate.waiting

    @property
    def at_boundary(self) -> bool:
        self._look()
        return self._noted == self._taken

    def boundary(self) -> Savepoint:
        if self._taken - self._noted >= GRAIN:
            self._look()
        return self._boundary

    def _work(self) -> list[bytes]:
        made: list[Message] = []
        before = self.execution.counts.processed
        while (following := self._merge.take()) is not None:
            channel, position, message, mark, behind = following
            if isinstance(message, Event):
                place = Reference(list(self._channels.values()).index(channel), position)
                self._places.setdefault((channel.producer, message.key), place)
            elif isinstance(message, Marker):
                self._places = {}  # the windows begin anew once all channels brought it
            if not isinstance(message, Marker):
                for each in behind:
                    self.execution.gate.promise(each, mark)
            made += self.execution.work(channel, message)
            self._taken += 1
        self._outputs += len(made)
        outputs = [encode_message(each) for each in made]
        self._counted(self.execution.counts.processed - before, sum(map(len, outputs)))
        return outputs

    def _look(self) -> None:
        """Moves the boundary to where it stands, if that can be said in short."""
        if self._noted == self._taken or self._note is not None:
            return
        standing = self.execution.standing()
        if standing is None:
            return
        held = {(stream, e.key) for part in standing.parts for stream, es in part.buffers.items() for e in es}
        if not held <= self._places.keys():
            return
        self._places = {at: self._places[at] for at in held}
        merge = self._merge
        data = encode_note(standing, self._places, tuple(merge.positions.values()), tuple(merge.at.values()))
        if len(data) > self._most_note:
            return
        needed = dict(enumerate(merge.positions.values()))
        for stream, position in self._places.values():
            needed[stream] = min(needed[stream], position - 1)
        inputs = tuple((name, needed[number]) for number, name in enumerate(self._channels))
        self._boundary, self._noted = Savepoint(inputs, self._outputs, data), self._taken

    def _try_to_resume(self, note: Note) -> list[bytes]:
        if self._missing:
            return []
        channels = tuple(self._channels.values())
        self._places = {
            (channels[place.stream].producer, event.key): place for place, event in self._found.items()
        }
        self.execution.resume(events_of(note, self._found))
        self._note, self._found = None, {}
        return self._work()


def inputs_of(channels: Iterable[ChannelId]) -> tuple[str, ...]:
    return tuple(map(stream_name, channels))


def beginning(channels: Iterable[ChannelId]) -> Savepoint:
    return Savepoint(tuple((name, 0) for name in inputs_of(channels)))
