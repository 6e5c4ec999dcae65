"""Contributes dataflows to the analysis: tables of tuples and routes, their metrics, figures and columns.

``CONTRIBUTION`` is registered in ``orchestrator.results.registry``. A new table or metric goes into a file of
its own and into the tuples below. Modules with Spark or matplotlib are imported when they are needed.
"""

from orchestrator.apps.dataflow.analytics import cost_truth, migrations, paths, recovery
from orchestrator.apps.dataflow.analytics.metrics import ROUTES, SINKS, TUPLES, arrived_share, notes
from orchestrator.apps.dataflow.analytics.reader import READER
from orchestrator.apps.dataflow.analytics.tables import TABLES
from orchestrator.results.contribution import Contribution, Drawing, Factor, Later, Section

_HERE = "orchestrator.apps.dataflow.analytics"

CONTRIBUTION = Contribution(
    kind="query",
    version=2,
    reader=READER,
    tables=(*TABLES, paths.PATHS, migrations.STEPS),
    figures=(TUPLES, ROUTES, paths.FIGURES, recovery.FIGURES, cost_truth.FIGURES, migrations.FIGURES),
    drawings=(
        Drawing(100, Later(f"{_HERE}.drawings:goodput_over_time")),
        Drawing(200, Later(f"{_HERE}.drawings:latency_distribution")),
        Drawing(300, Later(f"{_HERE}.drawings:by_factor")),
        Drawing(400, Later(f"{_HERE}.drawings:fates")),
        Drawing(500, Later(f"{_HERE}.route_drawing:routes")),
    ),
    sections=(
        Section(110, Later("orchestrator.apps.dataflow.promises:reliability_section")),
        Section(115, migrations.section),
        Section(120, Later("orchestrator.apps.dataflow.paper:paper_section")),
    ),
    factors=(Factor("replicas", "k", "replicas per operator (k)"),),
    breakdowns=(SINKS, paths.OPERATORS),
    share=arrived_share,
    notes=notes,
)
