"""Whether the machines, the emulated radio and the clocks let the figures count."""

from orchestrator.live import metrics as m
from orchestrator.live.grafana.common import AGE, ALERTS, NODE, RUN, Dashboard, rate
from orchestrator.live.grafana.panels import Panel, Query, Row
from orchestrator.live.prometheus.rules import backlog

VALIDITY = Dashboard(
    "rove-validity",
    "Rove: radio and host",
    "Whether the machines, the emulated radio and the clocks let the figures count.",
    (
        Row(
            "Machines",
            (
                Panel(
                    "Waits of the run's processes",
                    (
                        Query(f"{m.HOST_DELAY}{{{RUN}}}", "{{run}} {{machine}}"),
                        Query(f"{m.HOST_DELAY_LIMIT}{{{RUN}}}", "{{run}} allowed"),
                    ),
                    "For a processor, each time, and what the experiment allows as a mean.",
                    "s",
                ),
                Panel(
                    "Waiting for a processor",
                    (
                        Query(f"{m.HOST_WAITED}{{{RUN}}}", "{{run}} {{machine}}", rare=True),
                        Query(f"{m.HOST_WAITED_LIMIT}{{{RUN}}}", "{{run}} {{machine}} allowed", rare=True),
                    ),
                    "Where that is not known: share of the time, and what the experiment allows as a mean.",
                    "percentunit",
                    most=1,
                ),
                Panel(
                    "Late timers",
                    (
                        Query(f"{m.HOST_LATE}{{{RUN}}}", "{{run}} {{machine}}"),
                        Query(f"{m.HOST_LATE_LIMIT}{{{RUN}}}", "{{run}} allowed"),
                    ),
                    "The latest of a second, and what the experiment allows for 99 % of them.",
                    "s",
                ),
            ),
        ),
        Row(
            "Radio",
            (
                Panel(
                    "Late deliveries",
                    (Query(f"{m.RADIO_LATE}{{{RUN}}}", "{{run}}"),),
                    "Share of the emulated radio's deliveries over 1 ms late; over 1 % makes a run invalid.",
                    "percentunit",
                ),
                Panel(
                    "Lateness, 99 %",
                    (Query(f"{m.RADIO_LATENESS}{{{RUN}}}", "{{run}}"),),
                    "Of the emulated radio.",
                    "s",
                ),
                Panel(
                    "Frames",
                    (
                        Query(rate(m.RADIO_ATTEMPTED, NODE, "run, node"), "{{node}} attempted"),
                        Query(rate(m.RADIO_DELIVERED, NODE, "run, node"), "{{node}} delivered"),
                    ),
                    "That the emulated radio took from a node, each receiver in range counted, and that it "
                    "delivered.",
                    "cps",
                ),
                Panel(
                    "Frames delivered",
                    (
                        Query(
                            f"{rate(m.RADIO_DELIVERED, NODE, 'run, node')} / "
                            f"{rate(m.RADIO_ATTEMPTED, NODE, 'run, node')}",
                            "{{node}}",
                        ),
                    ),
                    "Share of the frames of a node that the emulated radio delivered.",
                    "percentunit",
                    most=1,
                ),
            ),
        ),
        Row(
            "Clocks",
            (
                Panel(
                    "Offsets",
                    (Query(f"{m.CLOCK_OFFSET}{{{NODE}}}", "{{node}}", rare=True),),
                    "How far clocks of nodes are ahead of the orchestrator's.",
                    "s",
                    least=None,
                ),
                Panel(
                    "Uncertainty",
                    (
                        Query(f"{m.CLOCK_UNCERTAINTY}{{{NODE}}}", "{{node}}", rare=True),
                        Query(f"{m.CLOCK_BOUND}{{{RUN}}}", "allowed"),
                    ),
                    "How far that may be wrong, and what the experiment allows.",
                    "s",
                ),
            ),
        ),
        Row(
            "Records",
            (
                AGE,
                Panel(
                    "Backlog",
                    (Query(backlog("run, node", NODE), "{{node}}", rare=True),),
                    "Records that a node has taken since its agent started and this machine has not read.",
                ),
                Panel(
                    "Read",
                    (
                        Query(rate(m.RECORDS_READ, NODE, "run, node"), "{{node}} records"),
                        Query(rate(m.RECORDS_REFUSED, NODE, "run, node"), "{{node}} refused"),
                    ),
                    "Records of nodes, a second.",
                    "cps",
                ),
                Panel(
                    "Bytes read",
                    (Query(rate(m.BYTES_READ, NODE, "run, node"), "{{node}}"),),
                    "Of records of nodes.",
                    "Bps",
                ),
                Panel(
                    "Doubts, faults, refused samples",
                    (
                        Query(f"{m.RUN_DOUBTS}{{{RUN}}}", "{{run}} doubts"),
                        Query(f"{m.FAULTS_INJECTED}{{{RUN}}}", "{{run}} steps of faults"),
                        Query(f"{m.SAMPLES_REFUSED}{{{NODE}}}", "{{node}} samples refused", rare=True),
                    ),
                    "What speaks against the run, what was done to it, and samples that were left out.",
                    width=24,
                ),
                ALERTS,
            ),
        ),
    ),
    ("run", "node"),
)
