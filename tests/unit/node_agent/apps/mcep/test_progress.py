"""Up to which time everything has arrived, with many clients, against a plain search."""

import math
import random

import pytest

from node_agent.apps.mcep.progress import BLOCK, GONE, Progress

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("clients", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_the_least_word_of_all_is_known_however_words_come(clients: int) -> None:
    draw = random.Random(clients)
    names = [f"c{number}" for number in range(clients)]
    progress, words, latest = Progress(names), dict.fromkeys(names, -math.inf), -math.inf
    for _ in range(600):
        said = [
            (draw.choice([*names, "stranger"]), draw.choice([draw.randint(0, 40) / 2, math.nan, GONE]))
            if draw.random() < 0.3
            else (draw.choice(names), words[draw.choice(names)] + 1)
            for _ in range(draw.choice([1, 1, 5, clients]))
        ]
        before = min(words.values())
        for client, upto in said:
            if client in words and upto > words[client]:
                words[client] = upto
                latest = max(latest, upto) if upto < GONE else latest
        grew = progress.hear_all(said, itself=draw.random() < 0.5)
        arrived = min(words.values())
        assert grew == (arrived > before) and progress.arrived == arrived
        assert progress.slowest() == {client: t for client, t in words.items() if t == arrived}
        assert progress.latest == latest
    assert all(progress.of(client) == t for client, t in words.items())


def test_with_no_clients_nothing_is_to_come() -> None:
    progress = Progress([])
    assert progress.arrived == GONE and not progress.hear("a", 1.0) and progress.slowest() == {}
