"""Lists the contributions to the analysis. To add one to Rove itself, add one line to ``ANALYTICS``.

Names of tables are unique. Two kinds of applications may have metrics with the same name; one kind may not.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from node_agent.extensions import ExtensionError, Registry
from orchestrator.results.contribution import ANY, Breakdown, Contribution, Factor, Metric, PlanReader, Table


def _checked(name: str, value: object) -> Contribution:
    if not isinstance(value, Contribution):
        raise ExtensionError(f"{name} is not a Contribution of orchestrator.results.contribution")
    for table in value.tables:
        lacking = {"run", *(["app"] if value.kind else []), *table.order} - set(table.columns)
        if lacking:
            raise ExtensionError(
                f"{name}: the table {table.name!r} has no column {', '.join(sorted(lacking))}"
            )
    return value


ANALYTICS: Registry[Contribution] = Registry(
    "contribution to the analysis",
    "rove.analytics",
    _checked,
    {
        "query": "orchestrator.apps.dataflow.analytics:CONTRIBUTION",
        "faces": "orchestrator.apps.dataflow.faces.analytics:CONTRIBUTION",
        "flows": "orchestrator.apps.flows.analytics:CONTRIBUTION",
        "detect": "orchestrator.apps.comet.analytics:CONTRIBUTION",
        "interest": "orchestrator.apps.mcep.analytics:CONTRIBUTION",
        "paths": "orchestrator.analytics.core:PATHS",
        "core": "orchestrator.analytics.core:CONTRIBUTION",
    },
)


def contributions() -> dict[str, Contribution]:
    """Returns all contributions by name. Raises ExtensionError if two declare the same table or metric."""
    found = {name: ANALYTICS[name] for name in ANALYTICS}
    _refuse_conflicts(tuple(found.items()))
    return found


@lru_cache(maxsize=8)
def _refuse_conflicts(found: tuple[tuple[str, Contribution], ...]) -> None:
    """Checks a set of contributions, once."""
    _refuse_twice("table", [(name, table.name) for name, each in found for table in each.tables])
    for kind in {each.kind for _, each in found}:
        alike = [(name, each) for name, each in found if each.kind in (kind, ANY, "")]
        _refuse_twice("metric", [(name, metric.name) for name, each in alike for metric in each.metrics])


def _refuse_twice(what: str, declared: Sequence[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for owner, name in declared:
        if name in owners:
            raise ExtensionError(
                f"the {what} {name!r} is declared by {owners[name]!r} and by {owner!r}: rename one of them"
            )
        owners[name] = owner


def about(kind: str) -> list[Contribution]:
    """Returns contributions about applications of this kind; for the empty kind, those about whole runs."""
    kinds = (kind, ANY) if kind else ("",)
    return [each for each in contributions().values() if each.kind in kinds]


def reader_of(kind: str) -> PlanReader | None:
    """Returns the reader of plans of this kind of application; None if the kind is unknown here."""
    return ANALYTICS[kind].reader if kind in ANALYTICS else None


def tables() -> dict[str, Table]:
    """Returns all tables by name."""
    return {table.name: table for each in contributions().values() for table in each.tables}


def metrics(kind: str | None = None) -> dict[str, Metric]:
    """Returns metrics by name; ``kind``: only those of applications of this kind."""
    chosen = contributions().values() if kind is None else about(kind)
    return {metric.name: metric for each in chosen for metric in each.metrics}


def factors() -> list[Factor]:
    return [factor for each in contributions().values() for factor in each.factors]


def breakdowns(kind: str) -> list[Breakdown]:
    return [breakdown for each in about(kind) for breakdown in each.breakdowns]


def factor_of(path: str) -> Factor | None:
    """Returns the factor that a path such as ``replicas`` or ``apps.faces.replicas`` stands for."""
    return next((each for each in factors() if path == each.name or path.endswith(f".{each.name}")), None)


def expectable() -> Iterator[Metric]:
    """Returns the metrics that are single numbers and can be used in ``expect:``."""
    return (metric for metric in metrics().values() if metric.expect)
