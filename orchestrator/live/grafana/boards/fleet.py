"""Real nodes while runs go on: whether they answer, their clocks and their load."""

from node_agent.agent import metrics as a
from orchestrator.live import metrics as m
from orchestrator.live.grafana.common import AGE, NODE, RUN, UP, Dashboard, rate
from orchestrator.live.grafana.panels import Panel, Query, Row

FLEET = Dashboard(
    "rove-fleet",
    "Rove: fleet (real nodes while runs go on)",
    "Real nodes while a run uses them: whether they answer, their clocks and their load. Nodes that no run "
    "uses are not here; `rove serve TOPOLOGY` shows them.",
    (
        Row(
            "Nodes",
            (
                Panel(
                    "Nodes",
                    (
                        Query(f"{m.NODE_UP}{{{NODE}}}"),
                        Query(f"{m.NODE_AGE}{{{NODE}}}"),
                        Query(f"{m.CLOCK_OFFSET}{{{NODE}}}", rare=True),
                        Query(f"{a.BOOT}{{{NODE}}}"),
                    ),
                    "Whether a node is up (A), the age of its records in seconds (B), how far its clock is "
                    "ahead (C), and how often its agent was started (D).",
                    kind="table",
                    width=24,
                    height=10,
                ),
                UP,
                Panel(
                    "States",
                    (Query(f"{m.NODE_STATE}{{{NODE}}}", "{{node}} {{state}}"),),
                    "Ok, failed, unreachable, crashed, silent or ended.",
                    kind="state-timeline",
                ),
                AGE,
                Panel(
                    "Versions",
                    (Query(f"{a.INFO}{{{NODE}}}"),),
                    "Of the agents, with the clock that they use.",
                    kind="table",
                ),
            ),
        ),
        Row(
            "Machines",
            (
                Panel(
                    "Clock offsets",
                    (Query(f"{m.CLOCK_OFFSET}{{{NODE}}}", "{{node}}", rare=True),),
                    "Ahead of the orchestrator's clock.",
                    "s",
                    least=None,
                ),
                Panel(
                    "Waiting for a processor",
                    (Query(f"{m.HOST_WAITED}{{{RUN}}}", "{{machine}}", rare=True),),
                    "Share of the time in which processes of machines with one node waited.",
                    "percentunit",
                    most=1,
                ),
                Panel(
                    "Processor of agents",
                    (Query(rate(a.CPU, NODE, "node"), "{{node}}"),),
                    "Cores that agents use.",
                    "percentunit",
                ),
                Panel(
                    "Memory of agents",
                    (Query(f"{a.RESIDENT}{{{NODE}}}", "{{node}}"),),
                    "Resident memory.",
                    "bytes",
                ),
                Panel(
                    "Cost of links",
                    (Query(f"{a.LINK_COST}{{{NODE}}}", "{{node}} → {{neighbour}}"),),
                    "To each neighbour, as routing sees it.",
                    width=24,
                ),
            ),
        ),
    ),
    ("run", "node"),
)
