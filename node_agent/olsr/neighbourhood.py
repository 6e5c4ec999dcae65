"""Tracks links, neighbours and their neighbours: everything that HELLOs say (RFC 3626, sections 4 and 7).

The counters ``link_changes`` and ``two_hop_changes`` grow whenever something that depends on links, or on
neighbours' lists, must be computed again.
"""

from typing import Literal

from node_agent.manet.membership import Manet
from node_agent.model.link_layer import Readings
from node_agent.olsr import hello, quality, validity, wire
from node_agent.olsr.eviction import ESTABLISHED, least_credible
from node_agent.olsr.fast import Fast
from node_agent.olsr.hello import HelloContent
from node_agent.olsr.listing import NEVER, Listing
from node_agent.olsr.quality import BROKEN, Meter, Metric
from node_agent.olsr.sensitivity import Sensitivity

MAX_LINKS = 512
PROVABLE = 4
"""Validities of the last HELLO after which acknowledgements alone keep a link no more."""

Status = Literal["SYMMETRIC", "ASYMMETRIC", "LOST"]


class Link:
    __slots__ = (
        "asymmetric_until",
        "cost",
        "greeted_ns",
        "hardware",
        "hellos",
        "interface",
        "last_hello",
        "loss_ns",
        "meter",
        "neighbour",
        "neighbour_quality",
        "previous_status",
        "provable_until",
        "quality",
        "remote",
        "status",
        "symmetric_until",
        "until",
        "vtime_ns",
    )

    def __init__(self, interface: int, remote: int, neighbour: "Neighbour", meter: Meter) -> None:
        self.interface = interface
        self.remote = remote
        self.neighbour = neighbour
        self.meter = meter
        self.quality = meter.quality  # as announced to others
        self.neighbour_quality = 0
        self.cost = BROKEN
        self.status: Status = "LOST"
        self.previous_status: Status | None = None
        self.symmetric_until = self.asymmetric_until = self.until = 0
        self.provable_until = 0  # how long acknowledgements keep it without a HELLO
        self.vtime_ns = 0
        self.loss_ns = NEVER
        self.last_hello: HelloContent | None = None  # the latest HELLO
        self.hellos = 0
        self.hardware = b""  # as the neighbour announces it
        self.greeted_ns = 0  # when it did so last


class Neighbour:
    __slots__ = ("address", "best", "is_mpr", "links", "selector_until", "two_hop", "willingness")

    def __init__(self, address: int, own: frozenset[int]) -> None:
        self.address = address  # main address
        self.links: list[Link] = []
        self.best: Link | None = None  # the cheapest symmetric link; None: not a symmetric neighbour
        self.willingness = 3
        self.is_mpr = False
        self.selector_until = 0
        self.two_hop = Listing(own)


