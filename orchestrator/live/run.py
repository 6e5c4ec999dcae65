"""One run that is watched: reads its directory and turns what is new into changes.

    live = LiveRun(directory)
    while not live.ended:
        state.take(live.poll())
        time.sleep(0.2)

Within a poll changes are sorted by time. A run that has ended gives the same changes in the same order,
sorted by time, in whatever pieces it is polled. While a run goes on, a change may be earlier than those of
the poll before: what a node wrote is shown when it arrives, and never held back for slower ones.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line
from orchestrator.lifecycle.teardown import State as Life
from orchestrator.lifecycle.teardown import state_of
from orchestrator.live.core_view import RunView
from orchestrator.live.doubts import offset_of
from orchestrator.live.facts import UNPLANNED, RunFacts, read_facts
from orchestrator.live.follow import LOOK_S, MOST_BYTES, RunFollower
from orchestrator.live.run_clock import RunClock
from orchestrator.planning.application import application
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import VERSION, AppView, Change
from orchestrator.spec.application import APPLICATIONS

GRACE_S = 0.5
"""How long a second stays open for records that come late; what is counted by the second is shown then."""
SILENT_S = 5.0
"""How long nodes on other machines may stay silent after others were heard from."""
LONGEST_ERROR = 200
MOST_TICKS = 120
"""In a gap without any record; beyond it nothing is counted by the second."""


class CannotShow(RoveError):
    """A run's files are not what a run writes, or a view of an application failed."""


