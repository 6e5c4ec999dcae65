"""Finds the contributions about a run, and computes the stamps by which stored tables and results are
recognised.
"""

from collections.abc import Iterator, Sequence

from orchestrator.results import registry
from orchestrator.results.contribution import Contribution, Table
from orchestrator.results.inputs import AppInput, RunInput

VERSION = 5
"""Tables are stored under ``.tables/v<VERSION>``. Raise it when columns change, so that old and new never
mix.
"""

RESULTS_VERSION = 8
"""Part of the stamp of results. Raise it when metrics or series are computed in another way."""


def contributed(app: AppInput | None) -> list[Contribution]:
    """Returns the contributions about an application; for None, those about the whole run."""
    if app is None:
        return registry.about("")
    return [each for each in registry.about(app.kind) if each.applies(app)]


def of_run(run: RunInput) -> Iterator[Contribution]:
    for subject in (None, *run.apps.values()):
        yield from contributed(subject)


def tables_of(runs: Sequence[RunInput]) -> list[Table]:
    """Returns the tables that at least one of the runs has."""
    return list(dict.fromkeys(table for run in runs for each in of_run(run) for table in each.tables))


def layout(run: RunInput) -> str:
    """Returns a text about the run's tables that changes when a column does."""
    parts = [
        f"{table.name} {sorted((k, v.name) for k, v in table.columns.items())}" for table in tables_of([run])
    ]
    return " ".join([str(VERSION), *parts])


def stamp(run: RunInput, fingerprint: str) -> str:
    """Returns a text about the run's results that changes when their input or their computation does."""
    names = [
        f"{each.version}:{','.join(metric.name for metric in each.metrics)}"
        f":{','.join(name for figures in each.figures for name in figures.series)}"
        for each in of_run(run)
    ]
    return " ".join([str(RESULTS_VERSION), fingerprint, *names])
