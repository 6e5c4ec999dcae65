"""Declares what a node reports of itself while it runs, and how that follows from its records.

The agent and each kind of application declare their metrics with a value of ``MetricKinds``:

    PINGS = MetricKinds((Metric("rove_pings_sent_total", MetricKind.COUNTER, "Pings sent."),), PingTally)

A tally is made from records alone. The agent feeds one while it writes its records, and `rove export` feeds
another with the records of a run, so that a live figure and its record cannot differ.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from msgspec import Struct


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """``name`` follows Prometheus' conventions: ``rove_<what>_<unit>``, base units, counters end in
    ``_total``. ``labels`` are those besides the run's and the node's, which whoever collects adds, and
    ``app``, which the agent adds. ``buckets``: upper edges, of a histogram.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()


class Exemplar(Struct, frozen=True, array_like=True):
    """One observation of a histogram that can be looked up in the records, such as a tuple."""

    labels: dict[str, str]
    value: float
    t_ns: int


class Sample(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The value of one series. ``labels``: values in the order of the metric's labels.

    Of a histogram, ``value`` is the sum of all observations and ``counts`` has the number in each bucket,
    and at last the number beyond all edges. ``app``: the application that reports, empty for the agent.
    """

    name: str
    labels: tuple[str, ...]
    value: float
    app: str = ""
    counts: tuple[int, ...] = ()
    exemplar: Exemplar | None = None


class Tally(Protocol):
    """Sums up the records of one reporter on one node, of one boot."""

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        """Takes one record: an ``Event``, or a decoded record, where fields with a default may be None."""
        ...

    def samples(self) -> Iterator[Sample]:
        """Yields the present value of each series. A series that is left out vanishes."""
        ...


class MetricKinds(NamedTuple):
    """``tally`` makes a new tally. ``ticks``: kinds of records that are written once every sample period;
    an export has one sample of each series for each of them.
    """

    metrics: tuple[Metric, ...]
    tally: Callable[[], Tally]
    ticks: tuple[str, ...] = ()
