"""The key ``trace`` of the radio model ``contacts``: a file of contacts, and how it is to be read."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from orchestrator.contacts.plan import Contact, on_ticks
from orchestrator.contacts.traces import ContactTrace, Meeting, TraceFormat, format_of, read_contacts
from orchestrator.spec.base import Section
from orchestrator.spec.file_reference import FileReference, reader, with_format
from orchestrator.spec.problems import Finding, did_you_mean, shown
from orchestrator.spec.source_file import Unreadable, text_of

TraceFileField = Annotated[
    FileReference,
    PlainValidator(reader(FileReference, "contacts.csv")),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema({"type": "string", "description": "A file of contacts, relative to this one"}),
]


class ContactTraceSection(Section):
    """Contacts from a file. After its end there are none."""

    file: TraceFileField = Field(examples=["contacts.csv"])
    format: TraceFormat | None = Field(
        default=None,
        description="csv: from,to,t_up,t_down; one: the ONE simulator's CONN lines; crawdad: id id start "
        "end …. Told by the file's name if not given",
    )
    first_id: Annotated[int, Field(strict=True, ge=0, le=10_000)] | None = Field(
        default=None,
        description="The file numbers nodes: this is the number of the first. Else it has their names",
    )
    unknown: Literal["refuse", "skip"] = Field(
        default="refuse", description="Contacts of nodes that the topology does not have"
    )
    overlaps: Literal["refuse", "merge"] = Field(
        default="refuse", description="Contacts of two nodes that overlap"
    )
    start: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = Field(
        default=0.0, description="The file's time, in seconds, that is time 0 of the run"
    )
    speed: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = Field(
        default=1.0, description="How many of the file's seconds pass in one of the run's"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_format(cls, value: Any) -> Any:
        return with_format(value, format_of, "add format: csv, format: one or format: crawdad")

    def findings_for(self, nodes: tuple[str, ...]) -> list[Finding]:
        return [*_meetings(self, nodes)[1]]

    def contacts(self, nodes: tuple[str, ...]) -> dict[tuple[str, str], tuple[Contact, ...]]:
        """Returns the contacts of each pair of nodes, in the order of the nodes."""
        return _meetings(self, nodes)[0]


# The cells of a sweep are validated one by one, and mostly read the same file for the same nodes.
@lru_cache(maxsize=4)
def _meetings(
    section: ContactTraceSection, nodes: tuple[str, ...]
) -> tuple[dict[tuple[str, str], tuple[Contact, ...]], tuple[Finding, ...]]:
    """Returns the contacts of each pair, and what is wrong with the file."""
    assert section.format is not None, "the validator takes it from the file's name"
    name = section.file.path.name
    try:
        text = text_of(name, section.file.contents()[name])
    except Unreadable as error:
        return {}, (Finding(("file",), f"{name}: {error.message}", error.hint),)
    trace = read_contacts(text, section.format, merge=section.overlaps == "merge")
    number_of = {node: number for number, node in enumerate(nodes)}
    numbers = number_of if section.first_id is None else _numbered(nodes, section.first_id)
    pairs: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for meeting, ends in _known(trace, numbers, section):
        when = ((meeting.up - section.start) / section.speed, (meeting.down - section.start) / section.speed)
        pairs.setdefault((min(ends), max(ends)), []).append(when)
    found = {
        (nodes[one], nodes[other]): contacts
        for (one, other), listed in sorted(pairs.items())
        if (contacts := on_ticks(listed))
    }
    if not trace.problems and not found:
        trace.wrong(None, *_why_empty(trace, section, pairs))
    return found, tuple(
        Finding(("file",), f"{name}{'' if line is None else f', line {line}'}: {message}", hint)
        for line, message, hint in sorted(trace.problems, key=lambda problem: problem.line or 0)
    )


def _numbered(nodes: tuple[str, ...], first: int) -> dict[str, int]:
    return {str(first + index): index for index in range(len(nodes))}


def _known(
    trace: ContactTrace, numbers: dict[str, int], section: ContactTraceSection
) -> Iterator[tuple[Meeting, tuple[int, int]]]:
    """Yields contacts with the numbers of the nodes; notes each node that there is not, once."""
    strangers: set[str] = set()
    for meeting in trace.meetings:
        ends = numbers.get(meeting.one), numbers.get(meeting.other)
        if ends[0] is not None and ends[1] is not None:
            yield meeting, (ends[0], ends[1])
        elif section.unknown == "refuse":
            for node, number in zip(meeting[:2], ends, strict=True):
                if number is None and node not in strangers and not trace.is_full:
                    strangers.add(node)
                    trace.wrong(
                        meeting.line, f"there is no node {shown(node)}", _advice(node, numbers, section)
                    )


def _advice(node: str, numbers: dict[str, int], section: ContactTraceSection) -> str:
    if section.first_id is None and node.isdigit():
        return "if the file numbers nodes, say what the first one is: first_id: 0"
    return did_you_mean(node, numbers) or "unknown: skip leaves out what is not in the topology"


def _why_empty(
    trace: ContactTrace, section: ContactTraceSection, pairs: dict[tuple[int, int], list[tuple[float, float]]]
) -> tuple[str, str]:
    if pairs:
        return f"all contacts are over at start ({section.start:g} s)", f"they end at {trace.end:g} s"
    return "holds no contact of nodes of this topology", "first_id says how the file numbers nodes"
