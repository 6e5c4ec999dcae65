from array import array
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from orchestrator.backends.netns.radio import shared
from orchestrator.backends.netns.radio.driven import packed_channel, unpacked_channel
from orchestrator.backends.netns.radio.lateness import BINS
from orchestrator.backends.netns.radio.shared import SLOTS, Shared
from orchestrator.radio.channel import build_channel
from orchestrator.radio.presets import seed_80211b
from orchestrator.radio.settings import Mac


@pytest.mark.parametrize("rates", [(11.0, 11.0, 11.0), (11.0, 2.0, 1.0)])
def test_a_channel_arrives_as_it_was_sent(rates: tuple[float, float, float]) -> None:
    radio = seed_80211b()
    positions = [(37.0 * i, 91.0 * (i % 7)) for i in range(70)]
    channel = build_channel(radio, Mac(*rates), positions)
    memory = Shared(70)
    memory.publish(packed_channel(channel))
    taken = unpacked_channel(memory.take(), radio)
    for name in ("power_mw", "noise_mw", "hearers", "decoders", "heard", "heard_nodes", "rivals"):
        assert getattr(taken, name) == getattr(channel, name)
    assert (taken.ln_unicast, taken.ln_broadcast) == (channel.ln_unicast, channel.ln_broadcast)
    assert taken.ln_control == channel.ln_control


def test_channels_wait_in_order_and_no_more_than_there_is_room_for() -> None:
    radio = seed_80211b()
    memory = Shared(2)
    sent = [build_channel(radio, Mac(), [(0.0, 0.0), (100.0 * i, 0.0)]) for i in range(1, SLOTS)]
    for channel in sent:
        memory.publish(packed_channel(channel))
    memory.publish(b"")
    assert not memory.has_room()
    for channel in sent:
        assert unpacked_channel(memory.take(), radio).power_mw == channel.power_mw
    assert memory.take() == b""
    assert memory.has_room()


def test_who_reads_in_the_middle_of_an_update_gets_all_of_it() -> None:
    memory = Shared(2)
    with ThreadPoolExecutor(1) as reader:
        with memory.update():
            memory.lateness[:] = memoryview(array("q", [1] * BINS))
            reading = reader.submit(memory.counters)
            # Long enough for a reader who does not wait to be done with half of it.
            assert not wait([reading], timeout=0.05).done
            memory.put_links(0, [1, 1], [1, 1])
            memory.put_links(1, [1, 1], [1, 1])
            memory.cells[shared.CPU_NS] = 1
        seen = reading.result()
    assert {*seen.lateness, *seen.attempts, *seen.received, seen.scalars[shared.CPU_NS]} == {1}


def test_a_loop_that_died_in_an_update_does_not_hold_up_its_report() -> None:
    memory = Shared(2)
    memory.lateness[:] = memoryview(array("q", [2] * BINS))
    memory.update().__enter__()
    assert memory.counters().lateness == [2] * BINS
