"""Tuples as items of a migration: bytes, which whoever gets them checks."""

from collections.abc import Iterable, Sequence

import msgspec

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.wire.claims import Claims
from node_agent.apps.dataflow.wire.messages import Data
from node_agent.migration.live.messages import Copy, Items, Message, Outputs, Start
from node_agent.migration.live.wire import MOST_BYTES
from node_agent.model.checked import Checked, Refused
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair

pack = msgspec.msgpack.Encoder().encode
_TUPLES: Checked[StreamTuple] = Checked(StreamTuple, MOST_BYTES, "msgpack")


def unpack(payload: bytes) -> StreamTuple:
    """Raises Refused."""
    return _TUPLES.decode(payload)


def check_payloads(
    plan: DeploymentPlan, upstream: Replica, replica: Replica, sinks: Sequence[Replica], message: Message
) -> str | None:
    """Returns one word if a message has tuples that its sender cannot have."""
    match message:
        case Items(items) | Copy(_, _, items):
            return _problem(plan, Pair(upstream.id, replica.id), (item.payload for item in items))
        case Outputs(_, payloads) | Start(_, _, payloads):
            return _problem(plan, Pair(replica.id, sinks[0].id), payloads)
        case _:
            return None


def _problem(plan: DeploymentPlan, pair: Pair, payloads: Iterable[bytes]) -> str | None:
    try:
        Claims(plan, pair).check_batch(Data([unpack(each) for each in payloads]))
    except (Refused, Impossible):
        return "tuple"
    return None
