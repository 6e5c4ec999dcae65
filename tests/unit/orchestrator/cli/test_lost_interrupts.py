"""An interrupt that a library dropped ends the work at its next stage."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
from rich.console import Console

from orchestrator.cli.progress import step
from orchestrator.lifecycle.interruption import signals_as_keyboard_interrupt

pytestmark = pytest.mark.timeout(10)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_dropped_interrupt_is_raised_at_the_next_stage(terminal: bool) -> None:
    reached = []
    console = Console(force_terminal=terminal, quiet=True)
    with pytest.raises(KeyboardInterrupt), step(console, "work") as progress:
        progress("first", 0.1)
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        reached.append("first")
        progress("second", 0.2)
        reached.append("second")
    assert reached == ["first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_dropped_in_the_last_stage_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), step(Console(quiet=True), "work"), suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Under nohup SIGHUP is ignored, and Rove leaves it so."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("default_signals")
def test_another_signal_that_ends_a_run_is_raised_again_too(number: signal.Signals) -> None:
    """``rove run``, ``sweep`` and ``collect`` take these as Ctrl-C."""
    reached = []
    quiet = Console(quiet=True)
    with (
        pytest.raises(KeyboardInterrupt),
        signals_as_keyboard_interrupt(),
        step(quiet, "work") as progress,
    ):
        progress("first", 0.1)
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        reached.append("first")
        progress("second", 0.2)
    assert reached == ["first"]
    assert signal.getsignal(number) is signal.SIG_DFL
