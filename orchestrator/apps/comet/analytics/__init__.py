"""What the detection of events contributes to the analysis: tables, metrics by pattern and link, a figure.

``CONTRIBUTION`` is registered in ``orchestrator.results.registry``. Modules with Spark or matplotlib are
imported when they are needed.
"""

from orchestrator.apps.comet.analytics.metrics import BY_ASSUMPTION, BY_LINK, BY_PATTERN, FIGURES, notes
from orchestrator.apps.comet.analytics.reader import READER
from orchestrator.apps.comet.analytics.tables import TABLES
from orchestrator.results.contribution import Contribution, Drawing, Later

CONTRIBUTION = Contribution(
    kind="detect",
    reader=READER,
    tables=TABLES,
    figures=(FIGURES,),
    drawings=(Drawing(110, Later("orchestrator.apps.comet.analytics.drawing:detections_over_time")),),
    breakdowns=(BY_PATTERN, BY_LINK, BY_ASSUMPTION),
    notes=notes,
)
