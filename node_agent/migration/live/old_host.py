"""The old host: copies while it works on, hands over, and keeps what it needs to take back until it is
released.
"""

from dataclasses import replace

from node_agent.migration.live.copying import Copying
from node_agent.migration.live.journal import Role
from node_agent.migration.live.messages import (
    Effect,
    Fetch,
    Finished,
    Here,
    Keep,
    Kept,
    Message,
    Note,
    Offer,
    Ready,
    Refused,
    Release,
    Released,
    Sent,
    Standpoint,
    Start,
    StateKept,
    Succeed,
)
from node_agent.migration.live.new_host import keep_savepoint
from node_agent.migration.live.owner import MOVED, release, settled, standby_kept
from node_agent.migration.live.site import Site
from node_agent.migration.live.state import serve
from node_agent.migration.live.values import MOST_AT_ONCE, Method, Order, Savepoint


def on_migrate(site: Site, order: Order, now: float) -> list[Effect]:
    journal, asked = site.journal, order.migration
    if asked <= journal.last:
        return [Sent(site.coordinator, Finished(asked, journal.outcome))]
    if journal.order is not None and journal.order.migration == asked:
        return []
    settled = len(site.confirmed) == len(journal.streams) + len(journal.sinks)
    if not site.is_owner or order.source != site.name or journal.order is not None or not settled:
        return [Sent(site.coordinator, Refused(asked, "busy"))]
    site.journal = replace(journal, order=order)
    return [Keep(site.journal), Note("began", asked, order.method), *tick(site, now)]


def tick(site: Site, now: float) -> list[Effect]:
    """Does what is due: begins to copy, notes a missed deadline, gives up."""
    order = site.journal.order
    if order is None or order.source != site.name or site.journal.role is not Role.OWNER:
        return []
    effects: list[Effect] = []
    if now >= order.deadline and "late" not in site.said:
        site.said.add("late")
        effects.append(Note("deadline_missed", order.migration))
    if now >= order.give_up_at and not site.releasing:
        return [*effects, *release(site, "given_up")]
    if site.copying is None and not site.releasing and now >= order.begin_at:
        effects += offer(site, order)
    if site.copying is not None:
        assert site.work is not None
        effects += site.copying.go_on(site.buffers, site.work.safe, now)
    return [*effects, *try_to_hand_over(site, order, now)]


def offer(site: Site, order: Order) -> list[Effect]:
    """Begins to copy, or begins again if one of both hosts has started again."""
    assert site.work is not None
    site.kept = site.kept or site.journal.safe
    site.copying = Copying(order, site.limits)
    if order.method is Method.STOP_AND_COPY:
        site.work.paused = True
    return [Sent(order.target, Offer(order.migration, site.work.safe))]


def try_to_hand_over(site: Site, order: Order, now: float) -> list[Effect]:
    """Hands over at a boundary between selections. If none comes in time, the new host makes the open
    selection again: its outputs have the same numbers."""
    work, copying = site.work, site.copying
    if copying is None or not copying.ready or site.releasing or work is None or work.operator is None:
        return []
    if copying.waits_until is None:
        copying.waits_until = min(now + site.limits.patience, max(now, order.deadline))
    if not work.operator.at_boundary and now < copying.waits_until:
        return []
    boundary, safe = work.operator.boundary(), work.safe
    outputs = work.pending_up_to(boundary.outputs)
    if sum(map(len, outputs)) > site.limits.start_bytes or len(outputs) > MOST_AT_ONCE:
        boundary, outputs = safe, ()
    site.journal = replace(site.journal, role=Role.STANDBY, term=order.term, safe=safe)
    late = Note("handed_over", order.migration, "late" if "late" in site.said else "in_time")
    site.stop_work()
    return [Keep(site.journal), *hand_over_messages(site, order, boundary, outputs), late]


def hand_over_messages(
    site: Site, order: Order, savepoint: Savepoint, outputs: tuple[bytes, ...]
) -> list[Effect]:
    start = Sent(order.target, Start(order.migration, savepoint, outputs))
    return [start, *(Sent(each, Succeed(order.term, order.target)) for each in order.neighbours)]


def from_target(site: Site, order: Order, message: Message) -> list[Effect]:
    """The old host's side, before the hand-over and after it."""
    match message:
        case Fetch() if site.state is not None:
            return serve(order.target, site.state, order.card, message, site.limits.window)
        case Here() if site.is_owner and site.releasing:
            return [Sent(order.target, Release(order.migration))]
        case Here() if site.is_owner:
            site.copying = None  # begins again
        case Here():
            assert site.journal.safe is not None
            return hand_over_messages(site, order, site.journal.safe, ())
        case Standpoint(_, savepoint) if not site.is_owner:
            return keep_savepoint(site, order.target, order, savepoint)
        case Release() if not site.is_owner:
            site.forget(order.migration, MOVED)
            finished = Sent(site.coordinator, Finished(order.migration, MOVED))
            return [Keep(site.journal), Sent(order.target, Released(order.migration)), finished]
        case Refused(_, reason) if site.is_owner and not site.releasing:
            return release(site, reason)
        case Released() if site.is_owner and site.releasing:
            return settled(site, order, site.releasing)
        case Released() if site.is_owner:
            return release(site, "target_left")
        case StateKept() if site.copying is not None:
            site.copying.state_kept = True
        case Ready() if site.copying is not None:
            site.copying.ready = True
        case Kept(_, savepoint):
            return standby_kept(site, savepoint)
    return []
