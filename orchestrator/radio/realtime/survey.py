"""The air at one tick of mobility, seen from outside: channel, links, what may be expected of each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.radio.airtime import ACK_BYTES
from orchestrator.radio.channel import Channel, Position, build_channel
from orchestrator.radio.dcf_medium import FULL_SIZE
from orchestrator.radio.pathloss import Matrix
from orchestrator.radio.settings import Mac, Radio

Links = dict[str, dict[str, float]]

WORST_LINK = 0.1
"""Where fewer exchanges than this succeed there is no link to speak of."""


@dataclass(frozen=True)
class Survey:
    positions: Mapping[str, Position]
    channel: Channel
    expected: Matrix
    """Share of full-size frames that arrive in one undisturbed transmission; [transmitter, receiver]."""
    links: Links
    """Each node's neighbours and the expected number of transmissions until a full-size frame is
    acknowledged: 1 / (delivery there × delivery of the ACK back), to two decimals."""


def survey(radio: Radio, mac: Mac, positions: Mapping[str, Position]) -> Survey:
    channel = build_channel(radio, mac, list(positions.values()))
    decodable = _flags(channel.decoders)
    expected = np.exp(np.array(channel.ln_unicast) * (FULL_SIZE + radio.reception.counted_overhead))
    expected = np.where(decodable, expected, 0.0)
    acknowledged = np.where(decodable, np.exp(np.array(channel.ln_control) * ACK_BYTES), 0.0)
    success = expected * acknowledged.T
    names = list(positions)
    links: Links = {name: {} for name in names}
    for here, there in np.argwhere(success >= WORST_LINK).tolist():
        links[names[here]][names[there]] = round(1.0 / float(success[here, there]), 2)
    return Survey(positions, channel, expected, links)


def _flags(rows: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    size = (len(rows) + 7) // 8
    packed = np.frombuffer(b"".join(row.to_bytes(size, "little") for row in rows), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(rows), size), axis=1, bitorder="little", count=len(rows))
    return bits.astype(np.bool_)
