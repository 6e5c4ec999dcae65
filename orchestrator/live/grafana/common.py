"""What dashboards have in common: how series are chosen, expressions, and panels that several show."""

from collections.abc import Sequence
from typing import NamedTuple

from node_agent.apps.dataflow import metrics as d
from orchestrator.live import metrics as m
from orchestrator.live.grafana.panels import RATE, Panel, Query, Row

RUN = 'job="$job", run=~"$run"'
NODE = f'{RUN}, node=~"$node"'
REPLICA = f'{NODE}, replica=~"$operator"'
SWEEP = 'job="$job", experiment=~"$experiment"'


class Dashboard(NamedTuple):
    """``variables``: names in ``_VARIABLES``, besides those that all have."""

    uid: str
    title: str
    text: str
    rows: Sequence[Row]
    variables: Sequence[str] = ("run", "node", "operator")


def rate(name: str, labels: str, by: str) -> str:
    return f"sum by ({by}) (rate({name}{{{labels}}}[{RATE}]))"


def quantile(share: float, name: str, labels: str, by: str) -> str:
    return f"histogram_quantile({share}, sum by ({by}, le) (rate({name}_bucket{{{labels}}}[{RATE}])))"


def percentiles(name: str, labels: str, by: str, legend: str, rare: bool = False) -> list[Query]:
    return [
        Query(quantile(share, name, labels, by), f"{legend} {text}", rare)
        for share, text in ((0.5, "median"), (0.95, "95 %"), (0.99, "99 %"))
    ]


THROUGHPUT = Panel(
    "Tuples",
    (
        Query(rate(f"{d.EMITTED}_total", RUN, "run, app"), "{{run}} {{app}} emitted"),
        Query(rate(f"{d.DELIVERED}_total", RUN, "run, app"), "{{run}} {{app}} delivered"),
    ),
    "What sources emit, and what sinks deliver of it.",
    "cps",
)
LATENCY = Panel(
    "Latency",
    percentiles(d.LATENCY, RUN, "run, app", "{{run}} {{app}}"),
    "From the capture of a tuple to its delivery, by the clocks of both nodes.",
    "s",
)
DROPS = Panel(
    "Tuples dropped",
    (Query(rate(d.DROPPED, RUN, "app, reason"), "{{app}} {{reason}}", rare=True),),
    "By reason. Absorbed and filtered ones are not lost.",
    "cps",
)
SWITCHES = Panel(
    "Switches",
    (Query(f"sum by (node, replica, downstream) (increase({d.SWITCHES}{{{REPLICA}}}[1m]))", "{{replica}}"),),
    "How often a replica took another downstream replica, in the last minute.",
)
MIGRATIONS = Panel(
    "Migrations",
    (
        Query(f"sum by (replica, step) ({d.MIGRATIONS}{{{REPLICA}}})", "{{replica}} {{step}}", rare=True),
        Query(f"sum by (replica) ({d.MIGRATED}{{{REPLICA}}})", "{{replica}} bytes", rare=True),
    ),
    "Steps of operators that move to other nodes, and the bytes that came with them, since the run began.",
)
QUEUES = Panel(
    "Queues",
    (Query(f"{d.QUEUE}{{{REPLICA}}}", "{{replica}} {{queue}}"),),
    "Tuples that wait, by replica and queue.",
)
ROUTES = Panel(
    "Routes in use",
    (Query(f"{d.SHARE}{{{REPLICA}}}", "{{replica}} → {{to}}"),),
    "The share of a replica's output that goes to each downstream replica; a lost route is a gap.",
    "percentunit",
    "state-timeline",
    width=24,
)
UP = Panel(
    "Nodes",
    (Query(f"{m.NODE_UP}{{{NODE}}}", "{{node}}"),),
    "1: the node is ok; 0: failed, unreachable, crashed, silent or ended.",
    kind="state-timeline",
)
AGE = Panel(
    "Age of records",
    (Query(f"{m.NODE_AGE}{{{NODE}}}", "{{node}}"),),
    "How far the newest record of a node is behind that of the run.",
    "s",
)
ALERTS = Panel(
    "Alerts",
    (
        Query(
            'ALERTS{alertname=~"Rove.*", alertstate="firing", run=~"$run"}',
            "{{alertname}} {{node}}",
            rare=True,
        ),
    ),
    "Rules of dashboards/prometheus/rules.yml that hold now.",
    kind="state-timeline",
    width=24,
    height=6,
)


def stat(title: str, expression: str, text: str, unit: str = "short", legend: str = "") -> Panel:
    return Panel(title, (Query(expression, legend),), text, unit, "stat", width=4, height=4, least=None)
