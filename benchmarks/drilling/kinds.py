"""The table of all kinds of drill: the function that runs it, and how many there are by default."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.drilling import (
    clock_steps,
    full_disks,
    helpers,
    kills,
    lost_disks,
    power_loss,
    real_nodes,
    reused_pids,
    together,
)
from benchmarks.drilling.drill import Drill


class Kind(NamedTuple):
    """``real_nodes``: it needs the laboratory of SSH servers."""

    play: Callable[[Drill], None]
    drills: int
    real_nodes: bool = False


KINDS: dict[str, Kind] = {
    "kill": Kind(kills.kill, 26),
    "kill_any_time": Kind(kills.kill_any_time, 12),
    "interrupt": Kind(kills.interrupt, 26),
    "interrupt_any_time": Kind(kills.interrupt_any_time, 8),
    "interrupt_twice": Kind(kills.interrupt_twice, 16),
    "interrupt_twice_any_time": Kind(kills.interrupt_twice_any_time, 6),
    "kill_sim": Kind(kills.kill_sim, 10),
    "interrupt_sim": Kind(kills.interrupt_sim, 10),
    "kill_sweep": Kind(kills.kill_sweep, 4),
    "kill_helper": Kind(helpers.kill_helper, 20),
    "together": Kind(together.together, 9),
    "full_disk": Kind(full_disks.full_disk, 13),
    "no_more_files": Kind(full_disks.no_more_files, 8),
    "clock_step": Kind(clock_steps.clock_step, 6),
    "reused_pid": Kind(reused_pids.reused_pid, 8),
    "power_loss": Kind(power_loss.power_loss, 28),
    "lost_segments": Kind(lost_disks.lost_segments, 6),
    "lost_and_restarted": Kind(lost_disks.lost_and_restarted, 1),
    "lost_run_directory": Kind(lost_disks.lost_run_directory, 3),
    "node_kill": Kind(kills.kill, 14, True),
    "node_kill_any_time": Kind(kills.kill_any_time, 4, True),
    "node_interrupt": Kind(kills.interrupt, 8, True),
    "node_interrupt_twice": Kind(kills.interrupt_twice, 8, True),
    "node_helper": Kind(real_nodes.node_helper, 8, True),
    "same_nodes": Kind(real_nodes.same_nodes, 2, True),
    "full_node": Kind(real_nodes.full_node, 4, True),
    "full_here": Kind(real_nodes.full_here, 5, True),
    "power_loss_here": Kind(real_nodes.power_loss_here, 8, True),
    "lost_node_disk": Kind(real_nodes.lost_node_disk, 6, True),
    "lost_before_collection": Kind(real_nodes.lost_before_collection, 1, True),
    "node_clock_step": Kind(real_nodes.node_clock_step, 2, True),
    "reused_supervisor_pid": Kind(real_nodes.reused_supervisor_pid, 1, True),
}
