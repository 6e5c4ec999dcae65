"""What a node's radio knows of its links: only its own, only what it received."""

import pytest

from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.radio.dcf_medium import DcfMedium
from orchestrator.radio.medium import BROADCAST, Frame
from orchestrator.radio.presets import ns3_range, seed_80211b
from orchestrator.radio.settings import Mac
from orchestrator.radio.station_table import StationTable
from orchestrator.radio.survey import FULL_SIZE, sensitivity_dbm

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


def ignore(frame: Frame) -> None:
    pass


def test_half_of_the_full_frames_arrive_at_the_sensitivity() -> None:
    radio, mac = seed_80211b(), Mac()
    snr_db = sensitivity_dbm(radio, mac) - radio.noise_dbm
    assert radio.reception.probability(11.0, FULL_SIZE, snr_db) == pytest.approx(0.5, abs=0.1)
    assert sensitivity_dbm(ns3_range(), mac) >= ns3_range().decode_threshold_dbm


def test_a_node_learns_of_nodes_it_has_received_and_of_its_own_frames_to_them() -> None:
    loop = VirtualLoop()
    places = [(0.0, 0.0), (300.0, 0.0), (600.0, 0.0)]
    medium = DcfMedium(loop, ["a", "b", "c"], places, seed_80211b(), Mac(), 1)
    for node in "abc":
        medium.attach(node, ignore, ignore)
    read = {node: medium.station_table(node) for node in "abc"}
    assert read["b"]() == {}
    medium.send(Frame("a", BROADCAST, 100, None))
    medium.send(Frame("a", "b", 1000, None))
    medium.send(Frame("a", "c", 1000, None))  # out of range: given up
    loop.run_until_ns(10**9)
    (sender,) = read["b"]()
    heard = read["b"]()["a"]
    assert (sender, heard.received, heard.acknowledged, heard.failed) == ("a", 2, 0, 0)
    assert heard.signal_dbm == pytest.approx(-97.0, abs=0.1)
    assert read["c"]() == {}
    assert read["a"]() == {}  # nobody sent anything
    medium.send(Frame("b", BROADCAST, 100, None))
    loop.run_until_ns(2 * 10**9)
    own = read["a"]()["b"]
    assert (own.received, own.acknowledged, own.failed) == (1, 1, 0)
    loop.close()


def test_signals_stay_those_of_the_last_frame() -> None:
    table = StationTable(2)
    zeros = [0, 0]
    assert table.read([0, 0], zeros, zeros, zeros, [0.0, 1e-9], 0) == {}
    assert table.read([0, 1], zeros, zeros, zeros, [0.0, 1e-9], 10**9)[1].signal_dbm == pytest.approx(-90.0)
    later = table.read([0, 1], zeros, zeros, zeros, [0.0, 1e-5], 3 * 10**9)[1]
    assert (later.signal_dbm, later.age_s) == pytest.approx((-90.0, 2.0))
    silenced = table.read([0, 2], zeros, zeros, zeros, [0.0, 0.0], 4 * 10**9)[1]
    assert (silenced.signal_dbm, silenced.age_s) == pytest.approx((-90.0, 0.0))
