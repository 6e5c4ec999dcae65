"""An error in what was contributed names the contribution, and the file and line of its author."""

from collections.abc import Iterator
from contextlib import contextmanager

from node_agent.extensions.errors import explain
from orchestrator.errors import RoveError


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Any error in the block becomes a RoveError: ``the table 'work': mine.py, line 7: KeyError: 'x'``."""
    try:
        yield
    except RoveError:
        raise
    except Exception as error:
        raise RoveError(f"{what}: {explain(error).partition(chr(10))[0]}") from error
