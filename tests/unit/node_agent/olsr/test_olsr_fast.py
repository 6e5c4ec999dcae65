"""Our own link metric: signals, their trends, frames given up, silence, and olsrd's arithmetic beside it."""

import random
from collections.abc import Iterator

import msgspec
import pytest

from node_agent.model.link_layer import LinkReading
from node_agent.olsr import greeting, hello, quality, validity, wire
from node_agent.olsr.config import OlsrConfig, Quality
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.fast import Fast, delivery
from node_agent.olsr.quality import EtxFf, cost
from node_agent.olsr.sensitivity import Sensitivity
from node_agent.olsr.signal_trend import SignalTrend
from tests.unit.olsr_network import SECOND, Network, address, edges, line

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

SENSITIVITY = -90.0
KNOWN = Sensitivity()
KNOWN.known = SENSITIVITY


def meter(spoken: bool = True) -> Fast:
    made = Fast(EtxFf(0))
    made.spoken = spoken
    return made


def readings(signals: list[float], **counts: int) -> Iterator[LinkReading]:
    for number, signal in enumerate(signals, start=1):
        yield LinkReading(number, counts.get("acknowledged", 0), 0, counts.get("failed", 0), signal)


def observed(signals: list[float], step_s: float = 0.5) -> Fast:
    made = meter()
    for number, reading in enumerate(readings(signals)):
        made.observe(reading, KNOWN, 1.0, number * step_s)
    return made


def test_a_new_link_with_a_good_signal_is_believed_at_once() -> None:
    assert cost(observed([-70.0]).quality, observed([-70.0]).quality) == quality.SCALE


def test_a_link_at_the_sensitivity_costs_two_transmissions() -> None:
    half = observed([SENSITIVITY]).quality
    assert cost(half, half) / quality.SCALE == pytest.approx(2.0, rel=0.02)
    assert delivery(-5.0) < 0.001 < 0.999 < delivery(5.0)


def test_a_signal_that_falls_makes_a_link_dear_before_it_breaks() -> None:
    """1 dB a second: at -89 dBm it still works, and will not a second later."""
    falling = observed([-85.0, -85.5, -86.0, -86.5, -87.0, -87.5, -88.0, -88.5, -89.0])
    steady = observed([-89.0] * 9)
    rising = observed([-93.0, -92.5, -92.0, -91.5, -91.0, -90.5, -90.0, -89.5, -89.0])
    assert falling.quality < steady.quality < rising.quality
    assert cost(falling.quality, falling.quality) > 2 * cost(steady.quality, steady.quality)


def test_frames_that_were_given_up_cast_doubt_and_an_answer_removes_it() -> None:
    link = meter()
    link.observe(LinkReading(1, 0, 0, 0, -70.0), KNOWN, 1.0, 0.0)
    link.observe(LinkReading(1, 0, 14, 2, -70.0), KNOWN, 1.0, 0.25)
    doubted = link.quality
    assert doubted < 200
    link.observe(LinkReading(1, 0, 35, 5, -70.0), KNOWN, 1.0, 0.5)
    assert link.quality < doubted
    assert link.observe(LinkReading(1, 1, 35, 5, -70.0), KNOWN, 1.0, 0.75)
    assert link.quality == 255


def test_hellos_remove_doubt_where_nothing_is_sent_any_more() -> None:
    link = meter()
    link.observe(LinkReading(1, 0, 0, 0, -70.0), KNOWN, 1.0, 0.0)
    link.observe(LinkReading(1, 0, 21, 3, -70.0), KNOWN, 1.0, 0.25)
    for second in range(1, 4):
        link.hello()
        link.observe(LinkReading(1 + second, 0, 21, 3, -70.0), KNOWN, 1.0, second)
    assert link.quality == 255


def test_a_silent_link_fades_and_is_gone_after_four_hello_intervals() -> None:
    link = observed([-70.0])
    fading = []
    for tenths in range(0, 45, 5):
        link.observe(LinkReading(1, 0, 0, 0, -70.0), KNOWN, 1.0, tenths / 10)
        fading.append(link.quality)
    assert fading[:4] == [255] * 4
    assert fading == sorted(fading, reverse=True)
    assert fading[-1] == 0


