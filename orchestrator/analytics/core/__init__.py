"""The core's contribution to the analysis: tables, metrics and sections that concern no single application.

``CONTRIBUTION`` is about each run, ``PATHS`` about the paths that each application of a run needs. New ones
go into a file of their own and into the tuples below; ``results.contribution`` says what they are made of.
"""

from orchestrator.analytics.core.airtime import AIRTIME, AIRTIME_FIGURES, AIRTIME_SECTION
from orchestrator.analytics.core.fairness import FAIRNESS
from orchestrator.analytics.core.overhead import OVERHEAD, OVERHEAD_FIGURES, OVERHEAD_SECTION
from orchestrator.analytics.core.tables import (
    APPS,
    CONNECTIVITY,
    DELIVERIES,
    LINKS_TRUTH,
    NODES,
    POSITIONS,
    QUARANTINE,
    RUNS,
)
from orchestrator.analytics.core.values import LOGS, NETWORK, TIMES, WAYS
from orchestrator.results.contribution import ANY, Contribution, Drawing, Later, Section

_HERE = "orchestrator.analytics.core"

CONTRIBUTION = Contribution(
    version=2,
    tables=(LINKS_TRUTH, NODES, RUNS, APPS, OVERHEAD, POSITIONS, DELIVERIES, AIRTIME, QUARANTINE),
    figures=(TIMES, LOGS, NETWORK, OVERHEAD_FIGURES, FAIRNESS, AIRTIME_FIGURES),
    drawings=(
        Drawing(600, Later(f"{_HERE}.run_figures:trajectories")),
        Drawing(200, Later(f"{_HERE}.radio_section:degrees"), "radio"),
        Drawing(300, Later(f"{_HERE}.radio_section:delivery_by_distance"), "radio"),
        Drawing(400, Later(f"{_HERE}.run_figures:link_deliveries"), "radio"),
    ),
    sections=(
        Section(200, Later(f"{_HERE}.faults_section:faults")),
        OVERHEAD_SECTION,
        AIRTIME_SECTION,
        Section(600, Later(f"{_HERE}.radio_section:radio")),
        Section(700, Later(f"{_HERE}.clocks_section:clocks")),
    ),
)

PATHS = Contribution(
    kind=ANY,
    tables=(CONNECTIVITY,),
    figures=(WAYS,),
    drawings=(Drawing(100, Later(f"{_HERE}.run_figures:connectivity"), "radio"),),
)
