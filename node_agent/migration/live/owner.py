"""The owner of an operator: it works on, lets upstreams forget what nobody needs, and becomes alone after a
migration.
"""

from dataclasses import replace

from node_agent.migration.live.execution import Execution
from node_agent.migration.live.messages import (
    Effect,
    Finished,
    Hail,
    Keep,
    Moved,
    Note,
    Release,
    Sent,
    Standpoint,
    StopTo,
    Trim,
    Welcome,
)
from node_agent.migration.live.site import Site
from node_agent.migration.live.state import Assembler
from node_agent.migration.live.values import Order, Savepoint

MOVED = "moved"
"""How a migration ends that goes well."""


def start_or_fetch(site: Site, provider: str = "") -> list[Effect]:
    """Starts from the safe savepoint, or asks for the immutable state that this takes."""
    journal, work = site.journal, site.work
    assert journal.safe is not None and work is not None
    if site.state is not None:
        if work.operator is None:
            work.start(site.build(site.state, journal.safe), journal.safe)
        return [*go_on(site), *try_to_settle(site)]
    order = journal.order
    assert journal.card is not None
    if site.assembler is None or site.assembler.data is not None:
        number = order.migration if order is not None else journal.last
        site.assembler = Assembler(number, journal.card, "", site.limits.window)
    source = order.source if order is not None else ""
    return site.assembler.ask(provider or source or site.coordinator)


def go_on(site: Site) -> list[Effect]:
    """Works on what is buffered, and lets the upstreams forget what nobody needs any more."""
    work, journal = site.work, site.journal
    if work is None:
        return []
    effects = [*work.run(site.buffers), *ask_again(site, work)]
    safe = work.new_safe()
    if safe is None:
        return effects
    site.journal = replace(journal, safe=safe)
    effects.append(Keep(site.journal))
    if site.kept is None:
        return [*effects, *trim(site, safe)]
    order = journal.order
    if order is not None:
        other = order.target if order.source == site.name else order.source
        effects.append(Sent(other, Standpoint(order.migration, safe)))
    return effects


def ask_again(site: Site, work: Execution) -> list[Effect]:
    """Asks for items that there was no room for. If a window is longer than what fits here, what it took
    is forgotten here: the upstream has it."""
    effects: list[Effect] = []
    for stream, buffer in site.buffers.items():
        pushed = work.pushed.get(stream, 0)
        if buffer.overflowed and work.operator is not None and pushed >= buffer.last:
            buffer.begin(pushed)
            effects.append(Sent(stream, Hail(site.journal.term, pushed + 1)))
    return effects


def standby_kept(site: Site, savepoint: Savepoint) -> list[Effect]:
    if site.kept is None or site.work is None or not site.fits(savepoint):
        return []
    if savepoint.age > site.kept.age and savepoint.age <= site.work.safe.age:
        site.kept = savepoint
        return trim(site, savepoint)
    return []


def trim(site: Site, upto: Savepoint) -> list[Effect]:
    effects: list[Effect] = []
    for stream, buffer in site.buffers.items():
        position = upto.position(stream)
        if position > buffer.floor:
            buffer.trim(position)
            effects.append(Sent(stream, Trim(position)))
    return effects


def hail(site: Site) -> list[Effect]:
    journal = site.journal
    streams = [Sent(name, Hail(journal.term, site.buffers[name].last + 1)) for name in journal.streams]
    return [*streams, *(Sent(name, Hail(journal.term)) for name in journal.sinks)]


def confirmed_by(site: Site, sender: str, message: Moved | Welcome) -> list[Effect]:
    term, work = site.journal.term, site.work
    if work is None or message.term != term:
        if message.term > term:
            site.early[sender] = message
        return []
    site.confirmed.add(sender)
    effects: list[Effect] = []
    match message:
        case Moved(_, False):
            effects.append(Sent(sender, Hail(term, site.buffers[sender].last + 1)))
        case Welcome(_, following):
            effects += [*work.welcomed(sender, following), *go_on(site)]
    return [*effects, *try_to_settle(site)]


def confirmed_early(site: Site) -> list[Effect]:
    early, site.early = site.early, {}
    return [effect for sender, message in early.items() for effect in confirmed_by(site, sender, message)]


def release(site: Site, why: str) -> list[Effect]:
    """Tells the standby that it is not needed."""
    order = site.journal.order
    assert order is not None
    site.releasing, site.copying = why, None
    effects: list[Effect] = []
    if order.source == site.name:
        assert site.work is not None
        site.work.paused = False
        effects += [Sent(stream, StopTo(order.target)) for stream in order.streams]
        effects += go_on(site)
    other = order.target if order.source == site.name else order.source
    return [*effects, Sent(other, Release(order.migration))]


def try_to_settle(site: Site) -> list[Effect]:
    """Once all neighbours know the new owner, the other host is not needed any more."""
    journal, order = site.journal, site.journal.order
    if order is None or order.source == site.name or not site.is_owner:
        return []
    if len(site.confirmed) < len(journal.streams) + len(journal.sinks):
        return []
    if site.work is None or site.work.operator is None:
        return []
    if not order.source:  # the other host is gone
        return settled(site, order, MOVED if order.target == site.name else "target_gone")
    return release(site, MOVED)


def settled(site: Site, order: Order, outcome: str) -> list[Effect]:
    """The standby has gone: the owner is alone."""
    site.journal = replace(site.journal, order=None, last=order.migration, outcome=outcome)
    site.kept, site.copying, site.releasing = None, None, ""
    effects: list[Effect] = [Keep(site.journal), Note("finished", order.migration, outcome)]
    if site.work is not None:
        effects += trim(site, site.work.safe)
    return [*effects, Sent(site.coordinator, Finished(order.migration, outcome)), *go_on(site)]


def leave(site: Site, why: str) -> list[Effect]:
    order = site.journal.order
    migration = order.migration if order is not None else site.journal.last
    site.forget(migration, why)
    return [Keep(site.journal), Note(why, migration)]