class LiveRun:
    """``head`` says what the run is, ``poll`` returns what is new, ``now`` is the latest time of the run."""

    def __init__(self, directory: RunDirectory | Path, fetches: bool = True) -> None:
        """``fetches``: records of nodes on other machines are brought here while the run goes on."""
        self.directory = directory if isinstance(directory, RunDirectory) else RunDirectory(directory)
        self._clock = RunClock()
        self._follower = RunFollower(self.directory, self._clock)
        self._facts: RunFacts | None = None
        self._view = RunView(UNPLANNED, self._clock, {})
        self._heads: list[dict[str, Any]] = []
        self._asked = -LOOK_S
        self._alive = True
        self._fetches = fetches
        self._first_seen: float | None = None
        self._next_tick = GRACE_S
        self.ended = False
        """The run is over, and everything of it was read."""
        self.died = False
        """It is over, and its process did not end it: it was killed."""
        try:
            with self._shown():
                self._ask()
        except BaseException:
            self.close()
            raise

    @property
    def now(self) -> float:
        return self._clock.since_zero(self._clock.now_ns) if self._clock.zero_ns is not None else 0.0

    @property
    def zero_ns(self) -> int | None:
        """Time 0 of all changes, on the run's own clock; None while nothing was recorded."""
        return self._clock.zero_ns

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the last poll has been read."""
        return self._follower.caught_up

    @property
    def head(self) -> dict[str, Any]:
        """What does not change, as the page gets it; little before the run is planned. Raises CannotShow."""
        with self._shown():
            return self._head()

    def _head(self) -> dict[str, Any]:
        facts = self._facts
        if facts is None:
            return {
                "version": VERSION,
                "run": self.directory.id,
                "experiment": self.directory.experiment,
                "nodes": [],
                "apps": [],
            }
        return {
            "version": VERSION,
            "run": facts.run,
            "experiment": facts.experiment,
            "backend": facts.backend,
            "virtual": facts.virtual,
            "seed": facts.seed,
            "factors": facts.factors,
            "nodes": list(facts.nodes),
            "area": list(facts.area) if facts.area is not None else None,
            "started": facts.started,
            "warmup_s": facts.warmup_s,
            "duration_s": facts.duration_s,
            "measure": self._window(facts),
            "apps": self._heads,
            "links": "truth" if facts.traits.knows_links else "routing",
            "limits": facts.verdict_limits,
        }

    def poll(self, most_bytes: int = MOST_BYTES) -> list[Change]:
        """Returns what is new, after reading at most about ``most_bytes``. Raises CannotShow, and OSError."""
        if self.ended:
            return []
        with self._shown():
            return self._poll(most_bytes)

    def _poll(self, most_bytes: int) -> list[Change]:
        self._ask()
        in_step = self._alive and self._facts is not None and self._facts.virtual
        items = self._follower.poll(self._is_begun, most_bytes, in_step)
        changes: list[Change] = []
        for item in items:
            t = self._clock.since_zero(item.t_ns)
            if t >= self._next_tick:
                changes.extend(self._tick_until(t))
            changes.extend(self._view.take(t, item))
        if not self._alive and self._follower.caught_up and self._clock.zero_ns is not None:
            changes += self._end()
            self.ended = True
        elif not self._alive and self._facts is None and not items:
            changes += self._view.died(0.0) if self.died else ()
            self.ended = True
        return sorted(changes, key=lambda change: change.t)

    def close(self) -> None:
        self._follower.close()

    @contextmanager
    def _shown(self) -> Iterator[None]:
        """The directory may be foreign, and a view another package's: each failure becomes one sentence."""
        try:
            yield
        except (RoveError, OSError):
            raise
        except Exception as error:
            what = one_line(f"{type(error).__name__}: {error}", LONGEST_ERROR)
            text = f"run {self.directory.id} cannot be shown: its files are not as Rove writes them ({what})"
            raise CannotShow(text) from error

    def _ask(self) -> None:
        """Looks now and then whether the run is planned, and whether it is over."""
        if time.monotonic() - self._asked < LOOK_S and not (self._facts is None and not self._alive):
            return
        self._asked = time.monotonic()
        # Alive or not is asked before files are read: what was written before the end is then still read.
        if self._alive:
            state = state_of(self.directory)
            self._alive = state is Life.ALIVE
            self.died = state is Life.DEAD and self.directory.journal.exists()
        if not self._alive:
            self._follower.look()
        if self._facts is None and (facts := read_facts(self.directory)) is not None:
            self._know(facts)

    def _know(self, facts: RunFacts) -> None:
        self._facts = facts
        self._clock.know(facts)
        self._follower.know(facts)
        views: dict[str, AppView] = {}
        for name, app in facts.apps.items():
            if app.kind not in APPLICATIONS:
                continue
            view = application(app.kind).view(name, app.document, self._clock.seconds)
            shown: dict[str, Any] = {}
            if view is not None:
                views[name] = view
                shown = view.head()
                if name in facts.switching and "policy" in shown:
                    shown = {**shown, "policy": facts.switching[name]}
            self._heads.append({"name": name, "kind": app.kind, "view": shown})
        self._view = RunView(facts, self._clock, views)

    def _is_begun(self) -> bool:
        """Whether it is known when the run's first record was written: all times are counted from it.

        It is once every node has recorded something, or the run is over. After routing has converged, nodes
        that are silent are not waited for; those on other machines for a while, as records have a long way.
        """
        if self._clock.zero_ns is not None:
            return True
        if self._facts is None:
            return False
        events = self._follower.waiting_events()
        self._know_clocks(events)
        first = self._follower.first_ns()
        remote = self._facts.traits.remote
        if self._alive and (remote or len(first) < len(self._facts.nodes)):
            if not any(e.get("phase") == "converge" and e.get("state") == "finished" for e in events):
                return False
            if len(first) < len(self._facts.nodes) and not self._waited_for(first, remote):
                return False
        zero_ns = min(first.values(), default=self._facts.started_ns or 0)
        if self._facts.span is not None:
            zero_ns = max(zero_ns, self._facts.span[0])
        self._clock.zero_ns = self._clock.now_ns = zero_ns
        return True

    def _waited_for(self, first: Mapping[str, int], remote: bool) -> bool:
        """Whether those nodes that have not recorded anything were waited for long enough."""
        if not first:
            return not self._fetches
        if self._first_seen is None:
            self._first_seen = time.monotonic()
        return not remote or time.monotonic() - self._first_seen >= SILENT_S

    def _know_clocks(self, events: Iterable[dict[str, Any]]) -> None:
        """Corrects the times of nodes' first records by the first offsets that were measured."""
        measured = [event for event in events if event.get("kind") == "clock"]
        for event in reversed(measured):
            offset = offset_of(event, 0)
            if offset is not None and isinstance(event.get("node"), str):
                self._clock.offset(event["node"], offset.offset_ns)

    def _window(self, facts: RunFacts) -> list[float] | None:
        if self._clock.zero_ns is None:
            return None
        if facts.measure is not None:
            return [self._clock.since_zero(t_ns) for t_ns in facts.measure]
        return self._view.measure

    def _tick_until(self, t: float) -> Iterator[Change]:
        """Ends every second that lies ``GRACE_S`` behind ``t``, ``GRACE_S`` after its end."""
        if t < self._next_tick:
            return
        due, since = int(t - GRACE_S), int(self._next_tick)
        self._next_tick = due + 1 + GRACE_S
        for second in range(max(since, due - MOST_TICKS), due + 1):
            yield from self._view.tick(second + GRACE_S)

    def _end(self) -> Iterator[Change]:
        """Ends the second of the last record."""
        self._view.end()
        if self.died:
            yield from self._view.died(self.now)
        yield from self._tick_until(int(self.now) + 1 + GRACE_S)
