"""A run as it is watched: a list of changes in the order of time, from which every view is made.

The live page, the replay file, `rove top` and `rove run` all read this list. The state at a moment is, for
each ``(app, channel, key)``, the last value that is not later. Values are plain JSON. A value of None ends
what the key names: a link that broke, a flow that ended.

Channels of the run itself (``app`` is empty):

=========  ===========  ===========================================================================
channel    key          value
=========  ===========  ===========================================================================
position   node         ``[x, y]`` in metres
link       ``a>b``      ``{"etx": 1.2}``: true links where the radio is emulated, else as routing sees them
signal     ``a>b``      ``{"snr": 12.5}`` in dB, without interference, of links that carried frames
node       node         ``{"state": …, "why": …}``: ok, failed, unreachable, crashed, silent, ended
phase      –            ``{"phase": "measure", "state": "started"}``, or finished with ``outcome``
event      –            ``{"kind": "fault", "text": "fault: crash n07", "level": "info|warn|error"}``
verdict    –            ``{"verdict": "valid", "reasons": []}``; before the end ``{"so_far": [doubts]}``;
                        with ``"died": true`` the run's process is gone, and nobody judged the run
frames     node         ``{"attempted": 900, "delivered": 850}``: that an emulated radio took from it so far,
                        each receiver counted
host       machine      ``{"waited": 0.1, "late_ms": 0.4}``; the machine of all nodes is ``""``. With
                        ``"probe": true`` the share is that of the probe's own work, which waits more
radio      –            ``{"late_ratio": 0.001, "p99_us": 120}``
clock      node         ``{"offset_ms": 1.2, "uncertainty_ms": 0.4}``
record     node         ``{"records": 1200, "bytes": 220000, "refused": 0, "boot": 2, "of_boot": 300}``:
                        what it has recorded so far; lines of the newest start of its agent
=========  ===========  ===========================================================================

Of a query (``app`` is its name):

=========  ================  ======================================================================
route      camera/0>detect   ``{"to": "detect/1", "old": "detect/0", "why": …, "switch": true, "shares": {},
                             "costs": [{"to": "detect/0", "link": 1.0, "path": 3.2}]}``
rate       replica           of one second: ``{"in", "out", "done", "dropped", "bytes"}``
queue      replica           ``{"in": 3, "out": 0}``
latency    sink's replica    of one second: ``{"n", "p50", "p95", "p99"}`` in seconds, ``"buckets"``
                             (``latency_buckets``). Of several sinks, the key ``""`` has all together
total      –                 of the measured time so far: ``{"offered", "delivered", "lost", "waiting",
                             "loss", "dropped": {reason: n}, "switches"}``, see below
picture    sink's replica    ``{"file": "latest.jpg", "frame": 12}``: a new picture can be had
=========  ================  ======================================================================

Of a total, ``offered`` is how many tuples the sources emitted. A tuple is owed to every sink that its stream
leads to; ``delivered``, ``lost`` and ``waiting`` count what is owed. Lost: dropped (``dropped`` has reasons),
sent and not received for 10 s, or held by an agent that was killed 10 s ago. Waiting: held by a replica, or
sent within 10 s; while the run goes on, also what a sender keeps to send it again. ``loss`` is lost /
(delivered + lost), None while both are 0. ``switches``: of replicas that carried something. At the end all of
these are the report's.

A route's ``switch``: another replica than the one used last (``old``), not a first route, or one that came
back.

Of flows: ``flow`` by name, of one second: ``{"sent": bit/s, "received": bit/s, "lost": ratio, "delay": s,
"jitter": s}``; None once the flow has sent all that it was to send.

Of a detection of events:

==========  ===========  =========================================================================
detection   pattern      so far: ``{"count": 12, "late": 0, "delay": s, "worst": s, "last": ["smoke#3", …]}``;
                         ``delay``: of the last one; late: later than the plan promised
carried     ``a>b``      ``{"up": true, "since": s, "instances", "requests", "bytes", "waiting",
                         "waiting_bytes"}``: whether a node is connected to a neighbour, what it sent there
                         since its agent started, and what waits
kept        node         ``{"instances", "matches", "undecided", "dropped"}``: what its stores hold, gave up
assumption  event, link  ``{"text": …, "planned": 0.1, "measured": 0.4}``: the plan assumed something else;
                         None once it is again as planned
==========  ===========  =========================================================================

Of interests that move with objects:

==========  ===========  =========================================================================
situation   query        so far: ``{"count": 12, "delay": s, "worst": s, "last": ["car1#3", …]}``;
                         ``delay``: of the last one, since it could be known
region      query        ``{"epoch": 3, "start": s, "x", "y", "radius"}``; without a place once it ended
served      broker       ``{"arrived": s, "stored", "waiting", "streamed"}``: up to when all has arrived, what
                         it keeps, what waits before operators, and what it sent to them
==========  ===========  =========================================================================
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

VERSION = 1

Seconds = Callable[[str, int], float]
"""Returns the run's time for a time, in nanoseconds, that a node wrote by its own clock."""


class Change(NamedTuple):
    """``t``: seconds since the run's first record."""

    t: float
    app: str
    channel: str
    key: str
    value: Any


class AppView(Protocol):
    """Turns the records of one application into changes. It never sees a record that is not believed."""

    def head(self) -> dict[str, Any]:
        """Returns what does not change: what the page draws, such as operators and where they run."""
        ...

    def take(self, node: str, t: float, record: Any) -> Iterable[Change]:
        """Takes one record. Records of one node come in order, those of several nodes may be mixed."""
        ...

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        """Called when the agent of a node has ``started``, has ``stopped`` in order, or was ``killed``."""
        ...

    def measure(self, t: float) -> None:
        """Called when the measured time begins: what is summed up counts from here."""
        ...

    def measured(self, t: float) -> None:
        """Called when the measured time has ended: what is born later does not count."""
        ...

    def end(self, t: float) -> None:
        """Called after the last record, which was written at ``t``; one more tick follows."""
        ...

    def tick(self, t: float) -> Iterable[Change]:
        """Called once a second of the run's time: ends what was counted in the seconds before ``t``."""
        ...
