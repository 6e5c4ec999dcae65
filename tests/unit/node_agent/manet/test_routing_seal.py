"""The seal of routing messages: who has no key, and who only has what others once sent, is not heard."""

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from node_agent.aodv import sealed as aodv
from node_agent.aodv.config import AodvConfig
from node_agent.manet import seal as routing_seal
from node_agent.manet.process import read_key
from node_agent.manet.seal import FRESH_S, SIZE, Seal, Unsealed
from node_agent.olsr import sealed as olsr
from node_agent.olsr import wire
from node_agent.olsr.daemon import Interface
from node_agent.olsr.outbox import MOST_MTU
from node_agent.olsr.service import OlsrService
from node_agent.ports import Address
from tests.unit.node_agent.aodv.test_aodv_virtual import LINE, AodvWorld
from tests.unit.node_agent.olsr.test_olsr_service import CONVERGED_S, FAST, Line

KEY = bytes(range(32))
SECOND = 1_000_000_000
HERE, THERE = 0x0A00_0001, 0x0A00_0002


class Clock:
    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return round(self.seconds * SECOND)


def sealing(clock: Clock | None = None, key: bytes = KEY, protocol: str = "olsr") -> Seal:
    return Seal(key, protocol, clock or Clock())


def refusal(seal: Seal, data: bytes, sender: int = HERE) -> str:
    with pytest.raises(Unsealed) as raised:
        seal.check(data, sender)
    return raised.value.reason


def test_what_is_sealed_can_be_opened_once() -> None:
    receiver, sender = sealing(), sealing()
    first, second = (sender.add(content, HERE) for content in (b"one", b"two"))
    assert len(first) == 3 + SIZE
    assert receiver.check(first, HERE) == b"one"
    assert refusal(receiver, first) == "replay"
    assert receiver.check(second, HERE) == b"two"
    assert refusal(receiver, first) == "replay"
    assert sealing().check(second, HERE) == b"two"  # another receiver


def test_nobody_else_can_make_one() -> None:
    receiver, data = sealing(), sealing().add(b"content", HERE)
    assert refusal(receiver, data, THERE) == "unauthenticated"  # sent from elsewhere
    assert refusal(receiver, b"") == refusal(receiver, bytes(SIZE)) == "unauthenticated"
    assert refusal(receiver, sealing(key=b"other key").add(b"content", HERE)) == "unauthenticated"
    assert refusal(receiver, sealing(protocol="aodv").add(b"content", HERE)) == "unauthenticated"
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        assert refusal(receiver, bytes(changed)) == "unauthenticated"
    assert receiver.check(data, HERE) == b"content"


def test_what_was_recorded_is_too_old_later_also_for_who_never_heard_it() -> None:
    clock = Clock()
    receiver, data = sealing(clock), sealing(clock).add(b"content", HERE)
    clock.seconds += FRESH_S
    assert refusal(receiver, data) == "replay"


@pytest.mark.parametrize("behind", [3.0, 86_400.0])
def test_clocks_need_not_agree(behind: float) -> None:
    clock, slow = Clock(1_000_000.0), Clock(1_000_000.0 - behind)
    one, other = sealing(clock), sealing(slow)
    if behind > FRESH_S:
        assert refusal(one, other.add(b"too old", THERE), THERE) == "replay"
    assert other.check(one.add(b"hello", HERE), HERE) == b"hello"
    assert one.check(other.add(b"hello", THERE), THERE) == b"hello"
    slow.seconds -= 5  # somebody sets it back
    assert one.check(other.add(b"again", THERE), THERE) == b"again"


def test_a_restarted_node_is_believed_as_soon_as_it_has_heard_somebody() -> None:
    clock, slow = Clock(), Clock(10.0)
    neighbour, former = sealing(clock), sealing(clock)
    recorded = former.add(b"before", HERE)
    assert neighbour.check(recorded, HERE)
    restarted = sealing(slow)
    assert refusal(neighbour, restarted.add(b"greeting", HERE)) == "replay"
    clock.seconds += 1
    slow.seconds += 1
    assert restarted.check(neighbour.add(b"hello", THERE), THERE)
    assert neighbour.check(restarted.add(b"greeting", HERE), HERE) == b"greeting"
    assert refusal(neighbour, recorded) == "replay"


@pytest.mark.parametrize("ahead_s", [(1 << 62) / SECOND - 5, (1 << 53) / 1000, (1 << 64) / 1000 - 5])
def test_a_member_that_stamps_the_far_future_ends_nothing(ahead_s: float) -> None:
    """One such packet took the group's time to where it ended: nobody believed anybody, for good."""
    clock = Clock(1_800_000_000.0)
    seals = one, *_ = [sealing(clock) for _ in range(3)]
    for _ in range(20):
        packet = sealing(Clock(ahead_s)).add(b"far", 9)
        with suppress(Unsealed):
            one.check(packet, 9)  # the others do not hear it
    for _ in range(2):
        clock.seconds += 10
        for address, sender in enumerate(seals):
            receivers = [each for each in seals if each is not sender]
            data = sender.add(b"hello", address)
            assert [each.check(data, address) for each in receivers] == [b"hello"] * 2
            assert [refusal(each, data, address) for each in receivers] == ["replay"] * 2
    restarted = sealing(clock)
    for _ in range(2):  # the first may take it less than all the way
        clock.seconds += 1
        with suppress(Unsealed):
            restarted.check(one.add(b"hello", HERE), HERE)
    assert one.check(restarted.add(b"hello", THERE), THERE)


