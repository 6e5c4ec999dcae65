"""Runs of a sweep beside each other, by the number of replicas."""

from node_agent.apps.dataflow import metrics as d
from orchestrator.live import metrics as m
from orchestrator.live.grafana.common import SWEEP, Dashboard, quantile, rate
from orchestrator.live.grafana.panels import Panel, Query, Row

COMPARISON = Dashboard(
    "rove-sweep",
    "Rove: sweep",
    "Runs of a sweep beside each other, by k, the number of replicas.",
    (
        Row(
            "By k",
            (
                Panel(
                    "Delivered",
                    (
                        Query(
                            f"avg by (k, app) ({rate(f'{d.DELIVERED}_total', SWEEP, 'run, k, app')})",
                            "k={{k}} {{app}}",
                        ),
                    ),
                    "Mean over the runs that go on at a time.",
                    "cps",
                ),
                Panel(
                    "Latency, 95 %",
                    (Query(quantile(0.95, d.LATENCY, SWEEP, "k, app"), "k={{k}} {{app}}"),),
                    "Over all tuples of runs with the same k.",
                    "s",
                ),
                Panel(
                    "Switches",
                    (
                        Query(
                            f"avg by (k, app) (sum by (run, k, app) (increase({d.SWITCHES}{{{SWEEP}}}[1m])))",
                            "k={{k}} {{app}}",
                        ),
                    ),
                    "Of a run, in the last minute.",
                ),
                Panel(
                    "Delivered of emitted",
                    (
                        Query(
                            f"sum by (k, app) (increase({d.DELIVERED}_total{{{SWEEP}}}[1m])) / "
                            f"sum by (k, app) (increase({d.EMITTED}_total{{{SWEEP}}}[1m]))",
                            "k={{k}} {{app}}",
                        ),
                    ),
                    "Share of emitted tuples that were delivered, in the last minute.",
                    "percentunit",
                ),
            ),
        ),
        Row(
            "Runs",
            (
                Panel(
                    "Runs",
                    (
                        Query(
                            f"sum by (experiment, run, k, seed, app) "
                            f"(last_over_time({d.DELIVERED}_total{{{SWEEP}}}[$__range]))"
                        ),
                        Query(
                            f"sum by (experiment, run, k, seed, app) "
                            f"(last_over_time({d.EMITTED}_total{{{SWEEP}}}[$__range]))"
                        ),
                        Query(
                            f"sum by (experiment, run, k, seed, app) "
                            f"(last_over_time({d.LATENCY}_sum{{{SWEEP}}}[$__range])) / "
                            f"sum by (experiment, run, k, seed, app) "
                            f"(last_over_time({d.LATENCY}_count{{{SWEEP}}}[$__range]))"
                        ),
                    ),
                    "Tuples delivered (A) and emitted (B), and the mean latency in seconds (C), of every run "
                    "in the time that is shown.",
                    kind="table",
                    width=24,
                    height=10,
                ),
                Panel(
                    "Phases",
                    (Query(f"{m.RUN_PHASE}{{{SWEEP}}}", "{{run}} k={{k}} {{phase}}"),),
                    "Which run is in which phase.",
                    kind="state-timeline",
                    width=24,
                ),
                Panel(
                    "Verdicts",
                    (Query(f"{m.RUN_VERDICT}{{{SWEEP}}}", "{{run}} k={{k}} {{verdict}}", rare=True),),
                    "Of runs that have ended.",
                    kind="state-timeline",
                    width=24,
                ),
            ),
        ),
    ),
    ("experiment",),
)
