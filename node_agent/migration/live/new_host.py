"""The new host: takes state and buffered input, says when all is there, and takes over."""

from collections.abc import Sequence
from dataclasses import replace

from node_agent.migration.live.journal import Journal, Role
from node_agent.migration.live.messages import (
    Chunk,
    Copy,
    Effect,
    Expecting,
    Finished,
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
    Store,
)
from node_agent.migration.live.owner import (
    MOVED,
    confirmed_early,
    go_on,
    hail,
    settled,
    standby_kept,
    start_or_fetch,
    try_to_settle,
)
from node_agent.migration.live.site import Site
from node_agent.migration.live.state import Assembler
from node_agent.migration.live.values import Item, Order, Savepoint


def on_expect(site: Site, order: Order) -> list[Effect]:
    journal, asked = site.journal, order.migration
    if asked <= journal.last:
        return [Sent(site.coordinator, Finished(asked, journal.outcome))]
    if journal.order is None or journal.order.migration != asked:
        if journal.role is Role.OWNER or order.target != site.name:
            return [Sent(site.coordinator, Refused(asked, "busy"))]
        if order.card.size > site.limits.most_state or order.card.chunk <= 0:
            return [Sent(site.coordinator, Refused(asked, "too_large"))]
        site.journal = Journal(
            Role.STANDBY,
            order=order,
            card=order.card,
            streams=order.streams,
            sinks=order.sinks,
            last=journal.last,
            outcome=journal.outcome,
        )
        site.stop_work()
        site.state = None
        expect(site, order)
        return [Keep(site.journal), Sent(site.coordinator, Expecting(asked))]
    return [Sent(site.coordinator, Expecting(asked))]


def expect(site: Site, order: Order) -> None:
    site.buffers = site.new_buffers(order.streams, site.journal.safe)
    site.first_direct = {}
    if site.state is None:
        site.assembler = Assembler(order.migration, order.card, order.source, site.limits.window)


def from_source(site: Site, sender: str, order: Order, message: Message) -> list[Effect]:
    """The new host's side, before the hand-over and after it."""
    match message:
        case Offer(_, savepoint) if not site.is_owner:
            return on_offer(site, order, savepoint)
        case Chunk() if site.assembler is not None:
            return on_chunk(site, order, site.assembler, sender, message)
        case Copy(_, stream, items) if not site.is_owner and stream in site.buffers:
            return take_items(site, stream, items)
        case Standpoint(_, savepoint) if not site.is_owner:
            return keep_savepoint(site, sender, order, savepoint)
        case Start(_, savepoint, outputs) if not site.is_owner:
            return on_start(site, order, savepoint, outputs)
        case Start():
            return try_to_settle(site)
        case Release() if not site.is_owner:
            site.forget(order.migration, "released")
            return [Keep(site.journal), Sent(sender, Released(order.migration))]
        case Kept(_, savepoint) if site.is_owner:
            return standby_kept(site, savepoint)
        case Released() if site.is_owner and site.releasing:
            return settled(site, order, MOVED)
    return []


def on_offer(site: Site, order: Order, savepoint: Savepoint) -> list[Effect]:
    effects: list[Effect] = []
    if not site.fits(savepoint):
        return refuse(site, "bad_savepoint")
    if site.journal.safe is None or savepoint.age > site.journal.safe.age:
        site.journal = replace(site.journal, safe=savepoint)
        effects.append(Keep(site.journal))
    assert site.journal.safe is not None
    for stream, buffer in site.buffers.items():
        buffer.trim(site.journal.safe.position(stream))
    site.said -= {"state", "ready", "refused"}  # the old host may have started again
    effects.append(Sent(order.source, Kept(order.migration, site.journal.safe)))
    if site.assembler is not None:
        effects += site.assembler.ask(order.source)
    return [*effects, *progress(site)]


def on_chunk(site: Site, order: Order, assembler: Assembler, sender: str, chunk: Chunk) -> list[Effect]:
    effects = assembler.take(sender, chunk)
    if assembler.wrong and site.is_owner and sender != site.coordinator:
        site.assembler = Assembler(order.migration, order.card, site.coordinator, site.limits.window)
        return site.assembler.ask(site.coordinator)
    return [*effects, *progress(site)]


def take_items(site: Site, stream: str, items: Sequence[Item]) -> list[Effect]:
    buffer = site.buffers[stream]
    buffer.add(items)
    return go_on(site) if site.is_owner else progress(site)


def progress(site: Site) -> list[Effect]:
    """Says what is complete; an owner that waited for its state begins."""
    order, assembler, effects = site.journal.order, site.assembler, list[Effect]()
    if order is None:
        return []
    if assembler is not None and assembler.wrong:
        return refuse(site, "wrong_digest")
    if assembler is not None and assembler.data is not None:
        site.state, site.assembler = assembler.data, None
        site.journal = replace(site.journal, stored=True)
        effects += [Store(site.state), Keep(site.journal)]
        if site.is_owner:
            return [*effects, *start_or_fetch(site)]
    if site.is_owner or order.target != site.name:
        return effects
    if site.state is not None and "state" not in site.said:
        site.said.add("state")
        effects += [Sent(order.source, StateKept(order.migration)), Note("state_kept", order.migration)]
    full = any(buffer.overflowed for buffer in site.buffers.values())
    if full and not site.said & {"promised", "refused"}:
        # It stays a standby until it is released: the old host may be dead.
        site.said.add("refused")
        effects.append(Sent(order.source, Refused(order.migration, "buffer_full")))
    if is_ready(site, order) and "refused" not in site.said and "ready" not in site.said:
        site.said |= {"ready", "promised"}
        effects.append(Sent(order.source, Ready(order.migration)))
    return effects


def is_ready(site: Site, order: Order) -> bool:
    if site.state is None:
        return False
    return all(
        (first := site.first_direct.get(stream)) is not None and site.buffers[stream].last >= first - 1
        for stream in order.streams
    )


def on_start(site: Site, order: Order, savepoint: Savepoint, outputs: tuple[bytes, ...]) -> list[Effect]:
    if site.journal.safe is None:
        site.journal = replace(site.journal, safe=savepoint)
    site.journal = replace(site.journal, role=Role.OWNER, term=order.term)
    effects: list[Effect] = [Keep(site.journal), Note("took_over", order.migration)]
    ready, held = is_ready(site, order) and site.fits(savepoint), site.buffers
    site.begin_work(site.journal)
    assert site.work is not None
    site.kept = site.journal.safe
    if not ready:  # it was killed since it said that it is ready: from the savepoint that it kept
        return [*effects, *start_or_fetch(site, order.source), *hail(site), *confirmed_early(site)]
    assert site.state is not None
    site.buffers = held
    site.work.start(site.build(site.state, savepoint), savepoint, outputs)
    return [*effects, *go_on(site), *confirmed_early(site)]


def refuse(site: Site, why: str) -> list[Effect]:
    order = site.journal.order
    assert order is not None
    site.forget(order.migration, why)
    return [Keep(site.journal), Sent(order.source, Refused(order.migration, why))]


def keep_savepoint(site: Site, owner: str, order: Order, savepoint: Savepoint) -> list[Effect]:
    safe = site.journal.safe
    if not site.fits(savepoint) or (safe is not None and savepoint.age <= safe.age):
        return []
    site.journal = replace(site.journal, safe=savepoint)
    for stream, buffer in site.buffers.items():
        buffer.trim(savepoint.position(stream))
    return [Keep(site.journal), Sent(owner, Kept(order.migration, savepoint))]