def test_hellos_keep_a_link_alive_whose_radio_says_nothing_new() -> None:
    link = observed([-70.0])
    for second in range(1, 10):
        link.hello()
        link.observe(LinkReading(1, 0, 0, 0, -70.0), KNOWN, 1.0, second)
    assert link.quality == 255


def test_without_signals_the_last_hellos_count() -> None:
    link = meter()
    link.hello()
    link.observe(None, Sensitivity(), 1.0, 0.0)
    assert link.quality == 255
    for _ in range(8):
        link.lost()
    link.observe(None, Sensitivity(), 1.0, 1.0)
    assert 0 < link.quality < 100


def test_a_neighbour_that_does_not_announce_it_is_rated_as_olsrd_does() -> None:
    ours, theirs = meter(spoken=False), EtxFf(0)
    draw = random.Random(1)
    for second in range(1, 60):
        if draw.random() < 0.8:
            ours.packet(second)
            ours.hello()
            theirs.packet(second)
        else:
            ours.lost()
            theirs.lost()
        for each in (ours, theirs):
            each.tick(1000)
        ours.observe(LinkReading(second, 0, 0, 0, -60.0), KNOWN, 1.0, second)
        assert ours.quality == theirs.quality


def test_a_trend_is_a_line_and_scatter_draws_it_flat() -> None:
    straight, noisy = SignalTrend(), SignalTrend()
    draw = random.Random(1)
    for step in range(12):
        straight.add(step / 4, -80.0 - step / 4)
        noisy.add(step / 4, -80.0 + draw.gauss(0, 3))
    assert straight.predicted(12 / 4 + 0.75) == pytest.approx(-83.75, abs=0.01)
    assert abs(noisy.predicted(4.5) - noisy.predicted(2.75)) < 2.0
    assert straight.predicted(100.0) == pytest.approx(-82.75 - 4.0)


def test_where_the_radio_does_not_say_it_the_sensitivity_is_learnt_from_lost_frames() -> None:
    assert Sensitivity().dbm is None
    learnt = Sensitivity()
    for signal in (-70.0, -93.0, -88.0):
        learnt.heard(signal)
    assert learnt.dbm == -93.0, "whatever was heard may be used"
    learnt.learn(-70.0, 90, 10)
    learnt.learn(-91.5, 1, 13)
    assert learnt.dbm == -91.0
    learnt.learn(-88.5, 40, 20)
    assert learnt.dbm == -91.0
    learnt.known = -85.0
    assert learnt.dbm == -85.0


def test_losses_at_strong_signals_say_nothing_about_the_sensitivity() -> None:
    """Hidden nodes destroy frames of any signal."""
    learnt = Sensitivity()
    for signal in (-60.0, -80.0):
        learnt.heard(signal)
    learnt.learn(-60.0, 30, 70)
    learnt.learn(-80.0, 30, 70)
    assert learnt.dbm == -80.0


def test_what_was_learnt_fades_so_that_links_are_tried_again() -> None:
    learnt = Sensitivity()
    learnt.heard(-95.0)
    learnt.learn(-70.0, 500, 0)
    learnt.learn(-91.5, 0, 14)
    assert learnt.dbm == -91.0
    for _ in range(100):
        learnt.forget()
    assert learnt.dbm == -95.0


def test_a_greeting_names_the_hardware_address_and_later_versions_may_be_longer() -> None:
    hardware = bytes.fromhex("025200000107")
    assert greeting.decode(greeting.encode(hardware)) == hardware
    assert greeting.decode(greeting.encode(hardware) + b"more") == hardware
    for bad in (b"", b"\x01", bytes(8)):
        with pytest.raises(wire.Malformed):
            greeting.decode(bad)


def test_every_hello_is_led_by_a_greeting_that_goes_one_hop() -> None:
    network = Network([1, 2], edges((1, 2)), OlsrConfig(hello_interval=1.0, tc_interval=1.0, quality="fast"))
    network.record = True
    network.run(10)
    packets = [wire.decode_packet(out.data).messages for _, _, out in network.sent]
    with_hello = [messages for messages in packets if messages[-1].kind == wire.LQ_HELLO]
    assert len(with_hello) >= 18
    for messages in with_hello:
        (greeted,) = [each for each in messages if each.kind == greeting.GREETING]
        assert (greeted.ttl, greeted.hops) == (1, 0)


