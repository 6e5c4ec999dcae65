"""What moving interests contribute to the analysis: tables, metrics by query, a figure.

``CONTRIBUTION`` is registered in ``orchestrator.results.registry``.
"""

from orchestrator.apps.mcep.analytics.metrics import BY_QUERY, FIGURES, notes
from orchestrator.apps.mcep.analytics.moving import FIGURES as MOVING
from orchestrator.apps.mcep.analytics.reader import READER
from orchestrator.apps.mcep.analytics.sharing import BY_MANAGER, BY_PAIR
from orchestrator.apps.mcep.analytics.tables import TABLES
from orchestrator.results.contribution import Contribution, Drawing, Later

CONTRIBUTION = Contribution(
    kind="interest",
    reader=READER,
    tables=TABLES,
    figures=(FIGURES, MOVING),
    drawings=(
        Drawing(120, Later("orchestrator.apps.mcep.analytics.drawing:situations_over_time")),
        Drawing(123, Later("orchestrator.apps.mcep.analytics.drawing:situations_map")),
        Drawing(121, Later("orchestrator.apps.mcep.analytics.shared_drawing:who_shared")),
        Drawing(122, Later("orchestrator.apps.mcep.analytics.drawing:operators_by_broker")),
    ),
    breakdowns=(BY_QUERY, BY_MANAGER, BY_PAIR),
    notes=notes,
)
