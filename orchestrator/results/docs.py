"""Generates the lists of tables and metrics in ``docs/telemetry.md``: ``python -m orchestrator.results.docs
--write``.

They are between two comments and are generated from what contributions declare.
"""

import sys

from orchestrator.results import generated_docs, registry
from orchestrator.results.contribution import ANY, Contribution

FILE = generated_docs.DOCS / "telemetry.md"


def _whose(contribution: Contribution) -> str:
    return {"": "run", ANY: "every application"}.get(contribution.kind, f"`{contribution.kind}`")


def tables() -> str:
    """Returns a row for each table."""
    rows = [
        f"| `{table.name}` | {_whose(each)} | {table.text} |"
        for each in _in_order()
        for table in sorted(each.tables, key=lambda table: table.name)
    ]
    return "\n".join(["| table | of | a row is |", "| --- | --- | --- |", *rows])


def metrics() -> str:
    """Returns a row for each definition; metrics with the same definition share one."""
    rows = []
    for each in _in_order():
        by_text: dict[str, list[str]] = {}
        for metric in each.metrics:
            by_text.setdefault(metric.text, []).append(f"`{metric.name}`")
        rows += [f"| {', '.join(names)} | {_whose(each)} | {text} |" for text, names in by_text.items()]
    return "\n".join(["| metric | of | definition |", "| --- | --- | --- |", *rows])


def _in_order() -> list[Contribution]:
    """Returns Rove's own contributions: those about runs first, then those about applications."""
    own = [registry.ANALYTICS[name] for name in ("core", "paths")]
    names = [name for name in registry.ANALYTICS if registry.ANALYTICS.installed(name) is None]
    return [*own, *(registry.ANALYTICS[name] for name in names if registry.ANALYTICS[name] not in own)]


def written(text: str) -> str:
    """Returns ``text`` with all lists up to date."""
    return generated_docs.written(text, MODULE, LISTS)


MODULE = "orchestrator.results.docs"
LISTS = {"tables": tables, "metrics": metrics}

if __name__ == "__main__":
    sys.exit(generated_docs.main(FILE.name, MODULE, __doc__ or "", LISTS))
