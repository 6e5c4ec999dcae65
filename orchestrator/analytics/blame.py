"""Makes errors in contributed code name the contribution, and the file and line of its author."""

from collections.abc import Iterator
from contextlib import contextmanager

from node_agent.extensions.errors import explain
from orchestrator.analytics.failures import AnalysisFailed
from orchestrator.errors import RoveError


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Turns any error in the block into one sentence: ``the table 'work': mine.py, line 7: KeyError``."""
    try:
        yield
    except RoveError:
        raise
    except Exception as error:
        raise AnalysisFailed(f"{what}: {explain(error).partition(chr(10))[0]}") from error
