"""Writes the nodes' station tables: for each node a file with what its own radio would know."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from node_agent.host import station_file
from orchestrator.backends.netns.radio.config import hardware_address
from orchestrator.backends.netns.radio.shared import Counters
from orchestrator.radio.station_table import StationTable

EVERY_TICKS = 2


class StationFiles:
    def __init__(self, folder: Path, addresses: Mapping[str, str], sensitivity_dbm: float) -> None:
        """``addresses``: hardware addresses in the nodes' order."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._hardware = [hardware_address(address) for address in addresses.values()]
        self._files = [os.open(folder / node, flags, 0o600) for node in addresses]
        self._tables = [StationTable(len(self._files)) for _ in self._files]
        self._sensitivity_dbm = sensitivity_dbm
        self._written = 0

    def write(self, counters: Counters, power_mw: list[list[float]], now_ns: int) -> None:
        """``power_mw``: by transmitter and receiver. If the disk is full, readers see old tables."""
        count = len(self._files)
        self._written += 1
        for node, (descriptor, table) in enumerate(zip(self._files, self._tables, strict=True)):
            own = slice(node * count, (node + 1) * count)
            readings = table.read(
                counters.received[node::count],
                counters.acknowledged[own],
                counters.timeouts[own],
                counters.given_up[own],
                [row[node] for row in power_mw],
                now_ns,
            )
            named = {self._hardware[there]: reading for there, reading in readings.items()}
            with suppress(OSError):
                os.pwrite(descriptor, station_file.pack(self._written, self._sensitivity_dbm, named), 0)
