"""Link quality: olsrd's figures, digit for digit, and what a lossy link settles at."""

import random
import statistics

import pytest

from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.quality import BROKEN, SCALE, EtxFf, EtxFloat, cost
from tests.unit.olsr_network import Network, edges


def _climb(seconds: int, every: float) -> list[int]:
    """Quality after each second of a lossless link with a packet every so often."""
    meter, seen, due = EtxFf(seqno=65530), [], every
    seqno = 65530
    for second in range(1, seconds + 1):
        while due <= second:
            seqno = (seqno + 1) & 0xFFFF
            meter.packet(seqno)
            due += every
        meter.tick(2000)
        seen.append(meter.quality)
    return seen


def test_a_lossless_link_climbs_like_olsrds() -> None:
    seen = _climb(36, every=1.8)
    # Seen on the wire: 6 % at 3 s, 16 % at 7 s, 28 % at 12 s, 37 % at 18 s, 46 % at 26 s, 100 % at 35 s.
    for second, percent in ((3, 6), (7, 16), (12, 28), (18, 38), (26, 47)):
        assert abs(seen[second - 1] / 2.55 - percent) <= 4, second
    assert 55 < seen[29] / 2.55 < 80
    assert seen[34] == 255
    # These very bytes are in olsrd's packets: the fixed-point ratio is cut to ten bits.
    assert [q for q in dict.fromkeys(seen) if q][:10] == [15, 29, 42, 53, 63, 72, 80, 88, 95, 101]


def test_a_packet_that_comes_twice_counts_once_and_a_jump_is_a_restart() -> None:
    meter = EtxFf(seqno=7)
    for seqno in (8, 8, 8, 40_000, 40_001):
        meter.packet(seqno)
    meter.tick(2000)
    assert meter.quality == (3 * 1024 // (3 + 15)) * 255 >> 10


def test_missing_hellos_lower_the_quality_before_the_gap_is_seen() -> None:
    meter = EtxFf(seqno=0)
    for seqno in range(1, 41):
        meter.packet(seqno)
        meter.tick(2000)
    assert meter.quality == 255
    qualities = []
    for _ in range(4):
        meter.lost()
        meter.tick(2000)
        qualities.append(meter.quality)
    assert qualities[0] == 255 and qualities[1] < 240
    assert qualities == sorted(qualities, reverse=True)


def test_etx_float_is_a_mean_that_forgets() -> None:
    meter = EtxFloat(seqno=0)
    meter.hello()
    assert meter.quality == 64
    for _ in range(11):
        meter.hello()
    assert meter.quality == pytest.approx(255 * (1 - 0.75**12), abs=1)
    before = meter.quality
    meter.lost()
    assert meter.quality == pytest.approx(before * 0.95, abs=1)


def test_costs_are_etx_and_useless_links_are_broken() -> None:
    assert cost(255, 255) == SCALE
    assert cost(223, 212) / SCALE == 1.375
    assert cost(24, 255) == cost(255, 24) == BROKEN
    assert cost(25, 25) < BROKEN


@pytest.mark.parametrize("loss", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("quality", ["etx_ff", "etx_float"])
def test_etx_of_a_lossy_link_settles_where_it_should(loss: float, quality: str) -> None:
    config = OlsrConfig(hello_interval=1.0, hello_validity=20.0, quality=quality)  # type: ignore[arg-type]
    costs: list[float] = []
    for seed in range(4):
        network = Network([1, 2], edges((1, 2), loss=loss), config, seed)
        network.run(60)
        for _ in range(150):
            network.run(4)
            for node in (1, 2):
                costs.extend(
                    link.cost
                    for link in network.daemons[node].view(network.now).links
                    if link.cost is not None
                )
    assert statistics.median(costs) == pytest.approx((1 - loss) ** -2, rel=0.15)


def test_a_meter_survives_any_packet_counter() -> None:
    rng = random.Random(1)
    meter = EtxFf(seqno=0)
    for _ in range(5000):
        for _ in range(rng.randrange(4)):
            meter.packet(rng.randrange(65536))
        if rng.random() < 0.3:
            meter.lost()
        meter.tick(rng.choice((0, 62, 2000, 4_000_000)))
        assert 0 <= meter.quality <= 255
