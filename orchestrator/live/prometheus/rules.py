"""Recording and alert rules for Prometheus, as values; ``text`` is the file that Prometheus reads.

An alert says that a run that goes on may come to nothing. It fires only while the run is measured, and clears
itself. Rates look back over three scrapes, so that one late scrape does no harm.
"""

from typing import Any, NamedTuple

import yaml

from node_agent.agent.metrics import BOOT, RECORDS
from node_agent.apps.dataflow.metrics import DELIVERED, DROPPED, EMITTED, LATENCY, QUEUE, SWITCHES
from orchestrator.backends.netns.radio.lateness import MOST_LATE
from orchestrator.live import metrics as m
from orchestrator.live.metrics import APP, NODE, TARGET_LABELS
from orchestrator.live.prometheus.targets import JOB
from orchestrator.runs.phases import Phase

SCRAPE_S = 5
WINDOW = f"{3 * SCRAPE_S}s"
"""Holds three samples, from the first to the last of which 10 s pass."""
ARRIVES = f"{4 * SCRAPE_S}s"
STALLED_S = 15
SILENT_FOR = "10s"
SHORT_S = 2
"""Windows of a query up to which something must be delivered in every ``WINDOW``."""
LONG_S = 300
"""Windows beyond which nobody says that a query delivers too little."""
PATIENCE = "10m"
"""For how long queries with windows between these may deliver nothing."""
REMEMBERED = "5m"
"""For how long a sink that cannot be asked is known to be one."""
MOST_SWITCHES = 10
"""In a minute. By default a replica decides thirty times in it."""

RUN = ", ".join(TARGET_LABELS)
RUN_APP = f"{RUN}, {APP}"
MEASURED = f'{m.RUN_PHASE}{{phase="{Phase.MEASURE}"}}'
_DEAD = f'{m.NODE_STATE}{{state=~"crashed|failed"}}'
SENT_PACKETS, RECEIVED_PACKETS = "rove_flow_sent_packets_total", "rove_flow_received_packets_total"


class Recording(NamedTuple):
    name: str
    expression: str


class Alert(NamedTuple):
    """``text``: one sentence, in which Prometheus puts labels."""

    name: str
    expression: str
    lasts: str
    summary: str
    text: str


def backlog(by: str, labels: str = "") -> str:
    """Records that a node's agent has taken since it was started and this machine has not read. What was read
    of an earlier start does not count.
    """
    own = f"{{{labels}}}" if labels else ""
    read = f"sum by ({by}) ({m.BOOT_RECORDS_READ}{own})"
    is_of_this_start = f"(sum by ({by}) ({m.BOOT_READ}{own}) == bool sum by ({by}) ({BOOT}{own}))"
    return f"clamp_min(sum by ({by}) ({RECORDS}{own}) - {read} * {is_of_this_start}, 0)"


RECORDINGS = (
    Recording("run_app:rove_tuples_emitted:rate15s", f"sum by ({RUN_APP}) (rate({EMITTED}_total[{WINDOW}]))"),
    Recording(
        "run_app:rove_tuples_delivered:rate15s", f"sum by ({RUN_APP}) (rate({DELIVERED}_total[{WINDOW}]))"
    ),
    Recording(
        "run_app:rove_tuples_delivered_bytes:rate15s",
        f"sum by ({RUN_APP}) (rate({DELIVERED}_bytes_total[{WINDOW}]))",
    ),
    Recording(
        "run_app:rove_tuple_latency_seconds:p95_15s",
        f"histogram_quantile(0.95, sum by ({RUN_APP}, le) (rate({LATENCY}_bucket[{WINDOW}])))",
    ),
    Recording("run_app:rove_route_switches:increase1m", f"sum by ({RUN_APP}) (increase({SWITCHES}[1m]))"),
    Recording("node:rove_telemetry_backlog", backlog(f"{RUN}, {NODE}")),
)


def _while_measured(expression: str) -> str:
    return f"({expression})\nand on (run) {MEASURED}"


