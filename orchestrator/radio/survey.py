"""Surveys the true network at one tick of mobility: the channel, the links, and the expected delivery of
each.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.airtime import ACK_BYTES
from orchestrator.radio.channel import Channel, Position, build_channel
from orchestrator.radio.path_loss.base import Matrix, losses_at
from orchestrator.radio.settings import Mac, Radio

Links = dict[str, dict[str, float]]

FULL_SIZE = 1514
"""Size in bytes of the Ethernet frames that links are judged by."""

WORST_LINK = 0.1
"""A pair of nodes with a smaller share of successful exchanges has no link."""


@dataclass(frozen=True)
class Survey:
    positions: Mapping[str, Position]
    path_loss: PathLoss
    channel: Channel
    expected: Matrix
    """Share of full-size frames that arrive in one undisturbed transmission; [transmitter, receiver]."""
    links: Links
    """Each node's neighbours and the expected number of transmissions until a full-size frame is
    acknowledged: 1 / (delivery there × delivery of the ACK back), to one decimal."""
    silent: Set[str] = frozenset()
    """The nodes whose radios are off."""

    def holds(
        self, radio: Radio, positions: Mapping[str, Position], t: float, silent: Set[str] = frozenset()
    ) -> bool:
        """Says whether another survey would find the same."""
        still = positions == self.positions and silent == self.silent
        return still and losses_at(radio.path_loss, t) is self.path_loss


def survey(
    radio: Radio,
    mac: Mac,
    positions: Mapping[str, Position],
    t: float = 0.0,
    silent: Set[str] = frozenset(),
) -> Survey:
    """Surveys the network. ``t`` (seconds) matters if losses change over time; ``silent``: nodes whose radios
    are off.
    """
    path_loss = losses_at(radio.path_loss, t)
    off = [index for index, name in enumerate(positions) if name in silent]
    channel = build_channel(radio, mac, list(positions.values()), path_loss, off)
    expected = delivery(radio, mac.unicast_rate, FULL_SIZE + radio.reception.counted_overhead, channel.snr_db)
    success = exchange(radio, mac, expected, channel.snr_db)
    return Survey(
        positions, path_loss, channel, expected, _links(list(positions), success), frozenset(silent)
    )


def _links(names: list[str], success: Matrix) -> Links:
    good = success >= WORST_LINK
    costs = np.round(1.0 / success[good], 1).tolist()
    peers = [names[there] for there in np.nonzero(good)[1].tolist()]
    ends = good.sum(axis=1).cumsum().tolist()
    return {
        name: dict(zip(peers[start:end], costs[start:end], strict=True))
        for name, (start, end) in zip(names, pairwise([0, *ends]), strict=True)
    }


def delivery(radio: Radio, rate: float, length: int, snr_db: Matrix) -> Matrix:
    """Returns the share of frames that arrive in a single transmission if nobody else sends."""
    decodable = snr_db >= radio.decode_threshold_dbm - radio.noise_dbm
    return np.where(decodable, np.exp(radio.reception.curves[rate].ln_per_byte_matrix(snr_db) * length), 0.0)


def exchange(radio: Radio, mac: Mac, expected: Matrix, snr_db: Matrix) -> Matrix:
    """Returns the share of unicast transmissions that arrive and whose ACK comes back."""
    acknowledged = delivery(radio, mac.control_rate, ACK_BYTES, snr_db)
    return expected * np.swapaxes(acknowledged, -1, -2)
