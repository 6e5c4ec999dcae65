"""Prints figures with rows: one JSON object for machines, an aligned table for people."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def main(description: str, measure: Callable[[], tuple[Mapping[str, Any], Sequence[Row]]]) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    show(description, *measure(), as_json=arguments.json)


def show(description: str, figures: Mapping[str, Any], rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**figures, "rows": rows}))
        return
    print(description)
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for name, value in figures.items():
        print(f"  {name}: {_shown(value)}")


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
