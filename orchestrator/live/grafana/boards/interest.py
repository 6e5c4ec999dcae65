"""Situations around moving objects: a row of the board of a run."""

from node_agent.apps.mcep import metrics as m
from orchestrator.live.grafana.common import RUN, rate
from orchestrator.live.grafana.panels import Panel, Query, Row


def _sum(metric: str, by: str, title: str) -> Query:
    return Query(f"sum by (app, {by}) ({metric}{{{RUN}}})", title, rare=True)


def _rate(metric: str, by: str, title: str) -> Query:
    return Query(rate(metric, RUN, f"app, {by}"), title, rare=True)


INTEREST = Row(
    "Situations around moving objects",
    (
        Panel(
            "Situations",
            (_sum(m.FOUND, "query", "{{query}}"), _sum(m.SWITCHES, "query", "{{query}}, switches")),
            "So far: results that focal objects got, and switches of interests.",
        ),
        Panel(
            "Events",
            (
                _rate(m.READ, "type", "{{type}} seen"),
                _rate(m.STREAMED, "node", "{{node}} streamed"),
                _rate(m.SKIPPED, "node", "{{node}} left out"),
                _rate(m.SELECTIONS, "node", "{{node}} selections"),
            ),
            "Events that sensors saw, brokers sent to operators or suppression left out; selections.",
            "cps",
        ),
        Panel(
            "Shared selections",
            (
                _rate(m.DECIDED, "manager", "{{manager}} decided"),
                _rate(m.CORRELATED, "manager", "{{manager}} processed"),
                _rate(m.COMPARED, "manager", "{{manager}} comparisons"),
            ),
            "Selections that managers decided about, those of them that were processed, and comparisons.",
            "cps",
        ),
        Panel(
            "Brokers",
            (
                _sum(m.STORED, "node", "{{node}} keeps"),
                _sum(m.BEFORE_OPERATORS, "node", "{{node}}, before operators"),
                _sum(m.STALLED, "node", "{{node}} stalls"),
            ),
            "Events that brokers keep, messages that wait before operators, and 1 while nothing goes on.",
        ),
        Panel(
            "Between nodes",
            (
                _rate(m.MESSAGES, "node, neighbour", "{{node}} to {{neighbour}}"),
                _sum(m.WAITING, "node, neighbour", "{{node}} to {{neighbour}}, waiting"),
                _sum(m.HANDOVERS, "node", "{{node}}, other brokers"),
            ),
            "Messages sent and waiting, and how often clients came to another broker.",
        ),
        Panel(
            "Bytes between nodes",
            (_rate(m.BYTES, "node, neighbour", "{{node}} to {{neighbour}}"),),
            "Messages, without headers.",
            "Bps",
        ),
    ),
)
