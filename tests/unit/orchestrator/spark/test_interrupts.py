"""Ctrl-C is heard even if Python drops it while an object is cleaned up."""

import time
import weakref

import pytest

from orchestrator.spark.interrupts import interrupts_are_heard


class Thing:
    pass


def interrupted(reference: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_during_a_clean_up_comes_again() -> None:
    thing = Thing()
    kept = weakref.ref(thing, interrupted)
    with pytest.raises(KeyboardInterrupt), interrupts_are_heard():
        del thing
        time.sleep(10)
    assert kept() is None


def test_other_errors_are_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: told.append(unraisable.exc_type))

    def wrong(reference: object) -> None:
        raise ValueError

    thing = Thing()
    kept = weakref.ref(thing, wrong)
    with interrupts_are_heard():
        del thing
    assert told == [ValueError] and kept() is None
