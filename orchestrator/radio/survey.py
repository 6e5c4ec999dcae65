"""Surveys the true network at one tick of mobility: the channel, the links, and the expected delivery of
each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.airtime import ACK_BYTES
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.channel import Channel, Position, build_channels
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
    changes: AirChanges = UNCHANGED
    """What faults have changed."""

    def holds(
        self, radio: Radio, positions: Mapping[str, Position], t: float, changes: AirChanges = UNCHANGED
    ) -> bool:
        """Says whether another survey would find the same."""
        still = positions == self.positions and changes == self.changes
        return still and losses_at(radio.path_loss, t) is self.path_loss


def survey(
    radio: Radio,
    mac: Mac,
    positions: Mapping[str, Position],
    t: float = 0.0,
    changes: AirChanges = UNCHANGED,
) -> Survey:
    """Surveys the network. ``t`` (seconds) matters if losses change over time; ``positions`` are those after
    ``changes``.
    """
    return surveys(radio, mac, [positions], losses_at(radio.path_loss, t), changes)[0]


def surveys(
    radio: Radio,
    mac: Mac,
    moments: Sequence[Mapping[str, Position]],
    path_loss: PathLoss,
    changes: AirChanges = UNCHANGED,
) -> list[Survey]:
    """Surveys the network at several moments with the same losses: together they cost less than one by one.

    ``moments`` are the positions at each.
    """
    names = list(moments[0])
    off = [index for index, name in enumerate(names) if name in changes.silent]
    losses = _Changed(path_loss, names, changes) if changes.affects_links() else path_loss
    channels = build_channels(radio, mac, [list(each.values()) for each in moments], losses, off)
    snr_db = np.stack([channel.snr_db for channel in channels])
    expected = delivery(radio, mac.unicast_rate, FULL_SIZE + radio.reception.counted_overhead, snr_db)
    links = _links(names, exchange(radio, mac, expected, snr_db))
    return [
        Survey(positions, path_loss, channel, expected[at], links[at], changes)
        for at, (positions, channel) in enumerate(zip(moments, channels, strict=True))
    ]


class _Changed:
    """A path loss with what faults add to it."""

    def __init__(self, path_loss: PathLoss, names: Sequence[str], changes: AirChanges) -> None:
        lost = changes.loss_db()
        self._path_loss = path_loss
        self._more = np.array([[0.0 if a == b else lost(a, b) for b in names] for a in names])

    def loss_db(self, distance_m: Matrix) -> Matrix:
        loss: Matrix = self._path_loss.loss_db(distance_m) + self._more
        return loss


def _links(names: list[str], success: Matrix) -> list[Links]:
    """Returns the links of each moment."""
    good = success >= WORST_LINK
    costs = np.round(1.0 / success[good], 1).tolist()
    peers = [names[there] for there in np.nonzero(good)[2].tolist()]
    rows = pairwise([0, *good.sum(axis=2).cumsum().tolist()])  # of all moments, one after the other
    return [
        {
            name: dict(zip(peers[start:end], costs[start:end], strict=True))
            for name, (start, end) in zip(names, rows, strict=False)
        }
        for _ in success
    ]


def delivery(radio: Radio, rate: float, length: int, snr_db: Matrix) -> Matrix:
    """Returns the share of frames that arrive in a single transmission if nobody else sends."""
    decodable = snr_db >= radio.decode_threshold_dbm - radio.noise_dbm
    return np.where(decodable, np.exp(radio.reception.curves[rate].ln_per_byte_matrix(snr_db) * length), 0.0)


def exchange(radio: Radio, mac: Mac, expected: Matrix, snr_db: Matrix) -> Matrix:
    """Returns the share of unicast transmissions that arrive and whose ACK comes back."""
    acknowledged = delivery(radio, mac.control_rate, ACK_BYTES, snr_db)
    return expected * np.swapaxes(acknowledged, -1, -2)


def sensitivity_dbm(radio: Radio, mac: Mac) -> float:
    """Returns the weakest signal at which at least half of the full-size unicast frames arrive, to 0.1 dB."""
    signal = radio.decode_threshold_dbm
    for _ in range(1000):
        snr_db = signal - radio.noise_dbm
        if radio.reception.probability(mac.unicast_rate, FULL_SIZE, snr_db) >= 0.5:
            break
        signal += 0.1
    return signal
