"""What an experiment file says of events to detect.

detect:
  events:
    smoke: {node: field, rate: 1/min}
    heat: {node: barn, rate: 6/h}
  patterns:
    fire: {pattern: "and(smoke, heat; 60s)", sink: base, tolerance: 15 min}
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from orchestrator.spec.application import AppSection
from orchestrator.spec.base import Name, Section
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.problems import Finding, Unusable, shown, unusable
from orchestrator.spec.units import DURATION, ROOM, SIZE, Duration, PositiveDuration, Quantity

EVENT_RATE = Quantity(
    "a rate",
    {"/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600},
    ("2 /min", "0.1 /s", "6 /h"),
    "per second",
    0,
    1e4,
    above_low=True,
)
MOST_TIMES = 100_000
PlannerName = Literal[
    "ours",
    "comet",
    "comet_by_cost",
    "comet_first_phase",
    "all_push",
    "centralized_heuristic",
    "centralized_optimal",
]


def _read_times(value: Any) -> Any:
    if value is None:
        return None
    hint = "write it like times: [10s, 25s, [40s, 43s]], the last with its end"
    if not isinstance(value, list | tuple) or not value or len(value) > MOST_TIMES:
        raise unusable(f"{shown(value)} is not a list of 1 to {MOST_TIMES} times", hint)
    read: list[tuple[float, float]] = []
    findings: list[Finding] = []
    for index, entry in enumerate(value):
        pair = list(entry) if isinstance(entry, list | tuple) else [entry, entry]
        try:
            start, end = (DURATION.read(each) for each in pair)
        except Unusable as error:
            findings += [Finding((index,), each.message, each.hint) for each in error.findings]
            continue
        except ValueError:
            findings.append(Finding((index,), f"{shown(entry)} is neither a time nor two", hint))
            continue
        if end < start:
            findings.append(Finding((index,), f"ends at {end:g} s, before it starts"))
        read.append((start, end))
    if findings:
        raise Unusable(*findings)
    return tuple(sorted(read, key=lambda each: each[1]))


Times = Annotated[
    tuple[tuple[float, float], ...] | None,
    BeforeValidator(_read_times),
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"type": ["number", "string"]}, {"type": "array"}]},
            "description": "In place of a rate: when it occurs, after sources open",
            "examples": [["10s", "25s", ["40s", "43s"]]],
        }
    ),
]


@dataclass(frozen=True)
class EventFile(FileReference):
    """A file of times at which events occur."""


TraceField = Annotated[
    EventFile,
    PlainValidator(reader(EventFile, "events.csv")),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema(
        {
            "type": "string",
            "description": "A file with the columns event,start,end or t, relative to this one",
        }
    ),
]


class EventSection(Section):
    """An event: where it occurs, and how often or when. Without both, ``zipf`` gives it a rate."""

    other_names = {"source": "node", "at": "times"}  # noqa: RUF012

    node: str = Field(description="The node that notices it", examples=["field"])
    rate: Annotated[float, EVENT_RATE] | None = Field(
        default=None, description="Mean rate; times are random (Poisson), drawn by the seed"
    )
    times: Times = None
    trace: TraceField | None = Field(
        default=None, description="In place of times: a file of them", examples=["events.csv"]
    )
    assume: Annotated[float, EVENT_RATE] | None = Field(
        default=None, description="The rate that plans assume; how often it really occurs if not given"
    )
    length: Duration = Field(default=0.0, description="How long each instance lasts")
    start: Duration = Field(default=0.0, description="Occurs from then on, after sources open")
    stop: PositiveDuration | None = Field(
        default=None, description="As start; the end of the run if not given"
    )

    @property
    def is_listed(self) -> bool:
        """Whether each instance is listed, here or in a file."""
        return self.times is not None or self.trace is not None

    @model_validator(mode="after")
    def _fits_together(self) -> "EventSection":
        findings = []
        if self.is_listed:
            by, words = ("times", "times say") if self.times is not None else ("trace", "the trace says")
            for key in ("rate", "trace", "length", "start", "stop"):
                if key != by and getattr(self, key) != type(self).model_fields[key].default:
                    text = f"{words} when it occurs"
                    findings.append(Finding((key,), text, f"leave out {key} or {by}"))
        if self.stop is not None and self.stop <= self.start:
            findings.append(Finding(("stop",), f"it would stop at {self.stop:g} s, before it starts"))
        if findings:
            raise Unusable(*findings)
        return self


class PatternSection(Section):
    """A pattern to detect: where, and how late at most."""

    pattern: str = Field(examples=["and(smoke, heat; 60s)"])
    sink: str = Field(description="The node that wants to know", examples=["base"])
    tolerance: PositiveDuration = Field(
        description="How long after its last event a detection may come", examples=["15 min"]
    )
    priority: Annotated[int, Field(strict=True, ge=0, le=1000)] = Field(
        default=0, description="If stores are full, events of patterns with lower ones go first"
    )


class ZipfSection(Section):
    """Rates for events that have none: the fastest, and others by a Zipf distribution, in drawn order."""

    fastest: Annotated[float, EVENT_RATE]
    exponent: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 1.0


class StoreSection(Section):
    """How much nodes keep."""

    waiting: Annotated[int, ROOM.within(ge=10_000)] = Field(
        default=16 * 1024 * 1024, description="Bytes that wait for one neighbour"
    )
    kept: Annotated[int, Field(strict=True, ge=10, le=10_000_000)] = Field(
        default=100_000, description="Instances for one pattern at one node"
    )


class DetectSettings(Section):
    """Events, and patterns of them to detect."""

    events: dict[Name, EventSection] = Field(min_length=1)
    patterns: dict[Name, PatternSection] = Field(min_length=1)
    zipf: ZipfSection | None = None
    planner: PlannerName = Field(default="ours", description="How it is decided what is pushed and pulled")
    disconnections: Literal["expected", "longest"] = Field(
        default="expected",
        description="What plans assume of links: their expected disconnection period, or the longest one of "
        "the run, with which promised delays hold for random contacts, too",
    )
    event_size: Annotated[int, SIZE.within(ge=1, le=60_000)] = Field(
        default=1000, description="Of an instance"
    )
    store: StoreSection = StoreSection()

    @model_validator(mode="after")
    def _rates(self) -> "DetectSettings":
        findings = [
            Finding(
                ("events", name), "none of rate, times and trace is given", "write rate: 2/min, or give zipf"
            )
            for name, event in self.events.items()
            if event.rate is None and not event.is_listed and self.zipf is None
        ]
        if findings:
            raise Unusable(*findings)
        return self


class DetectSection(AppSection):
    """Detection of events over links that come and go."""

    detect: DetectSettings = Field(
        examples=[
            {
                "events": {"smoke": {"node": "field", "rate": "1/min"}},
                "patterns": {"alarm": {"pattern": "smoke", "sink": "base", "tolerance": "15 min"}},
            }
        ]
    )