def test_a_line_of_both_kinds_gets_routes_end_to_end() -> None:
    """Nodes 2 and 4 are olsrd's kind. Costs agree, as both ends of each link count alike."""
    theirs = OlsrConfig(hello_interval=1.0, tc_interval=1.0)
    ours = msgspec.structs.replace(theirs, quality="fast")
    network = Network(range(1, 6), edges(*line(range(1, 6))), ours, configs={2: theirs, 4: theirs})
    network.run(60)
    assert network.routes(1) == {2: 1, 3: 2, 4: 3, 5: 4}
    assert network.daemons[1].routes(network.now)[address(5)].cost == pytest.approx(4.0, rel=0.01)
    assert not any(list(daemon.counters.refusals) for daemon in network.daemons.values())


def test_a_neighbour_that_restarts_as_olsrds_kind_is_rated_like_that_from_its_second_hello() -> None:
    """Node 2 comes back within the validity of its link."""
    theirs = OlsrConfig(hello_interval=1.0, hello_validity=20.0, tc_interval=1.0)
    ours = msgspec.structs.replace(theirs, quality="fast")
    configs = {2: ours}
    network = Network([1, 2], edges((1, 2)), ours, configs=configs)
    network.run(40)
    assert speaks(network, 1, 2)
    configs[2] = theirs
    network.stop(2)
    network.start(2, restarts=1)
    assert network.seconds_until(lambda: not speaks(network, 1, 2), 10) <= 2.5
    (link,) = network.daemons[1]._neighbourhood.each_link()
    assert isinstance(link.meter, Fast)
    assert link.hardware == b""
    network.loss = edges((1, 2), loss=0.3)
    network.run(60)
    assert not speaks(network, 1, 2)
    assert link.meter.quality == link.meter._fallback.quality < 230
    configs[2] = ours
    network.stop(2)
    network.start(2, restarts=2)
    network.run(10)
    assert speaks(network, 1, 2)


def test_one_lost_greeting_changes_nothing() -> None:
    """HELLO and greeting may be in two packets, of which one gets lost."""
    neighbour, hardware = address(2), bytes.fromhex("025200000002")
    config = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, quality="fast")
    here = Olsr(config, [Interface("wlan0", address(1))], random.Random(1), 0)
    there = Olsr(config, [Interface("wlan0", neighbour, 1500, hardware)], random.Random(2), 0)
    now = exchanged(here, {2: there}, 6)
    (link,) = here._neighbourhood.each_link()
    (body,) = hello.compose([], 1.0, 3, 100)
    message = wire.Message(wire.LQ_HELLO, validity.encode(4.0), neighbour, 1, 0, 1, body)
    hello_only = wire.encode_packet(1, [message])
    here.receive(hello_only, 0, neighbour, link.greeted_ns + SECOND)
    assert link.hardware == hardware
    here.receive(hello_only, 0, neighbour, max(now, link.greeted_ns + 2 * SECOND))
    assert link.hardware == b""


def speaks(network: Network, node: int, neighbour: int) -> bool:
    """Whether a node rates the link to its neighbour by our own metric."""
    link = network.daemons[node]._neighbourhood.links[0][address(neighbour)]
    return isinstance(link.meter, Fast) and link.meter.spoken


def test_a_new_link_is_used_within_seconds_not_half_a_minute() -> None:
    def seconds(name: Quality) -> float:
        config = OlsrConfig(hello_interval=1.0, tc_interval=1.0, quality=name)
        network = Network([1, 2], edges((1, 2)), config)

        def good() -> bool:
            route = network.daemons[1].routes(network.now).get(address(2))
            return route is not None and route.cost < 1.1

        return network.seconds_until(good, 60)

    assert seconds("fast") < 5 < 20 < seconds("etx_ff")


