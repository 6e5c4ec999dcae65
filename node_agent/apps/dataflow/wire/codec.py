"""Describes the messages of a dataflow to the transport."""

from operator import attrgetter

from node_agent.apps.dataflow.model.tuples import StreamTuple, sizes_of
from node_agent.apps.dataflow.wire.claims import check_answer
from node_agent.apps.dataflow.wire.messages import PROTOCOL_VERSION, Data, DataDetails, Header, Message
from node_agent.apps.dataflow.wire.packing import attachments_of, pack, unpack
from node_agent.model.checked import Checked
from node_agent.transport import outgoing, server
from node_agent.transport.codec import Codec
from node_agent.transport.framing import MAX_HEADER
from node_agent.transport.item_sender import ItemSender

TupleConnection = outgoing.OutgoingConnection[StreamTuple, DataDetails, Message]
TupleSender = ItemSender[StreamTuple]
TupleServer = server.ConnectionServer[Data, Message]
OnMessage = outgoing.OnMessage[Message]
OnLost = outgoing.OnLost[StreamTuple]

CODEC: Codec[StreamTuple, DataDetails, Data, Message] = Codec(
    version=PROTOCOL_VERSION,
    headers=Checked(Header, MAX_HEADER, "msgpack"),
    batch=Data,
    items=attrgetter("items"),
    sizes=sizes_of,
    pack=pack,
    check_answer=check_answer,
    attachments=attachments_of,
    attach=unpack,
)
