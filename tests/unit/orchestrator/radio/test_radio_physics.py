"""Path loss, reception curves, airtimes and channels against hand-computed and captured values."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.radio.facts import emane_delivery
from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.airtime import LARGEST_FRAME, Airtime, check_size
from orchestrator.radio.channel import build_channel
from orchestrator.radio.interference import ln_success
from orchestrator.radio.path_loss.base import loss_at
from orchestrator.radio.path_loss.free_space import FreeSpaceLoss
from orchestrator.radio.path_loss.log_distance import LogDistanceLoss
from orchestrator.radio.path_loss.matrix import LinkMatrix
from orchestrator.radio.path_loss.range import RangeLoss
from orchestrator.radio.path_loss.trace import LinkTrace
from orchestrator.radio.path_loss.two_ray import TwoRayLoss
from orchestrator.radio.path_loss.two_ray_ground import TwoRayGroundLoss
from orchestrator.radio.presets import ns3_two_ray, radio_preset, seed_80211b
from orchestrator.radio.reception import dsss_reception, emane_reception
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.units_db import dbm_to_mw, mw_to_dbm, noise_floor_dbm


@pytest.mark.parametrize(
    ("model", "distance_m", "loss_db"),
    [
        (TwoRayLoss(2.0), 100.0, 67.9588),  # both measured on EMANE
        (TwoRayLoss(2.0), 400.0, 92.0412),
        (TwoRayLoss(0.5), 100.0, 80.0),
        (TwoRayLoss(2.0), 0.0, 0.0),
        (FreeSpaceLoss(2.347e9), 1000.0, 20 * math.log10(41.91690043903364 * 2347)),
        (TwoRayGroundLoss(914e6, 1.5), 250.0, 24.5 + 64.37),
        (TwoRayGroundLoss(914e6, 1.5), 50.0, 20 * math.log10(4 * math.pi * 50 * 914e6 / 299792458)),
        (LogDistanceLoss(3.0, 40.0, 1.0), 100.0, 100.0),
        (RangeLoss(250.0), 250.0, 0.0),
        (RangeLoss(250.0), 250.1, math.inf),
    ],
)
def test_path_loss(model: PathLoss, distance_m: float, loss_db: float) -> None:
    assert loss_at(model, distance_m) == pytest.approx(loss_db, abs=0.01)


def test_decibels() -> None:
    assert dbm_to_mw(-10.0) == pytest.approx(0.1)
    assert mw_to_dbm(0.0) == -math.inf
    assert noise_floor_dbm(4.0, 1e6) == pytest.approx(-110.0)


def test_delivery_against_distance_is_that_of_emane() -> None:
    for fact in emane_delivery():
        mac = Mac(unicast_rate=fact.rate_mbps)
        channel = build_channel(seed_80211b(fact.antenna_height_m), mac, [(0, 0), (0, fact.distance_m)])
        assert channel.delivery("unicast", 0, 1, fact.frame_bytes) == pytest.approx(fact.delivery, abs=1e-3)


# Packet success ratios of ns-3's DSSS model: SINR in dB, rate, bytes, probability.
@pytest.mark.parametrize(
    ("sinr_db", "rate", "length", "probability"),
    [
        (-6, 1.0, 14, 0.799975),
        (-4, 1.0, 1500, 0.3895),
        (0, 2.0, 1500, 0.0972292),
        (-3, 2.0, 14, 0.464349),
        (3, 5.5, 1500, 0.284257),
        (5, 5.5, 1500, 0.98989),
        (2, 11.0, 14, 0.209902),
        (6, 11.0, 576, 0.611082),
        (7, 11.0, 1534, 0.855304),
        (14, 11.0, 1534, 1.0),
    ],
)
def test_dsss_error_rates_are_those_of_ns3(
    sinr_db: float, rate: float, length: int, probability: float
) -> None:
    assert dsss_reception(0).probability(rate, length, sinr_db) == pytest.approx(probability, abs=1e-5)


def test_a_curve_looked_up_one_by_one_is_the_curve_looked_up_as_a_matrix() -> None:
    curve = emane_reception().curves[11.0]
    sinr = np.array([-math.inf, -3.0, 1.0, 2.345, 5.55, 7.999, 8.0, 300.0, math.inf])
    assert curve.ln_per_byte_matrix(sinr).tolist() == [curve.ln_per_byte(float(db)) for db in sinr]


def test_interference_counts_for_the_bytes_it_overlaps() -> None:
    curve = emane_reception().curves[11.0]
    weak, noise = dbm_to_mw(-104.5), dbm_to_mw(-110.0)
    alone = ln_success(curve, 1000, (0, 1000), weak, noise, [])
    assert alone == pytest.approx(1000 * curve.ln_per_byte(5.5))
    half = ln_success(curve, 1000, (0, 1000), weak, noise, [(500, 9999, noise)])
    disturbed = curve.ln_per_byte(mw_to_dbm(weak / (2 * noise)))
    assert half == pytest.approx(alone / 2 + 500 * disturbed)
    assert ln_success(curve, 1000, (0, 1000), weak, noise, [(1000, 2000, 1.0)]) == pytest.approx(alone)
    assert ln_success(curve, 1000, (0, 1000), weak, noise, [(1, 2, 1.0)]) == -math.inf


def test_airtimes() -> None:
    long = Airtime(Mac(control_rate=1.0))
    assert (long.difs, long.eifs, long.ack) == (50_000, 364_000, 304_000)
    assert long.unicast[1470 + 28 + 14] == 1_308_000
    short = Airtime(Mac(control_rate=2.0, short_preamble=True))
    assert (short.ack, short.rts) == (152_000, 176_000)
    assert short.unicast[1470 + 28 + 14] == 1_212_000
    assert Airtime(Mac(control_rate=1.0, short_preamble=True)).ack == 304_000


def test_who_hears_and_who_decodes() -> None:
    channel = build_channel(ns3_two_ray(250, 550), Mac(), [(0, 0), (249, 0), (500, 0), (800, 0)])
    assert channel.decoders == [0b0010, 0b0001, 0, 0]
    assert channel.hearers == [0b0111, 0b0111, 0b1111, 0b1100]
    assert channel.heard[3] == 0b1100
    assert channel.delivery("unicast", 0, 2, 1514) == 0.0
    assert channel.delivery("control", 0, 1, 14) == pytest.approx(1.0)


def test_what_can_be_decoded_is_busy_even_if_carrier_sense_is_deaf() -> None:
    radio = Radio(TwoRayLoss(), emane_reception(), tx_power_dbm=-10, carrier_sense_dbm=-50)
    assert build_channel(radio, Mac(), [(0, 0), (400, 0)]).hearers == [0b11, 0b11]


def test_measured_links_take_the_place_of_positions() -> None:
    trace = LinkTrace([(0.0, LinkMatrix([[0, 60], [70, 0]])), (10.0, LinkMatrix([[0, math.inf], [70, 0]]))])
    radio, nowhere = seed_80211b(), [(0.0, 0.0)] * 2
    early = build_channel(radio, Mac(), nowhere, trace.at(9.9))
    assert early.snr_db[0, 1] == pytest.approx(40.0) and early.snr_db[1, 0] == pytest.approx(30.0)
    late = build_channel(radio, Mac(), nowhere, trace.at(10.0))
    assert late.decoders == [0, 1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Mac(unicast_rate=54.0), "54 Mb/s is not a rate of 802.11b"),
        (lambda: Mac(attempts=0), "attempts must be between"),
        (lambda: Mac(cw_min=63, cw_max=31), "cw_max must be between 63"),
        (lambda: Radio(TwoRayLoss(), emane_reception(), tx_power_dbm=300.0), "tx_power_dbm must be between"),
        (lambda: Radio(TwoRayLoss(), emane_reception(), tx_power_dbm=math.nan), "not nan"),
        (lambda: Radio(TwoRayLoss(), emane_reception(), -10.0, bandwidth_hz=0.0), "bandwidth_hz"),
        (lambda: TwoRayLoss(antenna_height_m=0.0), "antenna_height_m must be a finite number above 0"),
        (lambda: RangeLoss(math.inf), "range_m must be a finite number"),
        (lambda: LinkMatrix([[0, 1, 2], [1, 0, 2]]), "must be square, not 2×3"),
        (lambda: LinkMatrix([[0, math.nan], [1, 0]]), "every link loss"),
        (lambda: LinkTrace([(1.0, LinkMatrix([[0]])), (0.5, LinkMatrix([[0]]))]), "time runs backwards"),
        (lambda: LinkTrace([]), "at least one matrix"),
        (lambda: build_channel(seed_80211b(), Mac(), []), "at least one node"),
        (lambda: build_channel(seed_80211b(), Mac(), [(0, math.nan)]), "two finite numbers"),
        (
            lambda: build_channel(seed_80211b(), Mac(), [(0, 0)] * 3, LinkMatrix([[0]])),
            "for 1 nodes, not for 3",
        ),
        (lambda: check_size(LARGEST_FRAME + 1), "does not fit"),
        (lambda: radio_preset("wifi-7"), 'there is no radio "wifi-7"'),
        (lambda: emane_reception().probability(3.0, 100, 10.0), "3 Mb/s is not a rate"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make: Callable[[], object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()
