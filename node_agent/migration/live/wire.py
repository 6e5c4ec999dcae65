"""What roles of a migration say, as bytes between machines: bounded, and checked before it is believed.

data = encode(Ack(12))
decode(data)   # Ack(upto=12); raises Refused for anything that is not a message

The bounds of each field are in its type; ``claims`` says who may say what.
"""

from typing import Any, get_args

import msgspec

from node_agent.migration.live.messages import Message
from node_agent.model.checked import Checked, Refused

MOST_BYTES = 24 * 1024**2
"""Of one message: it can hold one item as large as a frame of Rove's transport carries."""
_KINDS: tuple[type[Message], ...] = get_args(Message)
_HEADERS: Checked[tuple[str, msgspec.Raw]] = Checked(tuple[str, msgspec.Raw], MOST_BYTES, "msgpack")
_DECODERS: dict[str, Checked[Any]] = {kind.__name__: Checked(kind, MOST_BYTES, "msgpack") for kind in _KINDS}
_ENCODER = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """Raises Refused if it is too large."""
    data = _ENCODER.encode((type(message).__name__, message))
    if len(data) > MOST_BYTES:
        raise Refused("size", f"{len(data)} bytes are more than {MOST_BYTES}")
    return data


def decode(data: bytes) -> Message:
    """Raises Refused, and nothing else, whatever the bytes are."""
    name, content = _HEADERS.decode(data)
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise Refused("malformed", "it is no message of a migration")
    message: Message = decoder.decode(bytes(content))
    return message
