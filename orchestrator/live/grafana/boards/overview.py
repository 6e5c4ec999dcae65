"""One run: what is delivered, how late, and whether its figures will count."""

from node_agent.apps.dataflow import metrics as d
from orchestrator.live import metrics as m
from orchestrator.live.grafana.boards.detection import DETECTION
from orchestrator.live.grafana.boards.interest import INTEREST
from orchestrator.live.grafana.common import (
    AGE,
    ALERTS,
    DROPS,
    LATENCY,
    MIGRATIONS,
    QUEUES,
    ROUTES,
    RUN,
    SWITCHES,
    THROUGHPUT,
    UP,
    Dashboard,
    percentiles,
    quantile,
    rate,
    stat,
)
from orchestrator.live.grafana.panels import Panel, Query, Row

SENT = "rove_flow_sent_bytes_total"
RECEIVED = "rove_flow_received_bytes_total"
DELAY = "rove_flow_delay_seconds"

OVERVIEW = Dashboard(
    "rove-run",
    "Rove: run",
    "One run: what is delivered, how late, and whether its figures will count.",
    (
        Row(
            "Now",
            (
                Panel(
                    "Phase",
                    (Query(f"{m.RUN_PHASE}{{{RUN}}}", "{{phase}}"),),
                    "The phase that the run is in.",
                    kind="stat",
                    width=4,
                    height=4,
                    least=None,
                ),
                stat("Time", f"{m.RUN_TIME}{{{RUN}}}", "Since the run's first record.", "s"),
                stat("Nodes up", f"sum({m.NODE_UP}{{{RUN}}})", "Nodes that are ok."),
                stat("Doubts", f"{m.RUN_DOUBTS}{{{RUN}}}", "Reasons so far why the run may not be valid."),
                stat(
                    "Delivered",
                    rate(f"{d.DELIVERED}_total", RUN, "app"),
                    "Tuples a second.",
                    "cps",
                    "{{app}}",
                ),
                stat(
                    "Latency, 95 %",
                    quantile(0.95, d.LATENCY, RUN, "app"),
                    "Of delivered tuples.",
                    "s",
                    "{{app}}",
                ),
            ),
        ),
        Row("Queries", (THROUGHPUT, LATENCY, DROPS, QUEUES, SWITCHES, ROUTES, MIGRATIONS)),
        Row(
            "Flows",
            (
                Panel(
                    "Flows",
                    (
                        Query(f"8 * {rate(SENT, RUN, 'app, flow')}", "{{flow}} sent", rare=True),
                        Query(f"8 * {rate(RECEIVED, RUN, 'app, flow')}", "{{flow}} received", rare=True),
                    ),
                    "Traffic of the application flows.",
                    "bps",
                ),
                Panel(
                    "Delay of flows",
                    percentiles(DELAY, RUN, "app, flow", "{{flow}}", rare=True),
                    "From sending a packet to its arrival, by the clocks of both nodes.",
                    "s",
                ),
            ),
        ),
        DETECTION,
        INTEREST,
        Row("Nodes", (UP, AGE, ALERTS)),
    ),
)
