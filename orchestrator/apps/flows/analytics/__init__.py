"""What flows contribute to the analysis: tables of seconds and totals, metrics by flow and in all, a figure.

``CONTRIBUTION`` is registered in ``orchestrator.results.registry``. Modules with Spark or matplotlib are
imported when they are needed.
"""

from orchestrator.apps.flows.analytics.metrics import BY_FLOW, FIGURES, notes
from orchestrator.apps.flows.analytics.reader import READER
from orchestrator.apps.flows.analytics.tables import TABLES
from orchestrator.results.contribution import Contribution, Drawing, Later

CONTRIBUTION = Contribution(
    kind="flows",
    reader=READER,
    tables=TABLES,
    figures=(FIGURES,),
    drawings=(Drawing(100, Later("orchestrator.apps.flows.analytics.drawing:flows_over_time")),),
    breakdowns=(BY_FLOW,),
    share=lambda metrics: metrics.get("flow_delivery_ratio"),
    notes=notes,
)
