"""What all benchmarks share: `--json` for machines, a line per figure for people."""

import argparse
import json
from collections.abc import Callable, Mapping

Figures = Mapping[str, float | int | str]


def main(description: str, measure: Callable[[], Figures]) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures = measure()
    if arguments.json:
        print(json.dumps(figures))
        return
    print(description)
    for name, value in figures.items():
        print(f"  {name:<24}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<24}{value:>14}")
