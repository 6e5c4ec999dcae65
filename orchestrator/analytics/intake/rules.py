"""Says what the intake keeps of a run, and computes the stamp by which it is recognised.

Imports neither Arrow nor Spark: whether something must be read is known before they are.
"""

from node_agent.apps.records import record_format
from node_agent.telemetry.records import RecordFormat
from orchestrator.results.truth import TRUTH, columns_of

INTAKE_VERSION = 2
"""Part of the stamp of what was read. Raise it when records are read or judged in another way."""

ENVELOPE = ("run", "node", "boot", "app", "seq", "t_ns", "kind")


def fields_of(format: RecordFormat, *kinds: str) -> tuple[str, ...]:
    """Returns the columns of records of these kinds: the envelope, then what at least one of them has."""
    own = (name for name, having in format.kinds_with.items() if any(kind in having for kind in kinds))
    return (*ENVELOPE, *own)


def stamp() -> str:
    """Returns a text that changes when what is kept of a run would."""
    format = record_format()
    kinds = {kind: fields_of(format, kind) for kind in format.needed}
    rules = (format.bounds, format.needed, format.counted, format.rows, format.rules)
    return f"{INTAKE_VERSION} {sorted(kinds.items())} {rules} {[columns_of(file) for file in TRUTH]}"
