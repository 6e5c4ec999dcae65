"""What a node's radio knows about its neighbours, as a driver's station table shows it."""

from collections.abc import Callable, Sequence
from math import log10

from node_agent.model.link_layer import LinkReading
from orchestrator.radio.dcf import Dcf


class StationTable:
    """The radio of node ``index`` on a medium. Signals are those of frames that arrived since the last call."""

    def __init__(self, dcf: Dcf, index: int, names: Sequence[str], now_ns: Callable[[], int]) -> None:
        self._dcf = dcf
        self._index = index
        self._names = names
        self._now_ns = now_ns
        self._known: dict[int, LinkReading] = {}
        self._heard_ns = [0] * len(names)

    def read(self) -> dict[str, LinkReading]:
        index, now_ns = self._index, self._now_ns()
        power = self._dcf.channel.power_mw
        own = self._dcf.stations[index]
        readings = {}
        for there, other in enumerate(self._dcf.stations):
            received = other.link_received[index]
            if not received:
                continue
            known = self._known.get(there)
            signal = known.signal_dbm if known is not None else None
            if known is None or received != known.received:
                self._heard_ns[there] = now_ns
                # A frame may have arrived just before its sender left or was silenced.
                signal = 10 * log10(power[there][index]) if power[there][index] > 0.0 else signal
            readings[self._names[there]] = self._known[there] = LinkReading(
                received,
                own.link_acknowledged[there],
                own.link_timeouts[there],
                own.link_given_up[there],
                signal,
                (now_ns - self._heard_ns[there]) / 1e9,
            )
        return readings
