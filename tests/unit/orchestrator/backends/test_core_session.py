"""A run as CORE is told of it: radio, place on Earth, positions; and what a preflight makes of it."""

import math
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backends.core.air import air_of
from orchestrator.backends.core.driver_client import SessionStatus
from orchestrator.backends.core.infrastructure import motion_doubts
from orchestrator.backends.core.preflight import Observed, preflight_of, problems
from orchestrator.backends.core.session import pixel_paths, session_of
from orchestrator.mobility.generate import generate_trace
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.planning.load import load_experiment, load_topology
from orchestrator.spec.topology import Topology
from tests.unit.specs import topology

ROOT = Path(__file__).parents[4]
CORE = {"host": "emulator.lab", "user": "me"}


def emane(**radio: Any) -> Topology:
    return Topology.model_validate(topology(radio={"model": "80211b", **radio}, core=CORE))


def disc(**core: Any) -> Topology:
    return Topology.model_validate(topology(core=CORE | core))


def test_the_papers_radio_as_emane_is_told() -> None:
    air = air_of(emane(rts="off"))
    assert air.emane == "emane_ieee80211abg"
    told = air.config
    assert told["txpower"] == "-10.0"
    assert (told["unicastrate"], told["multicastrate"]) == (
        "4",
        "4",
    )  # 11 Mb/s; its default for multicast is 1
    assert (told["propagationmodel"], told["noisemode"]) == ("2ray", "none")
    assert (told["rtsthreshold"], told["bandwidth"], told["systemnoisefigure"]) == ("0", "1000000", "4.0")
    assert (told["cwmin0"], told["cwmax0"]) == ("32", "1024")
    assert all(isinstance(value, str) for value in told.values())


def test_what_the_topology_says_of_the_radio_reaches_emane() -> None:
    told = air_of(
        emane(
            tx_power="3 dBm",
            antenna_gain="2 dBi",
            rate="2 Mb/s",
            broadcast_rate="1 Mb/s",
            rts="500 B",
            retries=3,
            queue=50,
            pathloss={"model": "free_space", "frequency": "2.4 GHz"},
        )
    ).config
    assert (told["txpower"], told["fixedantennagain"]) == ("3.0", "2.0")
    assert (told["unicastrate"], told["multicastrate"], told["rtsthreshold"]) == ("2", "1", "500")
    assert [told[f"retrylimit{category}"] for category in range(4)] == ["2"] * 4
    assert told["queuesize0"] == "50"
    assert told["propagationmodel"] == "freespace"
    assert told["frequency"] == told["frequencyofinterest"] == "2400000000"


def test_a_disc_states_all_that_core_has_defaults_for() -> None:
    shaped = {"range": "300", "bandwidth": "11000000", "delay": "1000"}
    rest = {"jitter": "0", "error": "0", "promiscuous": "0"}
    assert air_of(disc()).config == shaped | rest
    assert air_of(disc(netem=False)).config == shaped | rest | {"bandwidth": "0", "delay": "0"}


def test_nodes_have_their_addresses_numbers_and_first_places() -> None:
    read = disc()
    session = session_of(read, "run-1", generate_trace(read, 1, 10.0))
    assert [node.id for node in session.nodes] == list(range(1, 26))
    assert session.air_id == 26
    assert {node.name: node.address for node in session.nodes} == read.addresses()
    assert (session.nodes[0].x, session.nodes[0].y) == generate_trace(read, 1, 10.0).position("n01", 0.0)


def test_metres_are_metres_and_antennas_are_as_high_as_stated() -> None:
    read = emane(pathloss={"model": "two_ray", "antenna_height": "3 m"})
    location = session_of(read, "run-1", generate_trace(read, 1, 1.0)).location
    assert (location.lat, location.lon, location.alt, location.scale) == (0.0, 0.0, 3.0, 100.0)