class Radio:
    """A radio whose signal the test sets."""

    def __init__(self, hardware: bytes, signal_dbm: float) -> None:
        self.sensitivity_dbm = SENSITIVITY
        self.hardware = hardware
        self.reading = LinkReading(1, 0, 0, 0, signal_dbm)
        self.answers = 0
        """How many frames are acknowledged from one look to the next."""

    def read(self) -> dict[bytes, LinkReading]:
        received, acknowledged, *_ = self.reading
        self.reading = self.reading._replace(received=received + 1, acknowledged=acknowledged + self.answers)
        return {self.hardware: self.reading}


def test_routes_follow_what_the_radio_says_between_two_hellos() -> None:
    hardware = bytes.fromhex("025200000002")
    radio = Radio(hardware, -70.0)
    config = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, quality="fast")
    here = Olsr(config, [Interface("wlan0", address(1))], random.Random(1), 0, link_layer=radio)
    there = Olsr(config, [Interface("wlan0", address(2), 1500, hardware)], random.Random(2), 0)
    now = 0
    while now < 6 * SECOND:
        now = min(here.next_wake_ns(), there.next_wake_ns())
        for daemon, other, sender in ((here, there, address(1)), (there, here, address(2))):
            if daemon.next_wake_ns() <= now:
                for out in daemon.wake(now):
                    other.receive(out.data, 0, sender, now)
    assert here.routes(now)[address(2)].cost == pytest.approx(1.0, abs=0.01)
    changes = here.urgent_changes
    radio.reading = radio.reading._replace(failed=radio.reading.failed + 6)
    while now < 6.4 * SECOND:
        now = max(now + 1, here.next_wake_ns())
        here.wake(now)
    found = here.routes(now).get(address(2))
    assert found is None or found.cost > 2.5
    assert here.urgent_changes >= changes


def exchanged(here: Olsr, others: dict[int, Olsr], until_s: float) -> int:
    """Lets ``here`` and others exchange packets. Returns the time."""
    now, daemons = 0, {1: here, **others}
    while now < until_s * SECOND:
        now = min(each.next_wake_ns() for each in daemons.values())
        for number, daemon in daemons.items():
            if daemon.next_wake_ns() <= now:
                for out in daemon.wake(now):
                    for other in others.values() if number == 1 else [here]:
                        other.receive(out.data, 0, address(number), now)
    return now


def test_what_the_radio_knows_of_one_neighbour_is_not_believed_of_another() -> None:
    """Node 3 claims the hardware address of node 2, and falls silent: its link must not live on 2's ACKs."""
    hardware = bytes.fromhex("025200000002")
    radio = Radio(hardware, -70.0)
    config = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, quality="fast")
    here = Olsr(config, [Interface("wlan0", address(1))], random.Random(1), 0, link_layer=radio)
    claimed = {2: Olsr(config, [Interface("wlan0", address(2), 1500, hardware)], random.Random(2), 0)}
    exchanged(here, claimed, 4)
    claimed[3] = Olsr(config, [Interface("wlan0", address(3), 1500, hardware)], random.Random(3), 4 * SECOND)
    now = exchanged(here, claimed, 8)
    assert {refusal.reason for refusal in here.counters.refusals} == {"identity"}
    assert {*here.routes(now)} == {address(2), address(3)}
    radio.answers = 1
    now = exchanged(here, {2: claimed[2]}, 14)
    assert {*here.routes(now)} == {address(2)}


def test_acknowledgements_keep_a_link_without_hellos_only_for_a_time() -> None:
    hardware = bytes.fromhex("025200000002")
    radio = Radio(hardware, -70.0)
    config = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, quality="fast")
    here = Olsr(config, [Interface("wlan0", address(1))], random.Random(1), 0, link_layer=radio)
    there = Olsr(config, [Interface("wlan0", address(2), 1500, hardware)], random.Random(2), 0)
    begin = now = exchanged(here, {2: there}, 6)
    kept, radio.answers = 0, 1
    while now < begin + 30 * SECOND:
        now = max(now + 1, here.next_wake_ns())
        here.wake(now)
        kept = now if address(2) in here.routes(now) else kept
    assert 12 * SECOND < kept - begin <= 16 * SECOND
