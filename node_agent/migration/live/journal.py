"""What a host must not forget when it is killed."""

from dataclasses import dataclass
from enum import StrEnum

from node_agent.migration.live.values import Card, Names, Order, Savepoint, Word
from node_agent.model.checked import Whole


class Role(StrEnum):
    """``standby``: keeps what it needs to take over, before the hand-over the target, after it the old
    host."""

    IDLE = "idle"
    STANDBY = "standby"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Journal:
    """``safe``: the host can start the operator from there; None: not even that has come. ``stored``: whether
    the immutable state is written down too. ``order``: the migration under way. ``last``, ``outcome``,
    ``partner``: the last one that ended here, and its other host. ``streams``, ``sinks``: the operator's
    neighbours."""

    role: Role = Role.IDLE
    term: Whole = 0
    safe: Savepoint | None = None
    order: Order | None = None
    stored: bool = False
    card: Card | None = None
    streams: Names = ()
    sinks: Names = ()
    last: Whole = 0
    outcome: Word = ""
    partner: Word = ""


NOTHING = Journal()
"""Of a host that takes no part in anything yet."""
