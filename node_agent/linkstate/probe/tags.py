"""The authentication tag of every probe and reply, with a key that only the two nodes share."""

import hmac
from collections.abc import Mapping

from node_agent.transport.keys import derive

SIZE = 16


class Tags:
    """``keys``: by address, those that the node at ``own`` shares with others."""

    def __init__(self, own: str, keys: Mapping[str, bytes]) -> None:
        self._own = own
        self._keys = {peer: derive(key, b"probe") for peer, key in keys.items() if peer != own}

    def __contains__(self, peer: str) -> bool:
        return peer in self._keys

    def add(self, data: bytes, to: str) -> bytes:
        return data + self._tag(data, self._own, to, to)

    def checked(self, data: bytes, sender: str) -> bytes | None:
        """Returns ``data`` without its tag; None unless ``sender`` made the tag for this node."""
        content, tag = data[:-SIZE], data[-SIZE:]
        genuine = hmac.compare_digest(tag, self._tag(content, sender, self._own, sender))
        return content if genuine else None

    def _tag(self, data: bytes, sender: str, receiver: str, peer: str) -> bytes:
        way = f"{sender} {receiver} ".encode()
        return hmac.digest(self._keys[peer], way + data, "sha256")[:SIZE]
