"""The MAC, event by event: timing, collisions, capture, reservations, retries, and that nothing gets lost."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.radio.channel import Channel, Position, build_channel
from orchestrator.radio.contention import NEVER
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.path_loss.matrix import LinkMatrix
from orchestrator.radio.presets import ns3_range, seed_80211b
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.station import EVERYONE, Outgoing

US = 1000
FULL = 1512  # 1308 µs at 11 Mb/s with a long preamble
DATA, ACK, SIFS, DIFS, SLOT, EIFS = 1308 * US, 203 * US, 10 * US, 50 * US, 20 * US, 364 * US


class World:
    """Frames by node, and what became of them when."""

    def __init__(self, channel: Channel, mac: Mac, seed: int = 1) -> None:
        self.queues: list[list[Outgoing]] = [[] for _ in range(channel.node_count)]
        self.arrived: list[tuple[int, int, int, object]] = []
        self.given_up: list[tuple[int, object]] = []
        self.dcf = Dcf(channel, mac, random.Random(seed), self._pull, self._deliver, self._give_up)

    def send(self, at: int, source: int, destination: int, size: int = FULL, payload: object = None) -> None:
        self.dcf.run_until(at - 1)  # what happens at that instant happens together
        self.queues[source].append(Outgoing(destination, size, payload))
        self.dcf.offer(source, at)

    def finish(self) -> None:
        for _ in range(1_000_000):
            if (at := self.dcf.next_event_ns()) == NEVER:
                return
            self.dcf.run_until(at)
        raise AssertionError("the medium never comes to rest")

    def _pull(self, node: int) -> Outgoing | None:
        return self.queues[node].pop(0) if self.queues[node] else None

    def _deliver(self, receiver: int, sender: int, frame: Outgoing) -> None:
        self.arrived.append((self.dcf.now_ns, receiver, sender, frame.payload))

    def _give_up(self, sender: int, frame: Outgoing) -> None:
        self.given_up.append((sender, frame.payload))


def line(
    *x: float,
    radio: Radio | None = None,
    mac: Mac | None = None,
    loss: Sequence[Sequence[float]] | None = None,
) -> World:
    mac = mac or Mac()
    positions: list[Position] = [(at, 0.0) for at in x]
    matrix = LinkMatrix(loss) if loss is not None else None
    return World(build_channel(radio or ns3_range(250), mac, positions, matrix), mac)


def test_an_idle_medium_is_used_at_once() -> None:
    world = line(0, 100)
    world.send(7_000, 0, 1)
    world.finish()
    assert world.arrived == [(7_000 + DATA, 1, 0, None)]
    assert world.dcf.stations[0].acknowledged == 1


def test_events_alone_leave_the_clock_at_the_last_of_them() -> None:
    world = line(0, 100)
    world.send(7_000, 0, 1)
    world.dcf.run_events(7_000 + DATA - 1)
    assert world.dcf.now_ns == 7_000 and world.arrived == []
    world.dcf.run_events(7_000 + DATA + 1)
    assert world.dcf.now_ns == 7_000 + DATA
    assert world.arrived == [(7_000 + DATA, 1, 0, None)]


def test_the_next_frame_waits_for_ack_difs_and_backoff() -> None:
    world = line(0, 100)
    world.send(0, 0, 1)
    world.send(0, 0, 1)
    world.finish()
    waited = world.arrived[1][0] - (DATA + SIFS + ACK + DIFS) - DATA
    assert waited % SLOT == 0 and 0 <= waited // SLOT <= 31


def test_a_broadcast_reaches_everyone_in_range_and_nobody_answers() -> None:
    world = line(0, 100, 200, 400)
    world.send(0, 1, EVERYONE)
    world.finish()
    assert world.arrived == [(DATA, 0, 1, None), (DATA, 2, 1, None)]
    assert world.dcf.stations[1].timeouts == 0


def test_rts_and_cts_come_before_the_data() -> None:
    world = line(0, 100, mac=Mac(rts_from_bytes=1000, control_rate=1.0))
    world.send(0, 0, 1)
    world.finish()
    assert world.arrived[0][0] == (192 + 160 + 10 + 192 + 112 + 10) * US + DATA
    world.send(10**9, 0, 1, size=200)
    world.finish()
    assert world.arrived[1][0] == 10**9 + (192 + 162) * US


def test_two_that_start_together_collide_and_try_again() -> None:
    world = line(0, 50, 100, 150)
    world.send(0, 0, 1)
    world.send(0, 2, 3)
    world.dcf.run_until(2 * DATA)
    assert [station.timeouts for station in world.dcf.stations] == [1, 0, 1, 0]
    assert not world.arrived
    world.finish()
    assert len(world.arrived) == 2


def test_the_stronger_of_two_is_captured() -> None:
    # Node 1 gets node 0 at 20 dB above node 2.
    loss = [[0, 60, 60], [60, 0, 60], [60, 80, 0]]
    world = line(0, 0, 0, radio=seed_80211b(), loss=loss)
    world.send(0, 2, 1)
    world.send(0, 0, 1)
    world.dcf.run_until(DATA)
    assert [sender for _, _, sender, _ in world.arrived] == [0]


@pytest.mark.parametrize(("capture_db", "winner"), [(10.0, [0]), (None, [])])
def test_a_much_stronger_late_comer_takes_the_receiver_if_capture_is_on(
    capture_db: float | None, winner: list[int]
) -> None:
    base = seed_80211b()
    radio = Radio(base.path_loss, base.reception, tx_power_dbm=-10.0, capture_db=capture_db)
    # 0 and 2 do not hear each other; node 1 hears both, node 0 20 dB stronger.
    loss = [[0.0, 60.0, math.inf], [60.0, 0.0, 80.0], [math.inf, 80.0, 0.0]]
    world = line(0, 0, 0, radio=radio, loss=loss)
    world.send(0, 2, 1)
    world.send(500 * US, 0, 1)
    world.dcf.run_until(500 * US + DATA)
    assert [sender for _, _, sender, _ in world.arrived] == winner


def test_hidden_terminals_destroy_each_others_frames() -> None:
    world = line(0, 200, 400)
    world.send(0, 0, 1)
    world.send(1000 * US, 2, 1)
    world.dcf.run_until(3000 * US)
    assert world.dcf.stations[0].timeouts == world.dcf.stations[2].timeouts == 1
    world.finish()
    assert len(world.arrived) == 2


def test_who_decodes_the_data_stays_silent_for_the_ack_it_cannot_hear() -> None:
    world = line(0, 200, 400)
    world.send(0, 1, 2)
    world.send(600 * US, 0, 1)
    world.finish()
    began = world.arrived[1][0] - DATA
    waited = began - (DATA + SIFS + ACK + DIFS)
    assert waited >= 0 and waited % SLOT == 0


def test_who_cannot_decode_waits_for_eifs() -> None:
    # 0 is 550 m from 1: it notices the frame to 2 (which it does not hear), but cannot decode it.
    world = line(0, 550, 700, -50, radio=seed_80211b())
    world.send(0, 1, 2)
    world.send(600 * US, 0, 3)
    world.finish()
    began = world.arrived[1][0] - DATA
    assert began >= DATA + EIFS and (began - DATA - EIFS) % SLOT == 0


def test_a_lost_ack_costs_retries_but_delivers_once() -> None:
    world = line(0, 0, radio=seed_80211b(), loss=[[0, 60], [math.inf, 0]])
    world.send(0, 0, 1, payload="x")
    world.finish()
    assert [payload for *_, payload in world.arrived] == ["x"]
    assert world.given_up == [(0, "x")]
    sender = world.dcf.stations[0]
    assert (sender.link_attempts[1], sender.link_received[1], sender.timeouts) == (7, 7, 7)


def test_nobody_there_means_seven_transmissions_and_a_fresh_window() -> None:
    world = line(0, 1000)
    world.send(0, 0, 1)
    world.finish()
    assert world.dcf.stations[0].link_attempts[1] == 7
    assert world.dcf.stations[0].window == 31


def test_an_aborted_reservation_is_forgotten() -> None:
    """An RTS into the void must not silence its hearers for the length of the data."""
    world = line(0, 200, 1000, mac=Mac(rts_from_bytes=0, attempts=1))
    world.send(0, 0, 2)
    world.send(100 * US, 1, EVERYONE)
    world.dcf.run_until(3000 * US)
    assert len(world.arrived) == 1


@pytest.mark.parametrize("senders", [2, 5])
def test_contenders_share_alike(senders: int) -> None:
    world = line(*range(2 * senders))
    for sender in range(senders):
        for _ in range(3000):
            world.queues[2 * sender].append(Outgoing(2 * sender + 1, 200, None))
        world.dcf.offer(2 * sender, 0)
    world.dcf.run_until(10**9)
    shares = Counter(sender for _, _, sender, _ in world.arrived)
    assert min(shares.values()) > 0.8 * max(shares.values())


def test_whoever_moves_away_while_others_talk_is_not_forgotten() -> None:
    mac = Mac()
    near = build_channel(ns3_range(250), mac, [(0, 0), (100, 0), (50, 0), (60, 0)])
    far = build_channel(ns3_range(250), mac, [(0, 0), (100, 0), (5000, 0), (5010, 0)])
    world = World(near, mac)
    world.send(0, 0, 1)
    world.send(100 * US, 2, 3)
    world.dcf.run_until(200 * US)
    world.dcf.move(far, 200 * US)
    world.dcf.run_until(200 * US + DATA + DIFS + 32 * SLOT)
    assert 3 in [receiver for _, receiver, _, _ in world.arrived]
    world.dcf.move(near, world.dcf.now_ns)
    world.finish()
    assert len(world.arrived) == 2


def test_whose_turn_comes_just_as_it_must_answer_answers() -> None:
    mac = Mac(control_rate=2.0, rts_from_bytes=0)
    rts = (192 + 80) * US
    heard, unheard = (
        build_channel(seed_80211b(), mac, [(0, 0), (at, 0), (at + 100, 0)]) for at in (632.0, 633.0)
    )
    world = World(heard, mac)
    world.send(0, 0, 1)
    world.send(100 * US, 1, 2)
    # It leaves the range at such a moment that its own countdown, begun then, ends together with SIFS.
    waiting = DIFS + world.dcf.stations[1].backoff * SLOT
    moved = rts + SIFS - waiting
    world.dcf.run_until(moved)
    world.dcf.move(unheard, moved)
    world.finish()
    assert world.dcf.on_air == 0
    assert {receiver for _, receiver, _, _ in world.arrived} >= {2}


Traffic = list[tuple[int, int, int, int]]

TRAFFIC = st.lists(
    st.tuples(
        st.integers(0, 20_000 * US),
        st.integers(0, 5),
        st.integers(-1, 5),
        st.sampled_from([60, 500, FULL]),
    ),
    max_size=40,
)
PLACES = st.lists(st.tuples(st.floats(0, 900), st.floats(0, 300)), min_size=6, max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    traffic=TRAFFIC,
    places=st.lists(PLACES, min_size=1, max_size=3),
    rts=st.booleans(),
    seed_radio=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_each_frame_is_acknowledged_or_given_up_once_and_delivered_at_most_once(
    traffic: Traffic, places: list[list[Position]], rts: bool, seed_radio: bool, seed: int
) -> None:
    mac = Mac(rts_from_bytes=200 if rts else None, attempts=3)
    radio = seed_80211b() if seed_radio else ns3_range(250)
    channels = [build_channel(radio, mac, positions) for positions in places]
    world = World(channels[0], mac, seed)
    unicasts: Counter[int] = Counter()
    broadcasts: Counter[int] = Counter()
    for number, (at, source, destination, size) in enumerate(sorted(traffic)):
        if destination == source:
            continue
        world.send(at, source, destination, size, number)
        (unicasts if destination >= 0 else broadcasts)[source] += 1
        if len(channels) > 1 and number % 5 == 4:
            world.dcf.move(channels[number // 5 % len(channels)], at)
    world.finish()

    assert all(count == 1 for count in Counter((r, p) for _, r, _, p in world.arrived).values())
    assert all(count == 1 for count in Counter(p for _, p in world.given_up).values())
    for station in world.dcf.stations:
        assert station.acknowledged + station.given_up == unicasts[station.index]
        assert station.broadcasts == broadcasts[station.index]
        assert station.head is None
    assert world.dcf.on_air == world.dcf.locked == 0
