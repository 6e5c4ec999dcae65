"""The lists of tables and metrics in ``docs/telemetry.md``: ``python -m orchestrator.results.docs --write``.

They stand between two comments and are made from what contributions declare.
"""

import argparse
import sys
from pathlib import Path

from orchestrator.results import registry
from orchestrator.results.contribution import ANY, Contribution

FILE = Path(__file__).parents[2] / "docs" / "telemetry.md"
_BEGIN, _END = "<!-- {0}: made by python -m orchestrator.results.docs --write -->", "<!-- end of {0} -->"


def _whose(contribution: Contribution) -> str:
    return {"": "run", ANY: "every application"}.get(contribution.kind, f"`{contribution.kind}`")


def tables() -> str:
    """A row a table."""
    rows = [
        f"| `{table.name}` | {_whose(each)} | {table.text} |"
        for each in _in_order()
        for table in sorted(each.tables, key=lambda table: table.name)
    ]
    return "\n".join(["| table | of | a row is |", "| --- | --- | --- |", *rows])


def metrics() -> str:
    """A row for all metrics that have one definition."""
    rows = []
    for each in _in_order():
        by_text: dict[str, list[str]] = {}
        for metric in each.metrics:
            by_text.setdefault(metric.text, []).append(f"`{metric.name}`")
        rows += [f"| {', '.join(names)} | {_whose(each)} | {text} |" for text, names in by_text.items()]
    return "\n".join(["| metric | of | definition |", "| --- | --- | --- |", *rows])


def _in_order() -> list[Contribution]:
    """Rove's own: runs first, then applications."""
    own = [registry.ANALYTICS[name] for name in ("core", "paths")]
    names = [name for name in registry.ANALYTICS if registry.ANALYTICS.installed(name) is None]
    return [*own, *(registry.ANALYTICS[name] for name in names if registry.ANALYTICS[name] not in own)]


def written(text: str) -> str:
    """``text`` with both lists as they should be."""
    for name, made in (("tables", tables()), ("metrics", metrics())):
        begin, end = _BEGIN.format(name), _END.format(name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{made}\n{end}{after}"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.results.docs", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing it")
    text = FILE.read_text()
    if written(text) == text:
        return 0
    if parser.parse_args().write:
        FILE.write_text(written(text))
        return 0
    print(f"{FILE.name} is out of date; run with --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
