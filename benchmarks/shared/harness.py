"""Shared by all benchmarks: `--json` for machines, a line per figure for people."""

import argparse
import json
from collections.abc import Callable, Mapping

Figures = Mapping[str, float | int | str]


def main(description: str, measure: Callable[[], Figures]) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    tell(description, measure(), arguments.json)


def tell(description: str, figures: Figures, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures))
        return
    print(description)
    for name, value in figures.items():
        print(f"  {name:<24}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<24}{value:>14}")
