"""Keys between pairs of nodes."""

from node_agent.transport.keys import KEY_SIZE, derive, keys_of

SECRET = bytes(range(32))
NODES = ("a", "b", "c", "ab")


def test_two_nodes_share_a_key_that_no_other_pair_and_no_other_run_has() -> None:
    rings = {node: keys_of(SECRET, "run", node, NODES) for node in NODES}
    assert all(rings[one][other] == rings[other][one] for one in NODES for other in NODES)
    distinct = {rings[one][other] for one in NODES for other in NODES}
    assert len(distinct) == len(NODES) * (len(NODES) + 1) // 2
    assert distinct.isdisjoint(keys_of(SECRET, "other run", "a", NODES).values())
    assert {len(key) for key in distinct} == {KEY_SIZE}


def test_names_that_run_together_are_told_apart() -> None:
    assert keys_of(SECRET, "r", "ab", ["c"])["c"] != keys_of(SECRET, "r", "a", ["bc"])["bc"]


def test_purposes_are_told_apart() -> None:
    assert derive(SECRET, b"hello") != derive(SECRET, b"probe")
