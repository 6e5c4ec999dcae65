"""What one node does: its replicas, its agent, and its links."""

from node_agent.agent import metrics as a
from node_agent.apps.dataflow import metrics as d
from orchestrator.live.grafana.common import NODE, QUEUES, REPLICA, Dashboard, rate
from orchestrator.live.grafana.panels import Panel, Query, Row

ONE_NODE = Dashboard(
    "rove-node",
    "Rove: node",
    "What one node does: its replicas, its agent, and its links.",
    (
        Row(
            "Replicas",
            (
                Panel(
                    "Tuples received and processed",
                    (
                        Query(rate(f"{d.RECEIVED}_total", REPLICA, "node, replica"), "{{replica}} received"),
                        Query(
                            rate(f"{d.PROCESSED}_total", REPLICA, "node, replica"), "{{replica}} processed"
                        ),
                    ),
                    "By replica of the node.",
                    "cps",
                ),
                Panel(
                    "Sent",
                    (
                        Query(
                            f"8 * {rate(f'{d.SENT}_bytes_total', REPLICA, 'replica, to')}",
                            "{{replica}} → {{to}}",
                        ),
                    ),
                    "Payload of tuples to each downstream replica.",
                    "bps",
                ),
                QUEUES,
                Panel(
                    "Time spent on tuples",
                    (Query(rate(d.PROCESSING, REPLICA, "node, replica"), "{{replica}}"),),
                    "Share of the time in which an operator works.",
                    "percentunit",
                ),
                Panel(
                    "Connections lost",
                    (
                        Query(
                            f"sum by (replica, to, reason) (increase({d.CONNECTIONS_LOST}{{{REPLICA}}}[1m]))",
                            "{{replica}} → {{to}} {{reason}}",
                            rare=True,
                        ),
                    ),
                    "In the last minute, by reason.",
                ),
                Panel(
                    "Faults of operators, and spill",
                    (
                        Query(
                            rate(d.FAULTS, REPLICA, "replica, reason"), "{{replica}} {{reason}}", rare=True
                        ),
                        Query(f"{d.SPILL}{{{NODE}}}", "{{node}} spill file", rare=True),
                        Query(rate(d.SPILL_REFUSED, NODE, "node"), "{{node}} spill refused", rare=True),
                    ),
                    "Inputs that an operator could not use; what reliable delivery keeps on disk.",
                ),
            ),
        ),
        Row(
            "Agent",
            (
                Panel(
                    "Processor",
                    (Query(rate(a.CPU, NODE, "node"), "{{node}}"),),
                    "Cores that the agent uses.",
                    "percentunit",
                ),
                Panel(
                    "Memory",
                    (Query(f"{a.RESIDENT}{{{NODE}}}", "{{node}}"),),
                    "Resident memory of the agent.",
                    "bytes",
                ),
                Panel(
                    "Open files", (Query(f"{a.OPEN_FDS}{{{NODE}}}", "{{node}}"),), "Descriptors of the agent."
                ),
                Panel(
                    "Telemetry",
                    (
                        Query(rate(a.RECORDS, NODE, "node"), "{{node}} records"),
                        Query(f"{a.BUFFERED}{{{NODE}}}", "{{node}} bytes not yet written"),
                    ),
                    "Records that the agent takes, a second.",
                ),
                Panel(
                    "Refused, and failed extensions",
                    (
                        Query(
                            rate(a.REFUSED, NODE, "node, what, reason"),
                            "{{node}} {{what}} {{reason}}",
                            rare=True,
                        ),
                        Query(
                            rate(a.EXTENSION_FAILURES, NODE, "node, what, name"),
                            "{{node}} {{what}} {{name}}",
                            rare=True,
                        ),
                    ),
                    "What the node refused, from whomever; errors in code of extensions.",
                    "cps",
                ),
                Panel(
                    "Starts",
                    (
                        Query(f"{a.BOOT}{{{NODE}}}", "{{node}} starts"),
                        Query(f"time() - {a.STARTED}{{{NODE}}}", "{{node}} seconds since the last"),
                    ),
                    "How often the node's agent was started, and how long ago.",
                ),
            ),
        ),
        Row(
            "Links",
            (
                Panel(
                    "Cost of links",
                    (Query(f"{a.LINK_COST}{{{NODE}}}", "{{node}} → {{neighbour}} ({{metric}})"),),
                    "To each neighbour, as routing sees it; a lost neighbour vanishes.",
                    width=24,
                ),
            ),
        ),
    ),
)
