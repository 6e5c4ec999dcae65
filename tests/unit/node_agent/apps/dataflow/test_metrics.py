"""The live figures of a dataflow follow from its records, whether taken as events or read back."""

from collections.abc import Sequence

import msgspec
import pytest

from node_agent.apps.dataflow import events as e
from node_agent.apps.dataflow.faces.events import FaceRecord, FacesSeen, FacesTrue, VideoSource
from node_agent.apps.dataflow.metrics import METRIC_KINDS, METRICS, DataflowTally
from node_agent.apps.dataflow.model.decision import Candidate
from node_agent.apps.records import record_format
from node_agent.model.telemetry import Event
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Sample

pytestmark = pytest.mark.unit

MS = 1_000_000
Values = dict[tuple[str, tuple[str, ...]], float]


def tallied(*events: Event, t_ns: int = 0) -> list[Sample]:
    """What a tally says after ``events``; one that reads them back must say the same."""
    live, read = DataflowTally(), DataflowTally()
    for event in events:
        kind = tag_of(type(event))
        live.take(kind, event, t_ns)
        body = msgspec.json.encode(event)
        line = b'{"run":"r","node":"n","boot":1,"app":"query","seq":0,"t_ns":%d,' % t_ns + body[1:]
        record = record_format().decode(line)
        assert record_format().flaw(record) == ""
        read.take(kind, record, t_ns)
    assert list(live.samples()) == list(read.samples())
    return list(live.samples())


def values(samples: Sequence[Sample]) -> Values:
    return {(each.name, each.labels): each.value for each in samples}


def decision(new: str | None, shares: dict[str, float] | None = None, path: float | None = 3.0) -> Event:
    return e.RouteDecision(
        replica="camera/0",
        downstream="detect",
        policy="shortest_path",
        old=None,
        new=new,
        candidates=(Candidate("detect/0", 1.0, path), Candidate("detect/1", 2.0, 5.0)),
        shares=shares or {},
        needed=None,
        threshold=0.0,
        relative=False,
        exponent=2.0,
        draw_seed=0,
        queued=0,
        shared=False,
        whole=True,
        metric="etx",
        source="olsr",
        taken_ns=0,
    )


def switch(old: str | None, new: str | None) -> Event:
    return e.RouteSwitch("camera/0", "detect", old, new, None, None, "olsr")


def test_tuples_and_bytes_are_counted_by_replica_also_where_a_record_covers_several() -> None:
    found = values(
        tallied(
            e.TupleEmitted("camera/0", "camera/0", 1, 100),
            e.TupleEmitted("camera/0", "camera/0", 2, 30, 3, (5, 10, 15)),
            e.TupleSent("camera/0", "detect/0", "camera/0", 1, 100),
            e.TupleSent("camera/0", "detect/1", "camera/0", 2, 30, 3),
            e.TupleReceived("detect/0", "camera/0", "camera/0", 1, 100),
            e.TupleProcessed("detect/0", "camera/0", 1, 100, 20 * MS),
            e.TupleProcessed("detect/0", "camera/0", 2, 30, 30 * MS, 3),
        )
    )
    assert found == {
        ("rove_tuples_emitted_total", ("camera/0",)): 4,
        ("rove_tuples_emitted_bytes_total", ("camera/0",)): 130,
        ("rove_tuples_sent_total", ("camera/0", "detect/0")): 1,
        ("rove_tuples_sent_bytes_total", ("camera/0", "detect/0")): 100,
        ("rove_tuples_sent_total", ("camera/0", "detect/1")): 3,
        ("rove_tuples_sent_bytes_total", ("camera/0", "detect/1")): 30,
        ("rove_tuples_received_total", ("detect/0",)): 1,
        ("rove_tuples_received_bytes_total", ("detect/0",)): 100,
        ("rove_tuples_processed_total", ("detect/0",)): 4,
        ("rove_tuples_processed_bytes_total", ("detect/0",)): 130,
        ("rove_processing_seconds_total", ("detect/0",)): 0.05,
    }


def test_latency_is_counted_for_each_delivered_tuple_and_the_slowest_can_be_looked_up() -> None:
    samples = tallied(
        e.TupleDelivered("sink/0", "camera/0", 7, 10, 0),
        e.TupleDelivered("sink/0", "camera/0", 8, 20, 10 * MS, 2, (), (0, 70 * MS)),
        t_ns=100 * MS,
    )
    (latency,) = [each for each in samples if each.name == "rove_tuple_latency_seconds"]
    assert sum(latency.counts) == 3
    assert latency.value == pytest.approx(0.1 + 0.09 + 0.02)
    assert latency.exemplar is not None
    assert (latency.exemplar.labels, latency.exemplar.value) == ({"origin": "camera/0", "tau": "7"}, 0.1)
    assert values(samples)["rove_tuples_delivered_total", ("sink/0",)] == 3


