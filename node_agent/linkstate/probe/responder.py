"""Answers probes, without I/O: counts what has arrived from each start of each prober."""

from node_agent.linkstate.probe.estimator import Arrivals
from node_agent.linkstate.probe.messages import Probe, Reply

_MOST_SESSIONS = 16


class _Sender:
    """One start of a prober. ``responder`` names this count of its probes."""

    def __init__(self, responder: int) -> None:
        self.responder = responder
        self.arrivals = Arrivals()
        self.answered = 0
        self.latest = 0
        self.latest_ns = 0


class Responder:
    """``session`` distinguishes this start from earlier ones."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._made = 0
        self._senders: dict[str, dict[int, _Sender]] = {}

    def reply(self, probe: Probe, peer: str, now_ns: int) -> Reply | None:
        """Returns the reply; None for a probe that arrived before."""
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
        """Returns the counts of a session. Keeps several sessions of a peer: a restarted responder cannot
        tell an old session, which somebody repeats, from the present one. An ended prober ignores the
        answers.
        """
        sessions = self._senders.setdefault(peer, {})
        sender = sessions.pop(session, None)
        if sender is None:
            sender = _Sender((self._session + self._made) % 2**32)
            self._made += 1
        sessions[session] = sender
        if len(sessions) > _MOST_SESSIONS:
            del sessions[next(iter(sessions))]  # the session that was silent longest
        return sender
