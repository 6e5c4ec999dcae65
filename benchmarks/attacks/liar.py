"""Tests a node that lies at the end of a run: its forged records are judged and analysed together with sound
ones.
"""

import random
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.attacks.live.siege import Besieged, Tell
from benchmarks.attacks.parsers.segments import Forgery, Segments, place_special
from benchmarks.attacks.sound import sound_run
from orchestrator.errors import RoveError
from orchestrator.lifecycle.rejudging import rejudge
from orchestrator.planning.load import load_experiment
from orchestrator.runs.files import read_json
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement
from orchestrator.spark.java import find_java

FORGED_RUNS = 10


class Lie(NamedTuple):
    name: str
    role: str
    run: Callable[[Path, random.Random, Besieged], None]


def lie(seed: int, only: Collection[str], tell: Tell) -> Besieged:
    found = Besieged()
    for attack in ATTACKS:
        if not only or attack.name in only:
            with TemporaryDirectory(prefix="rove-siege-liar-") as directory:
                attack.run(Path(directory), random.Random(f"{seed} {attack.name}"), found)
            found.attacks += 1
            tell(f"{attack.name:<28}{found.messages:>8} runs")
    return found


def analysed_together(directory: Path, rng: random.Random, found: Besieged) -> None:
    """Analyses forged runs and a sound one together: each forged one must be invalid, the sound one as if it
    were alone.
    """
    honest = _copy(directory, "sound-0")
    forged = [_copy(directory, f"sound-{number}") for number in range(2, 2 + FORGED_RUNS)]
    target = Segments(directory / "draws")
    for run in forged:
        forgery = _drawn(target, rng)
        _forge(run, forgery)
        verdict = rejudge(run, load_experiment(run.spec), ())
        found.messages += 1
        if forgery.must_fail and verdict.verdict is Judgement.VALID:
            found.forged_accepted += 1
            found.trouble.append(f"analysed_together: {run.id} is valid although {forgery.must_fail}")
    _analyse(honest, forged, found)


def _analyse(honest: RunDirectory, forged: list[RunDirectory], found: Besieged) -> None:
    try:
        find_java()
    except RoveError:
        return
    from orchestrator.analytics import pipeline
    from orchestrator.spark.session import spark_session

    with spark_session() as spark:
        pipeline.analyze([honest.path], spark=spark)
        alone = read_json(honest.summary)
        shutil.rmtree(honest.path.parent.parent / ".tables", ignore_errors=True)
        try:
            pipeline.analyze([run.path for run in (honest, *forged)], spark=spark)
        except RoveError as error:
            found.stalled += 1
            found.trouble.append(f"analysed_together: one run keeps all from being analysed: {error}")
            return
    together = read_json(honest.summary)
    if together["metrics"] != alone["metrics"]:
        found.forged_accepted += 1
        found.trouble.append("analysed_together: the sound run's figures changed by what others claim")


def _drawn(target: Segments, rng: random.Random) -> Forgery:
    """Draws mostly claims; from the rest only those that are files."""
    while True:
        forgery = target.draw(rng)
        if forgery.must_fail or rng.random() < 0.3:
            return forgery


def _copy(directory: Path, run_id: str) -> RunDirectory:
    """Copies the sound run under another id, which it also uses inside the files."""
    sound = sound_run()
    copied = directory / "runs" / sound.parent.name / run_id
    shutil.copytree(sound, copied)
    for file in copied.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(sound.name.encode(), run_id.encode()))
    return RunDirectory(copied)


def _forge(run: RunDirectory, forgery: Forgery) -> None:
    segments = run.segments(forgery.node)
    shutil.rmtree(segments)
    segments.mkdir()
    for name, content in forgery.files:
        (segments / name).write_bytes(content.replace(sound_run().name.encode(), run.id.encode()))
    place_special(segments, forgery.special, run.segments("a"))


ATTACKS = (Lie("analysed_together", "liar", analysed_together),)