class Neighbourhood:
    def __init__(
        self, own: tuple[int, ...], metric: Metric, manet: Manet, hold_ns: int, longest_ns: int
    ) -> None:
        """``longest_ns``: the limit of a HELLO's validity."""
        self.neighbours: dict[int, Neighbour] = {}
        self.links: list[dict[int, Link]] = [{} for _ in own]  # by interface, then remote address
        self.link_changes = 0
        self.changed_links: list[tuple[Neighbour, int]] = []
        """Neighbours whose link became usable or unusable, with its
        cost before. The owner clears the list."""
        self.two_hop_changes = 0
        self.next_expiry = NEVER
        self.evicted = 0
        self._own = own
        self._all_own = frozenset(own)
        self._metric = metric
        self._read = hello.reader(metric, manet)
        self._hold_ns = hold_ns
        self._longest_ns = longest_ns

    def each_link(self) -> list[Link]:
        return [link for by_remote in self.links for link in by_remote.values()]

    def symmetric(self) -> list[tuple[Neighbour, Link]]:
        """Returns symmetric neighbours, each with its best link."""
        return [(each, each.best) for each in self.neighbours.values() if each.best is not None]

    def receive_hello(
        self, interface: int, sender: int, packet_seqno: int, message: wire.Message, now: int
    ) -> None:
        """Processes a HELLO. Raises Malformed."""
        content = self._read(message.kind, message.body)
        link = self.links[interface].get(sender)
        if link is None:
            if len(self.links[interface]) >= MAX_LINKS:
                self._make_room(self.links[interface], now)
            link = Link(
                interface, sender, self._neighbour(message.originator), self._metric.meter(packet_seqno)
            )
            link.neighbour.links.append(link)
            self.links[interface][sender] = link
        elif link.neighbour.address != message.originator:
            self._detach(link)
            link.neighbour = self._neighbour(message.originator)
            link.neighbour.links.append(link)
        link.last_hello = content
        self._sense(link, content, message.vtime, now)
        self._learn(link.neighbour, content, now, now + link.vtime_ns)

    def note_packet(self, link: Link, seqno: int, now: int) -> None:
        """Counts a packet that came over ``link``. HELLOs that were overdue before it count as lost."""
        if link.loss_ns <= now:
            self._count_losses(link, now)
        link.meter.packet(seqno)

    def tick(self, now: int) -> None:
        """Measures qualities, and announces them if one has changed much. Call it once a second."""
        news = False
        for link in self.each_link():
            if link.loss_ns <= now:
                self._count_losses(link, now)
            link.meter.tick(link.last_hello.hello_ns // 1_000_000 if link.last_hello is not None else 0)
            news = news or (link.meter.quality != link.quality and link.meter.differs(link.quality))
        if news:
            self._announce_qualities()

    def greet(self, link: Link, hardware: bytes, now: int) -> bool:
        """Notes that a neighbour rates links by our own metric.

        Returns False if its hardware address is another neighbour's: what the radio knows of that one says
        nothing about this link.
        """
        if isinstance(link.meter, Fast):
            link.meter.spoken = True
        link.greeted_ns = now
        if hardware == link.hardware:
            return True
        others = self.links[link.interface].values()
        is_own = not any(other.hardware == hardware for other in others if other is not link)
        link.hardware = hardware if is_own else b""
        return is_own or not any(hardware)

    def miss_greeting(self, link: Link, now: int) -> None:
        """Rates a link as olsrd does once two HELLOs in a row came without a greeting: another daemon has
        taken the neighbour's place. A single greeting may get lost, because it may be in another packet.
        """
        last = link.last_hello
        if (
            last is not None
            and now - link.greeted_ns > last.hello_ns * 3 // 2
            and isinstance(link.meter, Fast)
        ):
            link.meter.unspoken()
            link.hardware = b""

    def observe(self, readings: Readings, sensitivity: Sensitivity, now: int) -> None:
        """Measures links by what the radio knows of them."""
        news = False
        for link in self.each_link():
            meter, last = link.meter, link.last_hello
            if not isinstance(meter, Fast) or last is None:
                continue
            reading = readings.get(link.hardware)
            if meter.observe(reading, sensitivity, last.hello_ns / 1e9, now / 1e9):
                self._prove(link, now)
            news = news or meter.differs(link.quality)
        if news:
            self._announce_qualities()

    def _prove(self, link: Link, now: int) -> None:
        """Keeps a link whose neighbour acknowledges frames, though a busy channel may destroy its HELLOs; not
        for ever: one HELLO must not be enough for that.
        """
        until = min(now + link.vtime_ns, link.provable_until)
        if now < link.symmetric_until < until:
            link.symmetric_until = link.asymmetric_until = until
            link.until = max(link.until, link.symmetric_until + self._hold_ns)

    def expire(self, now: int) -> None:
        self.next_expiry = NEVER
        for by_remote in self.links:
            for link in list(by_remote.values()):
                if link.until <= now:
                    del by_remote[link.remote]
                    self._detach(link)
                else:
                    self._note_status(link, now)
                    self._expect(link.until, now)
        for neighbour in self.neighbours.values():
            self._expect(neighbour.selector_until, now)
            if neighbour.two_hop.expire(now):
                self.two_hop_changes += 1
            self._expect(neighbour.two_hop.next_expiry, now)

    def lose_all(self, now: int) -> None:
        for link in self.each_link():
            link.symmetric_until = link.asymmetric_until = now
            self._note_status(link, now)

    def _make_room(self, links: dict[int, Link], now: int) -> None:
        """Evicts the least credible links. Links with a long exchange of
        HELLOs stay, however many strangers send some."""

        def credibility(link: Link) -> tuple[bool, bool, int, int]:
            established = link.hellos >= ESTABLISHED
            return link.status == "SYMMETRIC", established, min(link.hellos, 64), link.until

        for link in least_credible(links.values(), credibility):
            link.symmetric_until = link.asymmetric_until = now
            self._note_status(link, now)
            del links[link.remote]
            self._detach(link)
            self.evicted += 1

    def _count_losses(self, link: Link, now: int) -> None:
        assert link.last_hello is not None, "a HELLO says when to expect the next"
        while link.loss_ns <= now:
            link.meter.lost()
            link.loss_ns += link.last_hello.hello_ns

    def _neighbour(self, address: int) -> Neighbour:
        if address not in self.neighbours:
            self.neighbours[address] = Neighbour(address, self._all_own)
        return self.neighbours[address]

    def _detach(self, link: Link) -> None:
        neighbour = link.neighbour
        neighbour.links.remove(link)
        self._choose_best(neighbour)
        if not neighbour.links:
            del self.neighbours[neighbour.address]
            self.link_changes += 1
            self.two_hop_changes += 1

    def _sense(self, link: Link, content: HelloContent, vtime: int, now: int) -> None:
        standing = content.standings.get(self._own[link.interface], hello.NOT_MENTIONED)
        link.vtime_ns = min(validity.NANOSECONDS[vtime], self._longest_ns)
        link.asymmetric_until = now + link.vtime_ns
        link.provable_until = now + min(PROVABLE * link.vtime_ns, self._longest_ns)
        if standing.link == hello.LOST:
            link.symmetric_until = now
        elif standing.link is not None:
            link.symmetric_until = now + link.vtime_ns
        link.until = max(link.until, link.asymmetric_until)
        if link.symmetric_until > now:
            link.until = max(link.until, link.symmetric_until + self._hold_ns)
        link.loss_ns = now + content.hello_ns * 3 // 2
        link.meter.hello()
        link.hellos += 1
        news = link.meter.quality != link.quality and link.meter.differs(link.quality)
        if standing.link is not None and standing.quality != link.neighbour_quality:
            news = news or quality.is_relevant(link.neighbour_quality, standing.quality)
            link.neighbour_quality = standing.quality
            self._price(link)
        if news:
            self._announce_qualities()
        self._note_status(link, now)

    def _learn(self, neighbour: Neighbour, content: HelloContent, now: int, until: int) -> None:
        mentioned = [content.standings[own].relays for own in self._own if own in content.standings]
        if mentioned:
            neighbour.selector_until = until if True in mentioned else now
        if neighbour.willingness != content.willingness:
            neighbour.willingness = content.willingness
            self.two_hop_changes += 1
        if neighbour.two_hop.update(content, until):
            self.two_hop_changes += 1
            self.evicted += neighbour.two_hop.refused
        self._expect(until, now)

    def _note_status(self, link: Link, now: int) -> None:
        status: Status = "LOST"
        if link.symmetric_until > now:
            status = "SYMMETRIC"
        elif link.asymmetric_until > now:
            status = "ASYMMETRIC"
        if status != link.status:
            link.previous_status, link.status = link.status, status
            self._price(link)
            self._choose_best(link.neighbour)
        for until in (link.symmetric_until, link.asymmetric_until):
            if now < until < self.next_expiry:
                self.next_expiry = until

    def _announce_qualities(self) -> None:
        for link in self.each_link():
            if link.quality != link.meter.quality:
                link.quality = link.meter.quality
                self._price(link)

    def _price(self, link: Link) -> None:
        cost = BROKEN
        if link.status == "SYMMETRIC":
            cost = quality.cost(link.quality, link.neighbour_quality)
        if cost != link.cost:
            if (cost < BROKEN) != (link.cost < BROKEN):
                self.changed_links.append((link.neighbour, link.cost))
            link.cost = cost
            self._choose_best(link.neighbour)

    def _choose_best(self, neighbour: Neighbour) -> None:
        usable = [link for link in neighbour.links if link.status == "SYMMETRIC"]
        if len(usable) > 1:
            usable.sort(key=lambda link: (link.cost, link.interface, link.remote))
        neighbour.best = usable[0] if usable else None
        self.link_changes += 1

    def _expect(self, when: int, now: int) -> None:
        if now < when < self.next_expiry:
            self.next_expiry = when
