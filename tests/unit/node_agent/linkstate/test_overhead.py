"""What agents record of their routing daemons: messages, bytes, and what was refused."""

import asyncio

import pytest

from node_agent.linkstate.overhead import AskedOverhead, Counts, OverheadConfig
from node_agent.linkstate.reader import Garbage
from node_agent.model.telemetry import RefusalCount, RoutingOverhead
from tests.unit.captured import pages, server

GOOD = (
    b'{"pid": 1, "counters": {"LQ_TC": {"sent": 1, "sent_bytes": 50, "forwarded": 2, "forwarded_bytes": 9,'
    b' "received": 3}}, "refusals": [{"what": "olsr", "source": "10.0.0.9", "reason": "hna", "count": 4}]}'
)


def asked(answer: bytes) -> Counts:
    async def scenario() -> Counts:
        async with server(pages({"/counters": answer})) as port:
            return await AskedOverhead(OverheadConfig("olsr", "127.0.0.1", port)).read()

    return asyncio.run(scenario())


def test_what_was_sent_and_what_was_refused_become_events() -> None:
    sent, refused = asked(GOOD)
    assert sent == RoutingOverhead("olsr", "LQ_TC", 1, 50, 2, 9)
    assert refused == RefusalCount("olsr", "10.0.0.9", "hna", 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sent": 1', b'"sent": 9223372036854775808'),
        (b'"sent": 1', b'"sent": -1'),
        (b"LQ_TC", b"x" * 65),
        (b"10.0.0.9", b"x" * 65),
        (b'"pid": 1', b'"pid": ' + b"[" * 100_000),
        (b"}]}", b"}]"),
        (b'"pid": 1', b'"pid": "' + b"x" * 300_000 + b'"'),
    ],
)
def test_other_answers_are_garbage(old: bytes, new: bytes) -> None:
    assert old in GOOD
    with pytest.raises(Garbage):
        asked(GOOD.replace(old, new))
