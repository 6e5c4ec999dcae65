"""How much of the time the medium was in use, and what the radios needed for that: table, metrics, section.

The radio counts how long each node sends (``airtime.jsonl``). Who hears that follows from the true links.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from orchestrator.analytics.core.connectivity import changes_in
from orchestrator.analytics.core.neighbourhood import Neighbours, over_time
from orchestrator.results import truth
from orchestrator.results.cells import spread
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import Figures, Later, Metric, Rows, Section, Table
from orchestrator.results.markup import number, table
from orchestrator.results.spark import Subject, rounded
from orchestrator.results.views import View

_HERE = "orchestrator.analytics.core"

MOST_SLICES = 60
"""The window is looked at in slices of whole seconds, at most this many."""


class RadioPower(NamedTuple):
    """Watts of a radio that sends, receives or overhears, and listens without hearing anything."""

    send: float = 1.4
    receive: float = 0.9
    idle: float = 0.75


POWER = RadioPower()
"""Chosen: what cards of 802.11b took, in its order of magnitude."""

AIRTIME = Table(
    "airtime",
    "how long a node sent in the second before `t_ns`, acknowledgements included",
    {"run": TEXT, "node": TEXT, "t_ns": COUNT, "sent_ns": COUNT},
    ("t_ns", "node"),
    Later(f"{_HERE}.airtime_frames:airtime"),
)

_SENT = (
    "share of the window in which a node sent, the mean over nodes; what it sent in a second counts if that "
    "second ended in the window. None where the radio does not count it (`ssh`, `core`, contacts, older runs)"
)
_NEAR = (
    "share of the window in which a node, or one with a true link to it, sent: the mean over nodes, and that "
    "of the busiest node. The window is cut into slices of a second, or of as many whole seconds as make at "
    "most 60 slices. In each, times of several senders are added, up to the whole slice, and the links are "
    "those in its middle"
)
_ENERGY = (
    "what the radios of all nodes needed in the window: 1.4 W while a node sends, 0.9 W while one that it "
    "can hear sends, 0.75 W else (chosen, in the order of 802.11b cards); `active`: what of that is more "
    "than idling. Processors are not in it: agents do not record their processor time"
)
METRICS = (
    Metric("airtime_sent_ratio", _SENT, averaged=True),
    Metric("airtime_near_ratio", _NEAR, averaged=True),
    Metric("airtime_near_max_ratio", _NEAR, averaged=True),
    Metric("radio_energy_j", _ENERGY, "J", "less", averaged=True),
    Metric("radio_energy_active_j", _ENERGY, "J", "less", averaged=True),
)


class Use(NamedTuple):
    """How long a node sent and heard others, in nanoseconds of the window."""

    sent: int
    heard: int


def _values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    if subject.run.truth(truth.AIRTIME) is None or not subject.window_ns:
        return dict.fromkeys((metric.name for metric in METRICS), None)
    begin: int = subject.run.manifest["measure_from_ns"]
    width = slice_ns(subject.window_ns)
    starts = range(begin, begin + subject.window_ns, width)
    lengths = [min(width, begin + subject.window_ns - start) for start in starts]
    sent: list[dict[str, int]] = [{} for _ in starts]
    for row in rows["slices"]:
        if 0 <= row["slice"] < len(sent):
            sent[row["slice"]][row["node"]] = int(row["sent_ns"])
    nodes = {segment.node for segment in subject.run.segments} | {node for each in sent for node in each}
    changes = changes_in(subject.run.directory.radio / truth.LINKS)
    middles = [start + length // 2 for start, length in zip(starts, lengths, strict=True)]
    links = (neighbours for _, neighbours in over_time(changes, nodes, middles))
    uses = dict.fromkeys(nodes, Use(0, 0))
    for own, neighbours, length in zip(sent, links, lengths, strict=True):
        for node, use in in_slice(own, neighbours, nodes, length).items():
            uses[node] = Use(uses[node].sent + use.sent, uses[node].heard + use.heard)
    return figures(list(uses.values()), subject.window_ns)


def slice_ns(window_ns: int) -> int:
    return 10**9 * max(1, -(-window_ns // (MOST_SLICES * 10**9)))


def in_slice(own: Mapping[str, int], neighbours: Neighbours, nodes: set[str], length: int) -> dict[str, Use]:
    """Returns how each node used a slice. ``neighbours``: whom the frames of each node reach."""
    heard = dict.fromkeys(nodes, 0)
    for node, time in own.items():
        for peer in neighbours.get(node, ()):
            heard[peer] = heard.get(peer, 0) + time
    found = {}
    for node in nodes:
        sent = min(own.get(node, 0), length)
        found[node] = Use(sent, min(heard[node], length - sent))
    return found


def figures(uses: Sequence[Use], window_ns: int, power: RadioPower = POWER) -> dict[str, float | None]:
    """Returns the metrics. Idle radios need power, too."""
    if not uses:
        return dict.fromkeys((metric.name for metric in METRICS), None)
    whole = window_ns * len(uses)
    sent, heard = (sum(column) for column in zip(*uses, strict=True))
    active = sent * (power.send - power.idle) + heard * (power.receive - power.idle)
    return {
        "airtime_sent_ratio": rounded(sent / whole),
        "airtime_near_ratio": rounded((sent + heard) / whole),
        "airtime_near_max_ratio": rounded(max(map(sum, uses)) / window_ns),
        "radio_energy_j": rounded((active + whole * power.idle) / 1e9),
        "radio_energy_active_j": rounded(active / 1e9),
    }


AIRTIME_FIGURES = Figures(Later(f"{_HERE}.airtime_frames:frames"), _values, METRICS)

_NOTE = (
    "Near a node: while it, or a node with a link to it, sent; times of several senders add up. The energy "
    f"is that of all radios by a model: {POWER.send:g} W sending, {POWER.receive:g} W hearing, "
    f"{POWER.idle:g} W idle, without processors; active is what exceeds idling."
)


def _section(view: View) -> str:
    """Returns the section; empty if the radio did not count."""
    columns = [
        ("airtime_sent_ratio", "a node sends<br>%", 100, 2),
        ("airtime_near_ratio", "in use near<br>a node %", 100, 1),
        ("airtime_near_max_ratio", "near the<br>busiest %", 100, 1),
        ("radio_energy_j", "radios<br>J", 1, 0),
        ("radio_energy_active_j", "of that<br>active J", 1, 1),
    ]
    found = [
        (
            cell.label or "run",
            [spread([result["metrics"].get(name) for _, result in cell.runs]) for name, *_ in columns],
        )
        for cell in view.cells
    ]
    if not any(each["mean"] is not None for _, spreads in found for each in spreads):
        return ""
    rows = [
        [
            escape(label),
            *(number(s, factor, digits) for s, (_, _, factor, digits) in zip(spreads, columns, strict=True)),
        ]
        for label, spreads in found
    ]
    headings = ["", *(heading for _, heading, _, _ in columns)]
    return f'<h2 id="medium">Use of the medium</h2>{table(headings, rows)}<p class="soft">{_NOTE}</p>\n'


AIRTIME_SECTION = Section(550, _section)
