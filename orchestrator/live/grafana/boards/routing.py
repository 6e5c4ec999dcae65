"""Which replicas are in use, what paths cost, and what routing spends on it."""

from node_agent.agent import metrics as a
from node_agent.apps.dataflow import metrics as d
from orchestrator.live.grafana.common import NODE, REPLICA, ROUTES, SWITCHES, Dashboard, rate
from orchestrator.live.grafana.panels import Panel, Query, Row

ROUTING = Dashboard(
    "rove-routing",
    "Rove: routing and switching",
    "Which replicas are in use, what paths cost, and what routing spends on it.",
    (
        Row(
            "Switching",
            (
                ROUTES,
                SWITCHES,
                Panel(
                    "Routes lost",
                    (
                        Query(
                            f"sum by (replica, downstream) (increase({d.ROUTES_LOST}{{{REPLICA}}}[1m]))",
                            "{{replica}} → {{downstream}}",
                            rare=True,
                        ),
                    ),
                    "How often a replica was left without any route, in the last minute.",
                ),
                Panel(
                    "Cost of the path in use",
                    (Query(f"{d.ROUTE_COST}{{{REPLICA}}}", "{{replica}} → {{to}}"),),
                    "Of the whole path to the sinks.",
                ),
                Panel(
                    "Cost of paths to candidates",
                    (Query(f"{d.PATH_COST}{{{REPLICA}}}", "{{replica}} → {{to}}"),),
                    "Of the network path to each downstream replica; a lost path vanishes.",
                ),
            ),
        ),
        Row(
            "Routing",
            (
                Panel(
                    "Cost of links",
                    (Query(f"{a.LINK_COST}{{{NODE}}}", "{{node}} → {{neighbour}}"),),
                    "By neighbour.",
                ),
                Panel(
                    "Overhead",
                    (
                        Query(
                            f"8 * {rate(a.BYTES_SENT, NODE, 'protocol, message')}",
                            "{{protocol}} {{message}} sent",
                        ),
                        Query(
                            f"8 * {rate(a.BYTES_FORWARDED, NODE, 'protocol, message')}",
                            "{{protocol}} {{message}} passed on",
                        ),
                    ),
                    "What routing daemons put on the air, and what agents tell each other for switching.",
                    "bps",
                ),
                Panel(
                    "Messages",
                    (
                        Query(rate(a.MESSAGES_SENT, NODE, "node, message"), "{{node}} {{message}} sent"),
                        Query(
                            rate(a.MESSAGES_FORWARDED, NODE, "node, message"),
                            "{{node}} {{message}} passed on",
                        ),
                    ),
                    "Of the routing protocol, by node.",
                    "cps",
                    width=24,
                ),
            ),
        ),
    ),
)