def test_a_node_that_is_several_leaps_behind_catches_up() -> None:
    clock = Clock(1_800_000_000.0)
    one = sealing(clock)
    for _ in range(5):
        clock.seconds += 1
        with suppress(Unsealed):
            one.check(sealing(Clock((1 << 53) / 1000)).add(b"far", 9), 9)
    restarted = sealing(clock)
    heard = 0
    for _ in range(10):
        clock.seconds += 1
        with suppress(Unsealed):
            restarted.check(one.add(b"hello", HERE), HERE)
            heard += 1
    assert heard == 6
    assert one.check(restarted.add(b"hello", THERE), THERE)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing_seal, "_MOST_SENDERS", 8)
    clock = Clock()
    receiver, sender = sealing(clock), sealing(clock)
    for address in range(20):
        data = sender.add(b"x", address)
        assert receiver.check(data, address)
        assert refusal(receiver, data, address) == "replay"
    assert len(receiver._latest) <= 8


def test_a_key_without_bytes_is_none() -> None:
    with pytest.raises(ValueError):
        Seal(b"", "olsr", Clock())


def test_a_sealed_packet_is_still_olsr_and_comes_back_as_it_was() -> None:
    hello = wire.Message(wire.LQ_HELLO, 5, HERE, 1, 0, 1, bytes((0, 0, 5, 3)))
    packet = wire.encode_packet(7, [hello])
    data = olsr.seal_packet(sealing(), packet, HERE)
    read = wire.decode_packet(data)
    assert (read.seqno, read.messages[0]) == (7, hello)
    (seal,) = read.messages[1:]
    assert (seal.kind, seal.ttl, seal.originator, len(seal.body)) == (olsr.SEALED, 1, HERE, SIZE)
    assert olsr.open_packet(sealing(), data, HERE) == packet
    with pytest.raises(Unsealed):
        olsr.open_packet(sealing(), sealing().add(b"short", HERE), HERE)
    with pytest.raises(Unsealed):
        aodv.open_message(sealing(), sealing().add(b"no extension", HERE), HERE)


def refused(service: OlsrService) -> Counter[str]:
    return Counter({each.reason: each.count for each in service.daemon.counters.refusals})


def test_olsr_nodes_with_one_key_find_each_other_and_nobody_else() -> None:
    line = Line(key=KEY, other_key={"n3": b"another key"})
    line.until(CONVERGED_S)
    assert line.next_hops("n1") == {"n2": "n2", "n3": None}
    assert line.next_hops("n3") == {"n1": None, "n2": None}
    assert set(refused(line.services["n2"])) == {"unauthenticated"}
    assert not refused(line.services["n1"])
    sent = line.services["n1"].daemon.counters.as_dict()
    assert sent["SEAL"]["sent"] == sent["packet"]["sent"] > 20
    assert sent["SEAL"]["sent_bytes"] == olsr.OVERHEAD * sent["SEAL"]["sent"]


def test_sealed_olsr_makes_the_routes_that_it_makes_without() -> None:
    sealed, bare = Line(key=KEY), Line()
    for line in (sealed, bare):
        line.until(CONVERGED_S)
    assert [sealed.next_hops(node) for node in sealed.nodes] == [bare.next_hops(node) for node in bare.nodes]


def test_a_packet_with_its_seal_fits() -> None:
    class NoBroadcast:
        async def open(self, *_: object) -> None:
            raise AssertionError

    for mtu in (1500, MOST_MTU, 65535):
        interface = Interface("wlan0", HERE, mtu)
        service = OlsrService(
            FAST,
            [interface],
            NoBroadcast(),  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            lambda: 0,
            random.Random(1),
            seal=sealing(),
        )
        (view,) = service.daemon.view(0).interfaces
        assert view.mtu + 28 + olsr.OVERHEAD == min(mtu, MOST_MTU)


@pytest.mark.parametrize("detection", ["feedback", "hello"])
def test_aodv_nodes_with_one_key_find_each_other_and_nobody_else(detection: str) -> None:
    world = AodvWorld(LINE, AodvConfig(detection=detection), key=KEY, other_key={"d": b"other"})  # type: ignore[arg-type]
    received: list[bytes] = []

    async def scenario() -> None:
        for node in ("c", "d"):
            await world.ports[node].datagrams(5000, lambda data, sender: received.append(data))
        socket = await world.ports["a"].datagrams(5000, lambda data, sender: None)
        for node in ("c", "d"):
            socket.send(node.encode(), Address(world.addresses[node], 5000))
        await world.ports["a"].sleep(10)
        for service in world.services.values():
            counted = Counter(each.reason for each in service.counters.refusals)
            assert set(counted) <= {"unauthenticated"}
        assert world.services["d"].core.counters.refusals.total > 0

    world.run(scenario)
    assert received == [b"c"]


def test_a_key_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_key(str(file))
    file.write_text("a long enough secret\n")
    file.chmod(0o644)
    with pytest.raises(ValueError, match=r"others can read the key .*: chmod 600"):
        read_key(str(file))
    file.chmod(0o600)
    assert len(read_key(str(file))) == 32
    again = tmp_path / "again"
    again.touch(0o600)
    again.write_text("a long enough secret")
    assert read_key(str(again)) == read_key(str(file))
    again.write_text("short")
    with pytest.raises(ValueError, match="has 5 bytes, and needs 16 to 4096"):
        read_key(str(again))
