"""`rove top`: a run that goes on elsewhere, in this terminal."""

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import LATEST, RunDirectory, resolve

if TYPE_CHECKING:
    from orchestrator.live.run import LiveRun
    from orchestrator.live.summary import Watch

POLL_S = 0.2
LINE_S = 10.0
"""Between two lines where there is no terminal."""
CATCH_UP_S = 60.0
FETCH_S = 3.0
"""How long records of remote nodes are waited for before the state is printed once."""


def top(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ] = LATEST,
    once: Annotated[bool, typer.Option("--once", help="Print the present state and leave.")] = False,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Watch a run that goes on: phases, goodput, latency, loss, the way of each stream, doubts so far.

    Shows what the run's directory has. Of nodes on other machines (ssh, core) the run's process fetches
    records for as long as this shows them; nothing else of the run changes. It ends with the run; q or Ctrl-C
    leaves, and the run goes on. Of a sweep it shows the run that goes on. Not on a terminal it prints lines.

    [bold]Examples[/]

      rove top

      rove top quickstart --once

      rove top latest --json
    """
    from orchestrator.cli.fetching import fetching
    from orchestrator.live.run import LiveRun
    from orchestrator.live.summary import Watch
    from orchestrator.spec.backends import traits_of

    directory = _one_run(resolve(run, runs_dir))
    live = LiveRun(directory)
    watch = Watch(live.head)
    with ExitStack() as held:
        held.callback(live.close)
        fetched = traits_of(live.head.get("backend")).remote and not live.ended
        if fetched:
            held.enter_context(fetching(directory))
        if once or as_json:
            _catch_up(live, watch, FETCH_S if fetched else 0.0)
            if as_json:
                print_json(_document(live, watch))
            else:
                _print(live, watch)
        elif console.is_terminal:
            _show(live, watch)
        else:
            _lines(live, watch)


def _one_run(directory: RunDirectory) -> RunDirectory:
    """Returns the run, or of a sweep the one that goes on, else its last one."""
    from orchestrator.lifecycle.teardown import State, state_of

    if not directory.is_sweep:
        return directory
    members = directory.members()
    if not members:
        raise BadInput(f"{directory.id} is a sweep, and none of its runs has begun")
    return next((each for each in members if state_of(each) is State.ALIVE), members[-1])


def _poll(live: "LiveRun", watch: "Watch") -> None:
    watch.take(live.poll())
    watch.know(live.head)


def _catch_up(live: "LiveRun", watch: "Watch", least_s: float) -> None:
    """Reads what is there; for ``least_s`` it waits for more."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < CATCH_UP_S:
        _poll(live, watch)
        if live.ended or (live.caught_up and passed >= least_s):
            return
        if live.caught_up:
            time.sleep(POLL_S)


def _title(live: "LiveRun") -> str:
    head = live.head
    facts = [head["run"], head["experiment"], head.get("backend", "")]
    facts += [f"{name}={value}" for name, value in head.get("factors", {}).items()]
    return " · ".join(str(fact) for fact in facts if fact)


def _print(live: "LiveRun", watch: "Watch") -> None:
    from orchestrator.cli.live_display import RunBlock

    console.print(RunBlock(watch.summary(), _title(live), whole=True), soft_wrap=not console.is_terminal)


def _show(live: "LiveRun", watch: "Watch") -> None:
    from rich.live import Live

    from orchestrator.cli.live_display import RunBlock

    with _keys() as key_pressed, Live(console=console, auto_refresh=False) as display:
        while True:
            _poll(live, watch)
            display.update(RunBlock(watch.summary(), _title(live)), refresh=True)
            if live.ended or key_pressed(POLL_S if live.caught_up else 0.0) in ("q", "Q"):
                return


def _lines(live: "LiveRun", watch: "Watch") -> None:
    from orchestrator.cli.live_display import plain_line

    console.print(_title(live), markup=False, soft_wrap=True)
    phase, said = "", time.monotonic()
    while not live.ended:
        _poll(live, watch)
        summary = watch.summary()
        if summary.phase != phase:
            phase = summary.phase
            console.print(phase, markup=False)
        if time.monotonic() - said >= LINE_S and summary.now:
            said = time.monotonic()
            console.print(plain_line(summary), markup=False, soft_wrap=True)
        if live.caught_up and not live.ended:
            time.sleep(POLL_S)
    summary = watch.summary()
    console.print(plain_line(summary), markup=False, soft_wrap=True)
    if summary.verdict:
        console.print(
            "; ".join([f"verdict: {summary.verdict}", *summary.doubts]), markup=False, soft_wrap=True
        )


def _document(live: "LiveRun", watch: "Watch") -> dict[str, Any]:
    import msgspec

    return {
        "run": live.head["run"],
        "directory": str(live.directory.path),
        "ended": live.ended,
        "now_s": live.now,
        "summary": msgspec.to_builtins(watch.summary()),
        "head": live.head,
        "state": watch.state.document(),
    }


def _waited(seconds: float) -> str:
    time.sleep(seconds)
    return ""


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yields a function that waits for a key and returns it; empty if none was pressed in time."""
    if not sys.stdin.isatty():
        yield _waited
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def pressed(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return sys.stdin.read(1) if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
