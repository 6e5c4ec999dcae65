"""What routers of neighbouring replicas tell each other: small control messages along the links of G_QDP.

``number`` grows with every message of a sender, so that what overtakes on the way is told from what is late.
A restarted sender begins anew: ``boot`` counts its starts, as the receiver knows them.
"""

from msgspec import Struct


class CostReport(Struct, frozen=True, tag="cost_report", array_like=True):
    """Downstream, to a replica of an operator with several inputs: what it costs ``sender`` to reach it.

    ``using`` is the replica of that operator that the sender sends to at present, so that one that holds part
    of a window knows where the rest goes. None: no path, no choice.
    """

    sender: str
    boot: int
    number: int
    cost: float | None
    using: str | None


class CostUpdate(Struct, frozen=True, tag="cost_update", array_like=True):
    """Upstream: what the way from ``sender`` to the sinks costs, and how many tuples wait there.

    ``aggregate``, for an operator with several inputs: the cost of reaching it summed over its inputs; None:
    one of them cannot, or has not said. ``using``: the replica that most of its upstream replicas send to.
    """

    sender: str
    boot: int
    number: int
    to_sinks: float | None
    queue: int
    aggregate: float | None = None
    using: str | None = None


Message = CostReport | CostUpdate


class Notice(Struct, frozen=True, array_like=True):
    """A message on its way to replica ``to``."""

    to: str
    message: Message
