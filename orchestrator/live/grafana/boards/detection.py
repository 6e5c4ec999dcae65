"""The detection of events: a row of the board of a run."""

from node_agent.apps.comet import metrics as c
from orchestrator.live.grafana.common import RUN, percentiles, rate
from orchestrator.live.grafana.panels import Panel, Query, Row


def _rate(metric: str, title: str) -> Query:
    return Query(rate(metric, RUN, "app, node, neighbour"), title, rare=True)


def _sum(metric: str, by: str, title: str) -> Query:
    return Query(f"sum by (app, {by}) ({metric}{{{RUN}}})", title, rare=True)


DETECTION = Row(
    "Detection of events",
    (
        Panel(
            "Detections",
            (
                _sum(c.DETECTIONS, "pattern", "{{pattern}}"),
                _sum(c.OCCURRED, "event", "{{event}} occurred"),
            ),
            "So far: detections by pattern, and instances of events that occurred.",
        ),
        Panel(
            "Delay of detections",
            percentiles(c.DELAY, RUN, "app, pattern", "{{pattern}}", rare=True),
            "From the last event to the detection, by the clocks of both nodes.",
            "s",
        ),
        Panel(
            "Messages on links",
            (
                _rate(c.INSTANCES, "{{node}} to {{neighbour}}"),
                _rate(c.REFERENCES, "{{node}} to {{neighbour}}, again"),
                _rate(c.REQUESTS, "{{node}} asks {{neighbour}}"),
                _rate(c.MARKS, "{{node}} to {{neighbour}}, marks"),
            ),
            "Instances of events, requests for them, and marks of how complete streams are.",
            "cps",
        ),
        Panel(
            "Bytes on links",
            (_rate(c.BYTES, "{{node}} to {{neighbour}}"),),
            "Contents and messages, without headers.",
            "Bps",
        ),
        Panel(
            "Contacts",
            (
                Query(f"{c.CONNECTED}{{{RUN}}}", "{{node}} to {{neighbour}}", rare=True),
                _sum(c.CONTACTS, "node, neighbour", "{{node}} to {{neighbour}}, so far"),
            ),
            "1 while a node is connected to a neighbour, and how often it was.",
        ),
        Panel(
            "Waiting for contacts",
            (_sum(c.WAITING_BYTES, "node, neighbour", "{{node}} for {{neighbour}}"),),
            "Bytes that wait for a neighbour.",
            "bytes",
        ),
        Panel(
            "Stores",
            (
                _sum(c.STORED, "node", "{{node}}"),
                _sum(c.MATCHES, "node", "{{node}}, matches"),
                _sum(c.UNDECIDED, "node", "{{node}}, undecided"),
                _sum(c.WAITING, "node", "{{node}}, messages"),
                _sum(c.DROPPED, "node", "{{node}} gave up"),
            ),
            "What nodes keep: instances to match, matches for requests, matches that wait for an absence, "
            "messages for neighbours; and what full stores gave up.",
        ),
    ),
)
