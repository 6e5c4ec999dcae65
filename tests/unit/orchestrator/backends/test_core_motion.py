"""How late nodes are moved on CORE's host is measured against the period of positions."""

import time

from orchestrator.backends.core.motion import Motion, position

PERIOD_S = 0.02


def test_positions_lie_on_the_way() -> None:
    path = [[1.0, 0.0, 0.0], [3.0, 10.0, 20.0]]
    times = [1.0, 3.0]
    assert [position(path, times, t) for t in (0.0, 2.0, 9.0)] == [(0.0, 0.0), (5.0, 10.0), (10.0, 20.0)]


def moved(seconds: float) -> Motion:
    """Each call of the daemon takes so long."""
    path = [[0.0, 0.0, 0.0], [1.0, 100.0, 0.0]]
    motion = Motion(
        lambda node, x, y: time.sleep(seconds), {"n1": (0.0, 0.0)}, {"n1": path}, PERIOD_S, lambda error: ""
    )
    motion.start()
    motion.join(20)
    assert not motion.is_alive()
    return motion


def test_a_daemon_that_takes_longer_than_the_period_is_late_in_every_round() -> None:
    slow = moved(3 * PERIOD_S)
    assert slow.late_s >= 1.9 * PERIOD_S
    assert slow.late_rounds >= 0.8 * slow.rounds - 2


def test_why_nodes_do_not_move_is_told() -> None:
    def fails(node: str, x: float, y: float) -> None:
        raise OSError("gone")

    motion = Motion(fails, {"n1": (5.0, 5.0)}, {"n1": [[0.0, 0.0, 0.0]]}, PERIOD_S, str)
    motion.start()
    motion.join(20)
    assert motion.failure == "nodes move no more: gone"
