"""What radios know of their links, read from the file of an emulated one and from the kernel's messages."""

import socket
import struct
from pathlib import Path

import pytest

from node_agent.host import nl80211, station_file
from node_agent.host.station_file import StationFile
from node_agent.model.link_layer import LinkReading

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]

ONE, OTHER = bytes.fromhex("025200000001"), bytes.fromhex("025200000002")
READINGS = {ONE: LinkReading(10, 20, 3, 1, -81.5, 0.25), OTHER: LinkReading(1, 0, 0, 0, None, 2.0)}


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "n01"
    file.write_bytes(station_file.pack(7, -90.5, READINGS))
    reader = StationFile(str(file))
    assert reader.read() == READINGS
    assert reader.sensitivity_dbm == -90.5
    reader.close()
    reader.close()


def test_a_table_that_is_half_written_leaves_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "n01"
    whole = station_file.pack(1, -90.5, READINGS)
    file.write_bytes(whole)
    reader = StationFile(str(file))
    assert reader.read() == READINGS
    newer = station_file.pack(2, -90.5, {ONE: LinkReading(11, 20, 3, 1, -81.5), OTHER: READINGS[OTHER]})
    file.write_bytes(newer[:40] + whole[40:])
    assert reader.read() == READINGS
    reader.close()


@pytest.mark.parametrize("content", [b"", b"RvSt", b"x" * 200, station_file.pack(1, 0.0, READINGS)[:-1]])
def test_garbage_is_no_table(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "n01"
    file.write_bytes(content)
    reader = StationFile(str(file))
    assert (reader.read(), reader.sensitivity_dbm) == ({}, None)
    reader.close()


def test_a_file_that_claims_too_many_neighbours_is_refused() -> None:
    assert station_file.unpack(struct.pack("=4sIfI", b"RvSt", 1, 0.0, 1 << 31) + bytes(64)) is None


def test_a_table_that_is_not_there_yet_is_empty_and_found_later(tmp_path: Path) -> None:
    reader = StationFile(str(tmp_path / "n01"))
    assert reader.read() == {}
    (tmp_path / "n01").write_bytes(station_file.pack(1, -90.0, READINGS))
    assert reader.read() == READINGS
    reader.close()


# The kernel's layouts, written out: netlink header, generic header, attributes padded to four bytes.


def attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def new_station(hardware: bytes, info: bytes, command: int = 19) -> bytes:
    interface, mac, sta_info = attribute(3, struct.pack("=I", 4)), attribute(6, hardware), attribute(21, info)
    return struct.pack("=BBH", command, 1, 0) + interface + mac + sta_info


def message(kind: int, sequence: int, body: bytes) -> bytes:
    whole = struct.pack("=IHHII", 16 + len(body), kind, 2, sequence, 0) + body
    return whole + bytes(-len(whole) % 4)


INFO = b"".join(
    [
        attribute(1, struct.pack("=I", 120)),  # inactive, ms
        attribute(2, struct.pack("=I", 123456)),  # received bytes
        attribute(7, struct.pack("=b", -67)),  # signal
        attribute(9, struct.pack("=I", 900)),  # received packets
        attribute(10, struct.pack("=I", 500)),  # transmitted packets
        attribute(11, struct.pack("=I", 40)),  # retries
        attribute(12, struct.pack("=I", 3)),  # failed
        attribute(13, struct.pack("=b", -66)),  # mean signal
        attribute(8 | 0x8000, attribute(1, struct.pack("=H", 110))),  # nested: transmit rate
    ]
)


def test_a_station_of_nl80211_becomes_a_reading() -> None:
    expected = LinkReading(received=900, acknowledged=497, retries=40, failed=3, signal_dbm=-67.0, age_s=0.12)
    assert nl80211.station(new_station(ONE, INFO)) == (ONE, expected)


def test_a_dump_holds_one_message_for_each_station() -> None:
    dump = message(30, 5, new_station(ONE, INFO)) + message(30, 5, new_station(OTHER, b""))
    bodies = [body for kind, sequence, body in nl80211.messages(dump) if (kind, sequence) == (30, 5)]
    found = dict(filter(None, map(nl80211.station, bodies)))
    assert list(found) == [ONE, OTHER]
    assert found[OTHER] == LinkReading(0, 0, 0, 0, None, 0.0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        new_station(ONE, INFO, command=20),
        new_station(b"\x01\x02", INFO),
        struct.pack("=BBH", 19, 1, 0) + attribute(6, ONE),
        struct.pack("=BBH", 19, 1, 0) + struct.pack("=HH", 60000, 6),
    ],
)
def test_what_is_no_station_is_none(body: bytes) -> None:
    assert nl80211.station(body) is None


def test_messages_that_lie_about_their_length_end_the_reading() -> None:
    good = message(30, 1, new_station(ONE, INFO))
    assert len(list(nl80211.messages(good + struct.pack("=IHHII", 5000, 30, 0, 1, 0)))) == 1
    assert list(nl80211.messages(struct.pack("=IHHII", 3, 30, 0, 1, 0))) == []
    assert list(nl80211.messages(good[:20])) == []


def test_a_machine_without_wireless_says_so_or_lists_no_station() -> None:
    try:
        stations = nl80211.Nl80211Stations(1)
    except nl80211.NoStations as error:
        assert str(error)
    else:
        assert stations.read() == {}
        stations.close()


class Kernel:
    """A kernel with nl80211 (family 30) and one station; its first dump comes late."""

    def __init__(self, *_: object) -> None:
        self.answers: list[bytes] = []
        self.dumps = 0

    def settimeout(self, seconds: float) -> None:
        pass

    def sendto(self, data: bytes, to: tuple[int, int]) -> None:
        (kind, sequence, body) = next(nl80211.messages(data))
        if kind == 16:
            assert body == struct.pack("=BBH", 3, 1, 0) + attribute(2, b"nl80211\0")
            family = attribute(2, b"nl80211\0") + attribute(1, struct.pack("=H", 30))
            self.answers = [message(16, sequence, struct.pack("=BBH", 1, 2, 0) + family)]
            return
        assert (kind, body) == (30, struct.pack("=BBH", 17, 1, 0) + attribute(3, struct.pack("=I", 4)))
        self.dumps += 1
        done = message(3, sequence, struct.pack("=i", 0))
        self.answers += [message(30, sequence, new_station(ONE, INFO)), done]
        if self.dumps == 1:
            self.answers.insert(0, b"")

    def recv(self, size: int) -> bytes:
        answer = self.answers.pop(0)
        if not answer:
            raise TimeoutError
        return answer

    def close(self) -> None:
        pass


def test_a_card_is_asked_by_its_index_and_a_late_answer_is_not_taken_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "socket", Kernel)
    card = nl80211.Nl80211Stations(4, -85.0)
    assert card.sensitivity_dbm == -85.0
    assert card.read() == {}
    assert list(card.read()) == [ONE]
    card.close()
