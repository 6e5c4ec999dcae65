"""A small siege: hostile messages for every parser, attacks on a live network; and that it sees failures."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.attacks.canary import Canary
from benchmarks.attacks.live import siege
from benchmarks.attacks.parser import Fired, Forged, Outside, Parser
from benchmarks.attacks.sound import remove_sound_run, sound_run
from benchmarks.attacks.table import PARSERS
from benchmarks.attacks.workers import fire_at_all

EACH = 25


@pytest.fixture(scope="module")
def run() -> Iterator[Path]:
    yield sound_run()
    remove_sound_run()


@pytest.mark.timeout(150)
def test_no_parser_falls_to_a_few_hostile_messages(run: Path) -> None:
    parsers = [parser._replace(share=1) for parser in PARSERS]
    fired = fire_at_all(parsers, seed=12, messages=EACH * len(parsers), seconds=100)
    failures = [str(failure) for each in fired for failure in each.failures]
    assert not failures, "\n".join(failures)
    assert {each.parser for each in fired} == {parser.name for parser in PARSERS}


@pytest.mark.timeout(150)
def test_a_live_network_survives_strangers_and_a_malicious_node() -> None:
    said: list[str] = []
    attacks = ("deep_greetings", "fuzzed_greetings", "impersonation", "forged_tuples")
    found = siege.besiege(12, 30.0, attacks, said.append)
    assert not found.trouble, "\n".join(found.trouble)
    assert found.attacks == len(attacks) == len(said)
    assert not (found.agents_ended or found.stalled or found.forged_accepted or found.files_outside)


class Weak:
    """A target with one weakness."""

    def __init__(self, weakness: str) -> None:
        self._weakness = weakness

    def draw(self, rng: random.Random) -> int:
        return rng.randrange(10)

    def feed(self, message: int) -> None:
        if message == 7:
            match self._weakness:
                case "crash":
                    raise KeyError(message)
                case "forged":
                    raise Forged("it believes in 7")
                case "outside":
                    raise Outside("7")
                case "hang":
                    end = time.process_time() + 5
                    while time.process_time() < end:
                        pass

    def close(self) -> None:
        pass


def besieged(weakness: str, first: int = 0, messages: int = 40) -> Fired:
    parser = Parser("weak", "stranger", 1, lambda directory: Weak(weakness))
    return fire_at_all([parser], 1, messages, 30, first, jobs=1)[0]


@pytest.mark.parametrize("weakness", ["crash", "forged", "outside", "hang"])
def test_it_sees_what_should_not_be_and_says_how_to_see_it_again(weakness: str) -> None:
    failure = besieged(weakness, messages=12).failures[0]
    assert failure.kind == weakness
    again = besieged(weakness, failure.number, 1)
    assert (again.messages, again.failures[0].message) == (1, failure.message)


def test_a_process_that_dies_is_a_failure_of_its_parser() -> None:
    class Deadly(Weak):
        def feed(self, message: int) -> None:
            import os

            os._exit(3)

    parser = Parser("deadly", "stranger", 1, lambda directory: Deadly(""))
    found = fire_at_all([parser], 1, 5, 30, jobs=1)[0]
    assert found.counts == {"hang": 1} and "ended with 3" in found.failures[0].what


def test_the_canary_sees_files_made_changed_and_removed_around_the_directory(tmp_path: Path) -> None:
    canary = Canary(tmp_path / "around")
    (canary.inside / "mine").write_text("allowed")
    canary.check()
    for change in (
        lambda: canary.key.write_text("a stranger's key"),
        lambda: (canary.home / "new-file").touch(),
        lambda: canary.key.unlink(),
        lambda: (canary.root / "link").symlink_to("/etc/passwd"),
    ):
        change()
        with pytest.raises(Outside):
            canary.check()
