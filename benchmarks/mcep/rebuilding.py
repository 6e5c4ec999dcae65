"""A network whose operators are made again from savepoints, at random moments, as a migration does it."""

import random

from benchmarks.mcep.network import Network
from benchmarks.mcep.worlds import World
from node_agent.apps.mcep.channel import ChannelId, Message
from node_agent.apps.mcep.graph import CONSUMER, fan_out
from node_agent.apps.mcep.moving.note import MOST_NOTE
from node_agent.apps.mcep.moving.operator import MovingOperator, beginning, stream_name
from node_agent.apps.mcep.packed import decode_message, encode_message
from node_agent.apps.mcep.wiring import channels, execution
from node_agent.migration.live.values import Item, Savepoint


class Rebuilding(Network):
    """``moves``: how often an operator was made again. ``differed``: how often it then made other outputs
    than before. ``share``: of messages after which that happens."""

    def __init__(self, world: World, share: float = 0.05, most_note: int = MOST_NOTE) -> None:
        super().__init__(world)
        self.moves = self.differed = 0
        self._share, self._most_note = share, most_note
        self._random = random.Random(f"rebuilding {world.seed}")
        self._moving = {
            name: self._made(name, beginning(channels(world.query, name, self._servers)))
            for name in self.operators
        }
        self._input: dict[str, dict[str, list[Item]]] = {
            name: {stream_name(each): [] for each in channels(world.query, name, self._servers)}
            for name in self.operators
        }
        self._made_so_far: dict[str, list[bytes]] = {name: [] for name in self.operators}

    def _made(self, name: str, savepoint: Savepoint) -> MovingOperator:
        fresh = execution(self._world.query, name, self._servers)
        self.operators[name] = fresh
        return MovingOperator(fresh, savepoint, self._most_note)

    def _receive(self, receiver: str, channel: ChannelId, message: Message) -> None:
        if receiver == CONSUMER:
            super()._receive(receiver, channel, message)
            return
        if self._random.random() < self._share:
            self._make_again(receiver)
        stream = stream_name(channel)
        items = self._input[receiver][stream]
        items.append(Item(len(items) + 1, encode_message(message)))
        made = list(self._moving[receiver].push(stream, items[-1]))
        self._made_so_far[receiver] += made
        streams = self._world.query.graph.outputs[receiver]
        for to, each in fan_out(streams, map(decode_message, made)):
            self._send(receiver, to.successor, ChannelId(receiver), each)

    def _make_again(self, name: str) -> None:
        old = self._moving[name]
        if self._random.random() < 0.5:
            assert isinstance(old.at_boundary, bool)
        savepoint = old.boundary()
        new = self._made(name, savepoint)
        left = {stream: items[savepoint.position(stream) :] for stream, items in self._input[name].items()}
        outputs: list[bytes] = []
        while any(left.values()):
            stream = self._random.choice([each for each, items in left.items() if items])
            outputs += new.push(stream, left[stream].pop(0))
        self.moves += 1
        self.differed += outputs != self._made_so_far[name][savepoint.outputs :]
        self._moving[name] = new
