"""Keeps lists in a page of the docs up to date: each stands between two comments and is made from code."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def written(text: str, module: str, lists: Mapping[str, Callable[[], str]]) -> str:
    """Returns ``text`` with all lists up to date. ``module`` makes them: ``python -m module --write``."""
    for name, make in lists.items():
        begin, end = f"<!-- {name}: made by python -m {module} --write -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def main(page: str, module: str, description: str, lists: Mapping[str, Callable[[], str]]) -> int:
    """Compares the page with what it should be, or writes it. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing it")
    wanted = parser.parse_args()
    file = DOCS / page
    text = file.read_text()
    if (made := written(text, module, lists)) == text:
        return 0
    if wanted.write:
        file.write_text(made)
        return 0
    print(f"{file.name} is out of date; run with --write")
    return 1