def test_reasons_are_words_of_a_short_list() -> None:
    found = values(
        tallied(
            *(
                e.TupleDropped("detect/0", "camera/0", tau, 1, reason)
                for tau, reason in enumerate(("filtered", "dead_letter:ValueError: 1", "surprise", "x" * 900))
            ),
            e.LinkLost("camera/0", "detect/0", "silent"),
            e.LinkLost("camera/0", "detect/0", "surprise"),
            e.OperatorFault("detect/0", "bad_image: truncated", 1),
            e.OperatorFault("detect/0", "bad_image: empty", 2),
        )
    )
    assert found == {
        ("rove_tuples_dropped_total", ("detect/0", "filtered")): 1,
        ("rove_tuples_dropped_total", ("detect/0", "dead_letter")): 1,
        ("rove_tuples_dropped_total", ("detect/0", "other")): 2,
        ("rove_connections_lost_total", ("camera/0", "detect/0", "silent")): 1,
        ("rove_connections_lost_total", ("camera/0", "detect/0", "other")): 1,
        ("rove_operator_faults_total", ("detect/0", "bad_image")): 2,
    }


def test_a_switch_is_to_another_replica_than_the_last_one_that_was_used() -> None:
    name, route = "rove_route_switches_total", ("camera/0", "detect")
    first = [switch(None, "detect/0")]
    assert values(tallied(*first))[name, route] == 0
    back = [*first, switch("detect/0", None), switch(None, "detect/0")]
    assert values(tallied(*back))[name, route] == 0
    assert values(tallied(*back))["rove_routes_lost_total", route] == 1
    assert values(tallied(*back, switch("detect/0", "detect/1")))[name, route] == 1


def test_a_route_vanishes_when_it_is_lost() -> None:
    share, cost = "rove_route_share_ratio", "rove_route_cost"
    route = ("camera/0", "detect", "detect/0")
    assert values(tallied(decision("detect/0"))) == {(share, route): 1.0, (cost, route): 3.0}
    assert values(tallied(decision("detect/0", path=None))) == {(share, route): 1.0}
    assert tallied(decision("detect/0"), decision(None)) == []
    divided = values(tallied(decision("detect/0", {"detect/0": 0.75, "detect/1": 0.25})))
    assert divided[share, ("camera/0", "detect", "detect/1")] == 0.25


def test_a_path_vanishes_when_it_is_lost_and_queues_and_spill_show_their_last_value() -> None:
    def path(cost: float | None) -> Event:
        return e.LinkCost("camera/0", "detect/0", cost, "etx", "olsr")

    queues = (e.QueueSample("camera/0", "output:detect", 4), e.QueueSample("camera/0", "output:detect", 2))
    spill = e.SpillSample(100, 1, "full")
    assert values(tallied(path(1.5), *queues, spill)) == {
        ("rove_path_cost", ("camera/0", "detect/0")): 1.5,
        ("rove_queue_length", ("camera/0", "output:detect")): 2,
        ("rove_spill_bytes", ()): 100,
        ("rove_spill_refused_total", ()): 1,
    }
    assert tallied(path(1.5), path(None)) == []


def test_faces_are_counted_by_what_recognition_made_of_them() -> None:
    def face(person: str | None) -> FaceRecord:
        return FaceRecord(person, 0, 0, 1, 1)

    found = values(
        tallied(
            FacesTrue("camera/0", "camera/0", 1, (face("s1"), face("s2"))),
            FacesSeen("sink/0", "camera/0", 1, 1, "g", 5, (face("s1"), face(""), face(None))),
            VideoSource("camera/0", "scene", 320, 240, 80),
        )
    )
    assert found == {
        ("rove_pictures_shown_total", ("camera/0",)): 1,
        ("rove_pictures_seen_total", ("sink/0",)): 1,
        ("rove_faces_shown_total", ("camera/0",)): 2,
        ("rove_faces_seen_total", ("sink/0", "known")): 1,
        ("rove_faces_seen_total", ("sink/0", "stranger")): 1,
        ("rove_faces_seen_total", ("sink/0", "unrecognised")): 1,
        ("rove_video_quality_ratio", ("camera/0",)): 0.8,
        ("rove_video_width_pixels", ("camera/0",)): 320,
    }


def test_a_record_of_another_kind_changes_nothing() -> None:
    tally = METRIC_KINDS.tally()
    tally.take("agent_start", object(), 0)
    tally.take("unheard_of", object(), 0)
    assert list(tally.samples()) == []


def test_every_kind_of_record_that_a_tick_names_exists() -> None:
    assert set(METRIC_KINDS.ticks) <= {tag_of(kind) for kind in e.DATAFLOW_KINDS}
    assert len({metric.name for metric in METRICS}) == len(METRICS)
