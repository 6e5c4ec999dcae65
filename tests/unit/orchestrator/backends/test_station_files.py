"""The emulated radio tells each node what its own radio would know."""

from pathlib import Path

import pytest

from node_agent.host.station_file import StationFile
from orchestrator.backends.netns.radio.shared import Shared
from orchestrator.backends.netns.radio.stations import StationFiles

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]

ADDRESSES = {"a": "02:52:00:00:00:01", "b": "02:52:00:00:00:02"}
A, B = (bytes.fromhex(address.replace(":", "")) for address in ADDRESSES.values())


def test_a_node_reads_of_its_own_links_what_the_loop_has_counted(tmp_path: Path) -> None:
    memory = Shared(2)
    files = StationFiles(tmp_path / "stations", ADDRESSES, -100.0)
    readers = {node: StationFile(str(tmp_path / "stations" / node)) for node in ADDRESSES}
    assert readers["a"].read() == {}
    memory.put_links(0, [0, 9], [0, 7], [0, 5], [0, 3], [0, 1])  # a to b
    memory.put_links(1, [4, 0], [2, 0], [0, 0], [0, 0], [0, 0])
    power_mw = [[0.0, 1e-9], [1e-8, 0.0]]
    files.write(memory.counters(), power_mw, 10**9)
    at_a, at_b = readers["a"].read(), readers["b"].read()
    assert list(at_a) == [B] and list(at_b) == [A]
    assert tuple(at_a[B]) == pytest.approx((2, 5, 3, 1, -80.0, 0.0))
    assert tuple(at_b[A]) == pytest.approx((7, 0, 0, 0, -90.0, 0.0))
    assert readers["a"].sensitivity_dbm == -100.0
    assert (tmp_path / "stations" / "a").stat().st_mode & 0o077 == 0
    for reader in readers.values():
        reader.close()
