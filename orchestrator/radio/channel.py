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
    return build_channels(radio, mac, [positions], path_loss, silent)[0]


def build_channels(
    radio: Radio,
    mac: Mac,
    moments: Sequence[Sequence[Position]],
    path_loss: PathLoss | None = None,
    silent: Sequence[int] = (),
) -> list[Channel]:
    """Builds the channel of each of several moments: together they cost less than one by one."""
    count = len(moments[0])
    if count == 0:
        raise BadInput("a channel needs at least one node")
    xy = np.array(moments, dtype=np.float64).reshape(len(moments), count, 2)
    if not np.isfinite(xy).all():
        raise BadInput("every position must be two finite numbers of metres")
    power_dbm = np.stack([received_dbm(radio, distance, path_loss) for distance in distances(xy)])
    itself = np.arange(count)
    power_dbm[:, itself, itself] = -np.inf
    if silent:
        power_dbm[:, list(silent), :] = power_dbm[:, :, list(silent)] = -np.inf

    may_decode = power_dbm >= radio.decode_threshold_dbm
    # A receiver that decodes a frame is busy, whatever its carrier-sense threshold says.
    hears = (power_dbm >= radio.busy_threshold_dbm) | may_decode | np.eye(count, dtype=bool)
    heard = np.swapaxes(hears, 1, 2)
    snr_db = power_dbm - radio.noise_dbm
    power_mw, noise_mw = 10.0 ** (power_dbm / 10.0), dbm_to_mw(radio.noise_dbm)
    rates = dict.fromkeys((mac.unicast_rate, mac.broadcast_rate, mac.control_rate))
    ln = {rate: radio.reception.curves[rate].ln_per_byte_matrix(snr_db).tolist() for rate in rates}
    rivals = _rivals(may_decode, power_mw > noise_mw * NEGLIGIBLE) | hears | heard
    powers, heard_nodes = power_mw.tolist(), _lists(heard)
    sets = _bitsets(np.stack((hears, may_decode, heard, rivals)))
    return [
        Channel(
            radio=radio,
            node_count=count,
            power_mw=powers[at],
            noise_mw=noise_mw,
            hearers=sets[0][at],
            decoders=sets[1][at],
            heard=sets[2][at],
            rivals=sets[3][at],
            heard_nodes=heard_nodes[at],
            ln_unicast=ln[mac.unicast_rate][at],
            ln_broadcast=ln[mac.broadcast_rate][at],
            ln_control=ln[mac.control_rate][at],
            snr_db=snr_db[at],
        )
        for at in range(len(moments))
    ]


def distances(xy: Matrix) -> Matrix:
    """Returns the distances between all positions; positions are on the axis before the last."""
    offsets = xy[..., :, None, :] - xy[..., None, :, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])


def received_dbm(radio: Radio, distance_m: Matrix, path_loss: PathLoss | None = None) -> Matrix:
    loss = (path_loss or radio.path_loss).loss_db(distance_m)
    return radio.tx_power_dbm + 2 * radio.antenna_gain_dbi - loss


def _rivals(may_decode: Flags, reaches: Flags) -> Flags:
    """Finds rivals: i and j are rivals if a signal of one reaches a possible receiver of the other."""
    met: Flags = may_decode @ np.swapaxes(reaches, -1, -2)
    return met | np.swapaxes(met, -1, -2)


def _bitsets(matrices: Flags) -> list[list[list[int]]]:
    """Returns the rows as sets, in lists of the same shape."""
    packed = np.packbits(matrices, axis=-1, bitorder="little")
    if packed.shape[-1] <= 8:  # each set fits a machine word
        words = np.zeros((*packed.shape[:-1], 8), dtype=np.uint8)
        words[..., : packed.shape[-1]] = packed
        sets: list[list[list[int]]] = words.view("<u8")[..., 0].tolist()
        return sets
    return [
        [[int.from_bytes(row.tobytes(), "little") for row in matrix] for matrix in kind] for kind in packed
    ]


def _lists(matrices: Flags) -> list[list[list[int]]]:
    """Returns the rows as lists of members."""
    members = np.nonzero(matrices)[2].tolist()
    ends = np.cumsum(matrices.sum(axis=2)).tolist()
    rows = [members[start:end] for start, end in pairwise([0, *ends])]
    count = matrices.shape[1]
    return [rows[first : first + count] for first in range(0, len(rows), count)]
