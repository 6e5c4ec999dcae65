"""Random operators that can move: filters, windows by number and by time, patterns that consume, and
selections that stay open for a while. They merge their inputs by time, so the order of arrival does not show.

What they put out also depends on their immutable state: a host that has it wrongly gives itself away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import NamedTuple

import msgspec

from node_agent.migration.live.values import Item, Savepoint

END = 1 << 60
"""The time of a stream's last item, which is none of its events."""


class Seen(NamedTuple):
    t: int
    stream: int
    position: int
    value: int

    @property
    def key(self) -> tuple[int, int, int]:
        return self.t, self.stream, self.position


@dataclass(frozen=True)
class Rule:
    """``kind``: ``filter``, ``count`` (``length`` events, moved by ``shift``), ``time`` (``length`` ticks),
    ``pattern`` (an odd value after an even one, both consumed) or ``open`` (a selection of up to ``length``
    events, with an output for each)."""

    kind: str
    length: int
    shift: int
    streams: tuple[str, ...]


KINDS = ("filter", "count", "time", "pattern", "open")


def random_rule(random: Random) -> Rule:
    streams = tuple(f"s{n}" for n in range(random.randint(1, 3)))
    length = random.randint(2, 12)
    return Rule(random.choice(KINDS), length, random.randint(1, length), streams)


class Note(NamedTuple):
    """Of a boundary: what was released last, what the window holds, and how long to skip."""

    released: tuple[int, int, int]
    window: list[tuple[int, int]]
    skip: int


class Operator:
    """``state``: the immutable state. ``at``: where it begins."""

    def __init__(self, rule: Rule, state: bytes, at: Savepoint) -> None:
        self.rule = rule
        self._stamp = blake2b(state, digest_size=6).hexdigest()
        self._waiting: dict[int, list[Seen]] = {n: [] for n in range(len(rule.streams))}
        self._window: list[Seen] = []
        self._made = at.outputs
        note = msgspec.msgpack.decode(at.at, type=Note) if at.at else Note((-1, -1, -1), [], 0)
        self._released, self._skip = tuple(note.released), note.skip
        self._again = {tuple(each) for each in note.window}
        """What the window held and is pushed again."""
        self._positions = {n: at.position(name) for n, name in enumerate(rule.streams)}
        """By stream, what was released last."""
        self._begin = self._positions.copy()
        self._open = 0
        self._boundary = at

    @property
    def at_boundary(self) -> bool:
        return not self._open and not self._again

    def boundary(self) -> Savepoint:
        return self._boundary

    def push(self, stream: str, item: Item) -> Sequence[bytes]:
        number = self.rule.streams.index(stream)
        t, value = msgspec.msgpack.decode(item.payload, type=tuple[int, int])
        seen = Seen(t, number, item.position, value)
        if seen.key <= self._released:  # released before the boundary; perhaps the window still holds it
            self._positions[number] = item.position
            if (number, item.position) in self._again:
                self._again.remove((number, item.position))
                self._window.append(seen)
                self._window.sort(key=lambda each: each.key)
            return ()
        self._waiting[number].append(seen)
        outputs: list[bytes] = []
        while all(self._waiting.values()) and not self._again:
            first = min((queue[0] for queue in self._waiting.values()), key=lambda each: each.key)
            if first.t >= END:
                break
            self._waiting[first.stream].pop(0)
            self._positions[first.stream], self._released = first.position, first.key
            made = self._step(first)
            outputs += made
            self._made += len(made)
            if not self._open:
                self._boundary = self._stand()
        return outputs

    def _step(self, seen: Seen) -> list[bytes]:
        rule, window = self.rule, self._window
        match rule.kind:
            case "filter":
                return [self._output([seen])] if seen.value % 3 else []
            case "count":
                if self._skip:
                    self._skip -= 1
                    return []
                window.append(seen)
                if len(window) < rule.length:
                    return []
                output = self._output(window)
                self._skip = max(0, rule.shift - len(window))
                del window[: rule.shift]
                return [output]
            case "time":
                while window and window[0].t <= seen.t - rule.length:
                    window.pop(0)
                window.append(seen)
                return [self._output(window)] if seen.value % 2 else []
            case "pattern":
                if seen.value % 2 == 0:
                    window.append(seen)
                    del window[: -rule.length]
                    return []
                return [self._output([window.pop(0), seen])] if window else []
        if not self._open and seen.value % 4:
            return []
        self._open = 0 if self._open + 1 >= rule.length or seen.value % 7 == 0 else self._open + 1
        window.append(seen)
        output = self._output(window)
        if not self._open:
            window.clear()
        return [output]

    def _output(self, selection: Sequence[Seen]) -> bytes:
        chosen = "+".join(f"{each.stream}.{each.position}={each.value}" for each in selection)
        return f"{self._stamp} {self._made} {chosen}".encode()

    def _stand(self) -> Savepoint:
        held = {n: self._positions[n] for n in self._positions}
        for each in self._window:
            held[each.stream] = min(held[each.stream], each.position - 1)
        window = [(each.stream, each.position) for each in self._window]
        note = Note(self._released, window, self._skip)  # type: ignore[arg-type]
        inputs = tuple((name, held[n]) for n, name in enumerate(self.rule.streams))
        return Savepoint(inputs, self._made, msgspec.msgpack.encode(note))


def random_inputs(random: Random, rule: Rule) -> dict[str, list[bytes]]:
    """Returns the payloads of each stream; times grow, with ties between streams."""
    inputs: dict[str, list[bytes]] = {}
    for stream in rule.streams:
        t, made = 0, list[bytes]()
        for _ in range(random.randint(20, 150)):
            t += random.randint(1, 4)
            made.append(msgspec.msgpack.encode((t, random.randint(0, 1000))))
        inputs[stream] = [*made, msgspec.msgpack.encode((END, 0))]
    return inputs
