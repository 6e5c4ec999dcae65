"""Computes the channel at one moment from positions: who hears whom, who may decode, and how well.

It is computed with numpy outside the medium's hot loop, into plain lists, and replaced as a whole when nodes
have moved. Sets of nodes are integers with one bit for each node, so that a set operation is one instruction
of the interpreter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.path_loss.base import Matrix
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.units_db import dbm_to_mw

Position = tuple[float, float]
Flags = npt.NDArray[np.bool_]

NEGLIGIBLE = 0.01
"""Interference below this share of the noise is ignored: it would change the SINR by 0.04 dB."""


@dataclass(frozen=True)
class Channel:
    """All fields are indexed [transmitter][receiver].
    ``ln_*`` are ln(success) per byte without interference.
    """

    radio: Radio
    node_count: int
    power_mw: list[list[float]]
    noise_mw: float
    hearers: list[int]
    """The nodes that find the medium busy while a node sends, including the sender."""
    decoders: list[int]
    """The nodes that may lock on to a node's frames."""
    heard: list[int]
    """The inverse of ``hearers``:
    the nodes whose frames make the medium busy for a node, including itself.
    """
    heard_nodes: list[list[int]]
    """The same sets as lists."""
    rivals: list[int]
    """The nodes whose transmission, at the same time as a node's own, may change who receives what."""
    ln_unicast: list[list[float]]
    ln_broadcast: list[list[float]]
    ln_control: list[list[float]]
    snr_db: Matrix

    def delivery(self, kind: Literal["unicast", "broadcast", "control"], i: int, j: int, size: int) -> float:
        """Returns the expected share of frames of ``size`` bytes from i to j that arrive in one
        transmission.
        """
        if not self.decoders[i] >> j & 1:
            return 0.0
        if kind == "control":
            return math.exp(self.ln_control[i][j] * size)
        ln = self.ln_unicast if kind == "unicast" else self.ln_broadcast
        return math.exp(ln[i][j] * (size + self.radio.reception.counted_overhead))


def build_channel(
    radio: Radio,
    mac: Mac,
    positions: Sequence[Position],
    path_loss: PathLoss | None = None,
    silent: Sequence[int] = (),
) -> Channel:
    """Builds the channel. ``path_loss`` replaces the radio's own, for traces of link losses. The radios of
    ``silent`` nodes are off.
    """
    count = len(positions)
    if count == 0:
        raise BadInput("a channel needs at least one node")
    xy = np.array(positions, dtype=np.float64).reshape(count, 2)
    if not np.isfinite(xy).all():
        raise BadInput("every position must be two finite numbers of metres")
    power_dbm = received_dbm(radio, distances(xy), path_loss)
    np.fill_diagonal(power_dbm, -np.inf)
    if silent:
        power_dbm[list(silent), :] = power_dbm[:, list(silent)] = -np.inf

    may_decode = power_dbm >= radio.decode_threshold_dbm
    # A receiver that decodes a frame is busy, whatever its carrier-sense threshold says.
    hears = (power_dbm >= radio.busy_threshold_dbm) | may_decode | np.eye(count, dtype=bool)
    snr_db = power_dbm - radio.noise_dbm
    power_mw, noise_mw = 10.0 ** (power_dbm / 10.0), dbm_to_mw(radio.noise_dbm)
    rates = dict.fromkeys((mac.unicast_rate, mac.broadcast_rate, mac.control_rate))
    ln = {rate: radio.reception.curves[rate].ln_per_byte_matrix(snr_db).tolist() for rate in rates}
    return Channel(
        radio=radio,
        node_count=count,
        power_mw=power_mw.tolist(),
        noise_mw=noise_mw,
        hearers=_bitsets(hears),
        decoders=_bitsets(may_decode),
        heard=_bitsets(hears.T),
        rivals=_bitsets(_rivals(may_decode, power_mw > noise_mw * NEGLIGIBLE) | hears | hears.T),
        heard_nodes=_lists(hears.T),
        ln_unicast=ln[mac.unicast_rate],
        ln_broadcast=ln[mac.broadcast_rate],
        ln_control=ln[mac.control_rate],
        snr_db=snr_db,
    )


def distances(xy: Matrix) -> Matrix:
    """Returns the distances between all positions; positions are on the axis before the last."""
    offsets = xy[..., :, None, :] - xy[..., None, :, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])


def received_dbm(radio: Radio, distance_m: Matrix, path_loss: PathLoss | None = None) -> Matrix:
    loss = (path_loss or radio.path_loss).loss_db(distance_m)
    return radio.tx_power_dbm + 2 * radio.antenna_gain_dbi - loss


def _rivals(may_decode: Flags, reaches: Flags) -> Flags:
    """Finds rivals: i and j are rivals if a signal of one reaches a possible receiver of the other."""
    met: Flags = may_decode @ reaches.T
    return met | met.T


def _bitsets(rows: Flags) -> list[int]:
    packed = np.packbits(rows, axis=1, bitorder="little")
    data, width = packed.tobytes(), packed.shape[1]
    return [int.from_bytes(data[start : start + width], "little") for start in range(0, len(data), width)]


def _lists(rows: Flags) -> list[list[int]]:
    members = np.nonzero(rows)[1].tolist()
    ends = np.cumsum(rows.sum(axis=1)).tolist()
    return [members[start:end] for start, end in pairwise([0, *ends])]
