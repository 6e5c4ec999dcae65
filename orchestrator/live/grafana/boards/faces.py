"""Face queries: pictures on their way, and what recognition makes of them."""

from node_agent.apps.dataflow import metrics as d
from node_agent.apps.dataflow.faces import metrics as f
from orchestrator.live.grafana.common import LATENCY, QUEUES, RUN, Dashboard, rate
from orchestrator.live.grafana.panels import Panel, Query, Row

FACES = Dashboard(
    "rove-faces",
    "Rove: faces",
    "Face queries: pictures on their way, and what recognition makes of them.",
    (
        Row(
            "Pictures",
            (
                Panel(
                    "Pictures",
                    (
                        Query(rate(f.PICTURES_SHOWN, RUN, "run, app"), "{{run}} {{app}} shown"),
                        Query(rate(f.PICTURES_SEEN, RUN, "run, app"), "{{run}} {{app}} seen"),
                    ),
                    "Shown by sources, and arrived at sinks.",
                    "cps",
                ),
                LATENCY,
                Panel(
                    "Quality",
                    (Query(f"{f.QUALITY}{{{RUN}}}", "{{replica}}"),),
                    "JPEG quality of sources.",
                    "percentunit",
                ),
                Panel(
                    "Width",
                    (Query(f"{f.WIDTH}{{{RUN}}}", "{{replica}}"),),
                    "Of the pictures of sources.",
                    "short",
                ),
            ),
        ),
        Row(
            "Faces",
            (
                Panel(
                    "Faces",
                    (
                        Query(rate(f.FACES_SHOWN, RUN, "run, app"), "{{run}} {{app}} shown"),
                        Query(rate(f.FACES_SEEN, RUN, "run, app, outcome"), "{{run}} {{app}} {{outcome}}"),
                    ),
                    "Really shown by a synthetic scene, and found, by what recognition made of them.",
                    "cps",
                ),
                Panel(
                    "Faces found",
                    (
                        Query(
                            f"sum by (run, app) (increase({f.FACES_SEEN}{{{RUN}}}[1m])) / "
                            f"sum by (run, app) (increase({f.FACES_SHOWN}{{{RUN}}}[1m]))",
                            "{{run}} {{app}}",
                        ),
                    ),
                    "Share of the faces of a synthetic scene that arrived, in the last minute. Pictures that "
                    "are lost count as not found.",
                    "percentunit",
                ),
                Panel(
                    "Time for a tuple",
                    (
                        Query(
                            f"{rate(d.PROCESSING, RUN, 'node, replica')} / "
                            f"{rate(f'{d.PROCESSED}_total', RUN, 'node, replica')}",
                            "{{node}} {{replica}}",
                        ),
                    ),
                    "What an operator takes for a picture, on its node.",
                    "s",
                ),
                QUEUES,
            ),
        ),
    ),
)
