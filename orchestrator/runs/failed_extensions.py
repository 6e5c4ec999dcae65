"""What extensions of others did wrong in a run, by what its nodes recorded: doubts for the verdict."""

from collections.abc import Iterable

from msgspec import Struct

from orchestrator.foreign_text import one_line

_LONGEST = 300


class FailedExtension(Struct, frozen=True):
    """``count`` failures of an extension on ``node``; ``error`` is the last, at ``place`` in its file."""

    node: str
    what: str
    name: str
    place: str
    error: str
    count: int
    left_out: bool


def doubts_of(failed: Iterable[FailedExtension]) -> list[str]:
    """One for each extension: what a run measured is not what its file asked for."""
    by_extension: dict[tuple[str, str], list[FailedExtension]] = {}
    for each in failed:
        by_extension.setdefault((each.what, each.name), []).append(each)
    return [_doubt(each) for each in by_extension.values()]


def _doubt(failed: list[FailedExtension]) -> str:
    worst = max(failed, key=lambda each: each.count)
    count = sum(each.count for each in failed)
    nodes = ", ".join(each.node for each in failed[:5])
    more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
    left_out = " and was left out" if any(each.left_out for each in failed) else ""
    times = "once" if count == 1 else f"{count:,} times"
    told = f"{worst.what} {worst.name} failed {times}{left_out} (nodes {nodes}{more})"
    at = f"{worst.place}: " if worst.place else ""
    return one_line(f"{told}: {at}{worst.error}", _LONGEST)
