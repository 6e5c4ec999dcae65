"""What is recorded of several tuples in one record is what would have been recorded of each alone."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder, neighbours
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.model.telemetry import Event


def item(tau: int, size: int = 5, origin: str = "camera/0", last: bool = False) -> StreamTuple:
    payloads = () if last or not size else (bytes(size),)
    return StreamTuple(origin, tau, tau - 1, 1000 * tau, 0, payloads, last)


items = st.lists(
    st.builds(
        item,
        st.integers(1, 8),
        st.integers(0, 2),
        st.sampled_from(["camera/0", "window"]),
        st.booleans(),
    ),
    max_size=12,
)


class Recorded:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.recorder = TupleRecorder("detect/0", self._record)

    def _record(self, event: Event) -> None:
        self.records.append(msgspec.json.decode(msgspec.json.encode(event)))


@given(items)
def test_all_records_read_tuple_by_tuple_as_if_each_tuple_had_been_told_alone(
    many: list[StreamTuple],
) -> None:
    together, alone = Recorded(), Recorded()
    for recorded, groups in ((together, [many]), (alone, [[each] for each in many])):
        for group in groups:
            recorded.recorder.emitted(group)
        for group in groups:
            recorded.recorder.sent("screen/0", group)
        for group in groups:
            recorded.recorder.received("camera/0", group)
        for group in groups:
            recorded.recorder.delivered(group)
    assert list(tuple_by_tuple(together.records)) == alone.records


@given(items)
def test_neighbours_are_cut_where_one_does_not_follow_on_the_other(many: list[StreamTuple]) -> None:
    runs = list(neighbours(many))
    assert [each for run in runs for each in run] == [each for each in many if not each.last]
    for run in runs:
        assert [each.tau for each in run] == list(range(run[0].tau, run[0].tau + len(run)))
        assert {each.origin for each in run} == {run[0].origin}


def test_a_stretch_is_one_record_and_says_only_what_is_needed() -> None:
    recorded = Recorded()
    recorded.recorder.sent("screen/0", [item(tau) for tau in range(7, 10)])
    recorded.recorder.delivered([item(7, 5), item(8, 6)])
    recorded.recorder.sent("screen/0", [item(10)])
    assert recorded.records == [
        {
            **{"kind": "tuple_sent", "replica": "detect/0", "to": "screen/0", "origin": "camera/0"},
            **{"tau": 7, "size": 15, "tuples": 3},
        },
        {
            **{"kind": "tuple_delivered", "replica": "detect/0", "origin": "camera/0", "tau": 7, "size": 11},
            **{"born_ns": 7000, "tuples": 2, "sizes": [5, 6], "births": [0, 1000]},
        },
        {
            **{"kind": "tuple_sent", "replica": "detect/0", "to": "screen/0", "origin": "camera/0"},
            **{"tau": 10, "size": 5},
        },
    ]


def test_time_spent_on_several_is_told_of_all_together() -> None:
    recorded = Recorded()
    recorded.recorder.processed([item(1), item(2), item(5)], 3000)
    assert [(r["tau"], r.get("tuples", 1), r["took_ns"]) for r in recorded.records] == [
        (1, 2, 2000),
        (5, 1, 1000),
    ]
    assert [r["took_ns"] for r in tuple_by_tuple(recorded.records)] == [1000, 1000, 1000]


def test_what_an_operator_had_nothing_to_say_about_is_no_delivery() -> None:
    recorded = Recorded()
    recorded.recorder.reached([item(1), item(2, 0), item(3), item(4, last=True)])
    assert [(r["kind"], r["tau"]) for r in recorded.records] == [
        ("tuple_delivered", 1),
        ("tuple_delivered", 3),
        ("tuple_dropped", 2),
    ]