def _measured_for(seconds: int, expression: str) -> str:
    """``expression``, in a run that was measured that long ago already: what a machine does before that, such
    as starting agents, does not count in the verdict.
    """
    return f"({expression}\nand on (run) {MEASURED} offset {seconds}s)"


def _seen_throughout(counter: str) -> str:
    """Returns the increase of a counter until one scrape ago, if every scrape of the window has found it:
    after a gap of Prometheus itself, one node is scraped before the others. What was sent just now is still
    under way.
    """
    return f"increase({counter}[10s] offset {SCRAPE_S}s) and count_over_time({counter}[{WINDOW}]) >= 3"


def _grew(by: str, counter: str, since: str = ARRIVES) -> str:
    """Whether a counter has increased, or has begun. By default since what ``_seen_throughout`` looks at was
    sent.
    """
    begun = f"sum by (run, {by}) ({counter} unless {counter} offset {since})"
    return f"(sum by (run, {by}) (increase({counter}[{since}])) > 0 or {begun})"


def _cannot_be_seen(sinks: str, series: str, by: str) -> str:
    """Those of ``sinks`` that some scrape did not find. It is known of a node whose agent does not run that
    it delivers nothing.
    """
    seen = f"count_over_time({series}[{WINDOW}]) >= 3"
    return f"{sinks} unless on (run, {by}) ({seen}) unless on (run, {NODE}) {_DEAD}"


def _no_delivery() -> str:
    """Of queries: sinks are the replicas that have a queue for input and none for output. A query with
    windows of more than ``SHORT_S`` may deliver nothing for ``PATIENCE``.
    """
    windows = f"max by (run, {APP}) ({m.QUERY_WINDOWS})"
    inputs, outputs = f'{QUEUE}{{queue="input"}}', f'{QUEUE}{{queue=~"output:.*"}}'
    emitted, delivered = f"{EMITTED}_total", f"{DELIVERED}_total"
    sinks = (
        f"(count_over_time({inputs}[{REMEMBERED}]) "
        f"unless on (run, {APP}, replica) count_over_time({outputs}[{REMEMBERED}]))"
    )
    return f"""\
sum by ({RUN_APP}) ({_seen_throughout(emitted)}) > 0
and on (run, {APP}) {sinks}
unless on (run, {APP}) ({_cannot_be_seen(sinks, inputs, f"{APP}, replica")})
unless on (run, {APP}) {_grew(APP, delivered)}
unless on (run, {APP}) {_grew(APP, f'{DROPPED}{{reason="filtered"}}')}
unless on (run, {APP}) (
  (
    {windows} > {SHORT_S}
    or sum by (run, {APP}) ({DROPPED}{{reason="absorbed"}}) > 0 unless on (run, {APP}) {windows} <= {SHORT_S}
  )
  and on (run, {APP}) (
    {_grew(APP, delivered, PATIENCE)}
    or sum by (run, {APP}) ({emitted} unless {emitted} offset {PATIENCE})
    or {windows} > {LONG_S}
  )
)"""


def _no_arrival() -> str:
    """Of flows. Where the sink of a flow is cannot be told before something has arrived: until then, every
    node has to be seen.
    """
    flow = f"{APP}, flow"
    sinks = f"count_over_time({RECEIVED_PACKETS}[{REMEMBERED}])"
    unseen = f'min_over_time(up{{job="{JOB}", {NODE}!=""}}[{WINDOW}]) == 0 unless on (run, {NODE}) {_DEAD}'
    return f"""\
sum by ({RUN_APP}, flow) ({_seen_throughout(SENT_PACKETS)}) > 0
unless on (run, {flow}) {_grew(flow, RECEIVED_PACKETS)}
unless on (run, {flow}) ({_cannot_be_seen(sinks, RECEIVED_PACKETS, flow)})
unless on (run, {flow}) ({SENT_PACKETS} and on (run) ({unseen}) unless on (run, {flow}) {sinks})"""