def test_ways_are_stretched_from_north_to_south_for_emane_alone() -> None:
    trace = Trace({"a": (Waypoint(0.0, 100.0, 100.0), Waypoint(5.0, 200.0, 50.0))})
    assert pixel_paths(trace, air_of(disc())) == {"a": ((0.0, 100.0, 100.0), (5.0, 200.0, 50.0))}
    ((_, x, y), _) = pixel_paths(trace, air_of(emane()))["a"]
    assert x == 100.0
    assert y == pytest.approx(100.674, abs=1e-3)


def test_the_preflight_stays_on_both_sides_of_the_papers_cut() -> None:
    """At -10 dBm and 2 m EMANE hears up to 632.5 m: see the measurements in docs/radio.md."""
    read = emane()
    preflight = preflight_of(read, session_of(read, "run-1", generate_trace(read, 1, 1.0)))
    assert preflight is not None
    near, far = preflight.trials
    assert (near.heard, far.heard) == (True, False)
    assert near.rx_dbm == pytest.approx(-100.0, abs=1e-3)
    assert near.distance_m == pytest.approx(632.46 * 10 ** (-10 / 40), rel=1e-3)
    assert far.distance_m == pytest.approx(632.46 * 10 ** (3 / 40), rel=1e-3)
    (x0, y0), (x1, y1) = near.at
    assert math.hypot(x1 - x0, (y1 - y0) / 1.0067395) == pytest.approx(near.distance_m, rel=1e-6)


def test_a_node_alone_is_not_tried_out() -> None:
    read = Topology.model_validate(topology(nodes=1, core=CORE))
    assert preflight_of(read, session_of(read, "run-1", generate_trace(read, 1, 1.0))) is None


@pytest.mark.parametrize(
    ("observed", "complaint"),
    [
        ([Observed(True, -100.1), Observed(False)], ""),
        ([Observed(True, note="power not measured"), Observed(False)], ""),
        ([Observed(False), Observed(False)], "do not hear each other, and are in range"),
        ([Observed(True, -100.0), Observed(True)], "hear each other, and are out of range"),
        # Antennas taken for lower than they are, and distances for longer.
        ([Observed(True, -103.0), Observed(False)], "receive -103.00 dBm instead of -100.00 dBm"),
    ],
)
def test_what_was_observed_is_judged(observed: list[Observed], complaint: str) -> None:
    read = emane()
    session = session_of(read, "run-1", generate_trace(read, 1, 1.0))
    preflight = preflight_of(read, session)
    assert preflight is not None
    found = problems(preflight, observed, session.air)
    assert len(found) == bool(complaint)
    assert complaint in "".join(found)


def test_the_papers_experiment_differs_between_backends_in_topology_and_backend_only() -> None:
    here, there = (
        load_experiment(ROOT / f"experiments/{name}.yaml").resolved()
        for name in ("paper-25", "paper-25-core")
    )
    assert (here["backend"], there["backend"]) == ("netns", "core")
    assert {key for key in here if here[key] != there[key]} == {"name", "topology", "backend"}


def test_their_topologies_differ_in_name_and_host_only() -> None:
    here = load_topology(ROOT / "topologies/rwp-25.yaml").model_dump()
    there = load_topology(ROOT / "topologies/core-25.yaml").model_dump()
    assert {key for key in here | there if here.get(key) != there.get(key)} == {"name", "core"}


@pytest.mark.parametrize(
    ("rounds", "late_rounds", "late_s", "doubted"),
    [
        (1400, 0, 0.05, False),
        (1400, 14, 0.2, False),
        (1400, 15, 0.2, True),
        (1400, 1, 0.29, True),
        (1400, 3, 0.38, True),
        (0, 0, 0.0, False),
    ],
)
def test_motion_is_bounded_by_the_period_of_positions(
    rounds: int, late_rounds: int, late_s: float, doubted: bool
) -> None:
    told = motion_doubts(SessionStatus("RUNTIME", "", rounds, late_rounds, late_s))
    assert bool(told) == doubted
    assert all("CORE moved the nodes late" in doubt for doubt in told)
