"""Answers probes, without I/O: what has come from each prober, counted from one start of it to the next."""

from node_agent.linkstate.probe.estimator import Arrivals
from node_agent.linkstate.probe.messages import Probe, Reply

_MOST_SESSIONS = 16


class _Sender:
    """A prober, from one start of it to the next. ``responder`` names this count of its probes."""

    def __init__(self, responder: int) -> None:
        self.responder = responder
        self.arrivals = Arrivals()
        self.answered = 0
        self.latest = 0
        self.latest_ns = 0


class Responder:
    """``session`` tells this one from its former selves."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._made = 0
        self._senders: dict[str, dict[int, _Sender]] = {}

    def reply(self, probe: Probe, peer: str, now_ns: int) -> Reply | None:
        """None for a probe that came before."""
        sender = self._sender(peer, probe.session)
        paired = probe.in_pair == 2 and sender.latest == probe.number - 1
        gap_ns = max(0, now_ns - sender.latest_ns) if paired else None
        if not sender.arrivals.add(probe.number):
            return None
        sender.latest, sender.latest_ns = probe.number, now_ns
        sender.answered += 1
        return Reply(
            probe.session,
            sender.responder,
            probe.number,
            probe.sent_ns,
            probe.in_pair,
            sender.answered,
            sender.arrivals.newest,
            sender.arrivals.counted,
            sender.arrivals.came,
            gap_ns,
        )

    def _sender(self, peer: str, session: int) -> _Sender:
        """Keeps several sessions of a peer side by side: a responder that was restarted itself cannot tell an
        old one, which somebody sends again, from the one that is going on. Who is gone ignores the answers.
        """
        sessions = self._senders.setdefault(peer, {})
        sender = sessions.pop(session, None)
        if sender is None:
            sender = _Sender((self._session + self._made) % 2**32)
            self._made += 1
        sessions[session] = sender
        if len(sessions) > _MOST_SESSIONS:
            del sessions[next(iter(sessions))]  # the one that was silent longest
        return sender