ALERTS = (
    Alert(
        "RoveTelemetryStalled",
        _while_measured(
            f"{m.NODE_AGE} > {STALLED_S}\nand on (run, {NODE}) {m.NODE_UP} == 1\n"
            f"and on (run, {NODE}) increase({RECORDS}[{WINDOW}]) > 0"
        ),
        "5s",
        "Records of {{ $labels.node }} do not arrive",
        "Node {{ $labels.node }} of run {{ $labels.run }} takes records, but the newest one here is "
        "{{ $value | humanizeDuration }} old.",
    ),
    Alert(
        "RoveHostLate",
        _while_measured(
            _measured_for(
                30, f"avg_over_time({m.HOST_DELAY}[30s]) > on (run) group_left () {m.HOST_DELAY_LIMIT}"
            )
            + "\nor "
            + _measured_for(30, f"avg_over_time({m.HOST_WAITED}[30s]) > {m.HOST_WAITED_LIMIT}")
            + "\nor "
            + _measured_for(
                15, f"min_over_time({m.HOST_LATE}[15s]) > on (run) group_left () {m.HOST_LATE_LIMIT}"
            )
            + f"\nor {m.RADIO_LATE} > {MOST_LATE:g}"
        ),
        "0s",
        "The machine does not keep up",
        "Run {{ $labels.run }} may become invalid: {{ if $labels.machine }}{{ $labels.machine }}{{ else }}"
        "this machine, or the radio that it emulates,{{ end }} is late.",
    ),
    Alert(
        "RoveClockOff",
        _while_measured(
            f"{m.CLOCK_UNCERTAINTY} > on (run) group_left () {m.CLOCK_BOUND}\n"
            f"or abs(delta({m.CLOCK_OFFSET}[2m])) > on (run) group_left () (2 * {m.CLOCK_BOUND})"
        ),
        "0s",
        "The clock of {{ $labels.node }} is off",
        "The clock of {{ $labels.node }} in run {{ $labels.run }} was set, or is known too poorly: "
        "{{ $value | humanizeDuration }}.",
    ),
    Alert(
        "RoveNoDelivery",
        _while_measured(f"(\n{_no_delivery()}\n)\nor (\n{_no_arrival()}\n)"),
        "0s",
        "{{ $labels.app }} delivers nothing",
        "Sources of {{ $labels.app }} in run {{ $labels.run }} send, but nothing was delivered for 10 s.",
    ),
    Alert(
        "RoveNodeSilent",
        _while_measured(
            f"max by ({RUN}, {NODE}) (\n  ({m.NODE_UP} == bool 0)\n"
            f'  or (up{{job="{JOB}", {NODE}!=""}} == bool 0)\n) > 0'
        ),
        SILENT_FOR,
        "{{ $labels.node }} is silent",
        "Node {{ $labels.node }} of run {{ $labels.run }} does not answer, or its agent does not run.",
    ),
    Alert(
        "RoveReplicaFlapping",
        _while_measured(f"increase({SWITCHES}[1m]) > {MOST_SWITCHES}"),
        "0s",
        "{{ $labels.replica }} flaps",
        "Replica {{ $labels.replica }} on {{ $labels.node }} switched between replicas of "
        "{{ $labels.downstream }} {{ $value | humanize }} times in a minute.",
    ),
)


def document() -> dict[str, Any]:
    recorded = [{"record": each.name, "expr": each.expression} for each in RECORDINGS]
    alerts = [
        {
            "alert": each.name,
            "expr": each.expression,
            "for": each.lasts,
            "labels": {"severity": "warning"},
            "annotations": {"summary": each.summary, "description": each.text},
        }
        for each in ALERTS
    ]
    interval = f"{SCRAPE_S}s"
    return {
        "groups": [
            {"name": "rove", "interval": interval, "rules": recorded},
            {"name": "rove-alerts", "interval": interval, "rules": alerts},
        ]
    }


def text() -> str:
    return yaml_text(document())


def yaml_text(value: Any) -> str:
    """Returns YAML in which long expressions stand as they were written."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Values that occur twice are written twice."""
        return True


def _as_block(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _as_block)
