"""The machine's clock jumps while a run measures, so that numbers before and after do not belong together.

No real clock is set: a hook in the run's processes adds the step to what they read.
"""

from benchmarks.drilling.checks import verdict_of
from benchmarks.drilling.disk import hooked
from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import Moment, come
from benchmarks.drilling.settling import settle

STEPS_S = (1.0, -1.0, 3600.0, -3600.0, 0.5, 86400.0 * 365)


def clock_step(drill: Drill) -> None:
    """Adds a step of each size in turn, at some time during the measurement."""
    step = STEPS_S[drill.number % len(STEPS_S)]
    moment = Moment(("warm-up", "measure")[drill.number % 2])
    drill.note(f"the clock steps by {step:g} s at {moment}")
    trigger = drill.folder / "step"
    hook = hooked(drill, ROVE_DRILL_CLOCK=str(trigger))
    process = drill.start_run(drill.experiment(duration="3 s"), env=hook)
    if not come(drill, drill.run, moment, process):
        drill.found.wrong_verdicts.append(f"{moment} never came: {drill.stderr[-300:]}")
    unfinished = drill.folder / "unfinished"
    unfinished.write_text(str(step))
    unfinished.rename(trigger)
    code = drill.wait(process)
    verdict = verdict_of(drill.run)
    reasons = verdict.get("reasons", [])
    if verdict.get("verdict") == "valid" or not any("clock" in reason for reason in reasons):
        drill.found.wrong_verdicts.append(f"the step is not reported: {verdict.get('verdict')} {reasons}")
    settle(drill, drill.run, code)
