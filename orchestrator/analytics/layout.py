"""Which contributions are about a run, and by what it is known that kept tables and results are of them."""

from collections.abc import Iterator, Sequence

from orchestrator.results import registry
from orchestrator.results.contribution import Contribution, Table
from orchestrator.results.inputs import AppInput, RunInput

VERSION = 4
"""Tables lie under ``.tables/v<VERSION>``; a change of columns takes a new one: old and new never mix."""

RESULTS_VERSION = 8
"""Part of what results are kept under: raise it when metrics or series are computed in another way."""


def contributed(app: AppInput | None) -> list[Contribution]:
    """Those about an application; of None, about the whole run."""
    if app is None:
        return registry.about("")
    return [each for each in registry.about(app.kind) if each.applies(app)]


def of_run(run: RunInput) -> Iterator[Contribution]:
    for subject in (None, *run.apps.values()):
        yield from contributed(subject)


def tables_of(runs: Sequence[RunInput]) -> list[Table]:
    """The tables that at least one of the runs has."""
    return list(dict.fromkeys(table for run in runs for each in of_run(run) for table in each.tables))


def layout(run: RunInput) -> str:
    """Of its tables: changes when a column does."""
    parts = [
        f"{table.name} {sorted((k, v.name) for k, v in table.columns.items())}" for table in tables_of([run])
    ]
    return " ".join([str(VERSION), *parts])


def stamp(run: RunInput, fingerprint: str) -> str:
    """Of its results: changes when what they are computed from does, or the way in which they are."""
    names = [
        f"{each.version}:{','.join(metric.name for metric in each.metrics)}"
        f":{','.join(name for figures in each.figures for name in figures.series)}"
        for each in of_run(run)
    ]
    return " ".join([str(RESULTS_VERSION), fingerprint, *names])
