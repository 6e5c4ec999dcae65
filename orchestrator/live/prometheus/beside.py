"""What `rove serve` keeps going for Prometheus: the answers, a file of targets, and Prometheus itself.

kept = Beside(runs_dir, say=print, sd=Path("targets.json"), prometheus=True)
settings = Settings(metrics=kept.door, beside=kept.running)
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from orchestrator.errors import RoveError
from orchestrator.live.prometheus import rules
from orchestrator.live.prometheus.handlers import Offer
from orchestrator.live.prometheus.place import Place
from orchestrator.live.prometheus.service import FOLDER, PROGRAM, USER, Prometheus, lines_to_add
from orchestrator.live.prometheus.targets import TargetFile
from orchestrator.runs.run_directory import RunDirectory

RENEW_S = 2.0
"""How often the file of targets is looked at."""
RULES = "rules.yml"


class Runs(Protocol):
    """The server's list of runs."""

    def going_on(self) -> list[RunDirectory]: ...


class Listening(Protocol):
    """Where the server listens; ``token`` is None where none is needed."""

    @property
    def base(self) -> str: ...

    @property
    def token(self) -> str | None: ...


class Beside:
    """``say`` gets lines for the user. ``sd``: the file of targets to keep. ``port``: of Prometheus."""

    def __init__(
        self,
        runs_dir: Path,
        say: Callable[[str], None],
        sd: Path | None = None,
        prometheus: bool = False,
        port: int | None = None,
    ) -> None:
        self._place = runs_dir / FOLDER
        self._say = say
        self._sd = sd
        self._prometheus = prometheus
        self._port = port
        self._offer: Offer | None = None
        self.url: str | None = None
        """Of Prometheus, once it runs."""
        self.password_file: Path | None = None
        """Of the same; None if it asks for no password."""

    def door(self, runs: Runs) -> Offer:
        """Returns what answers the server's requests; the server closes it."""
        self._offer = Offer(runs.going_on)
        return self._offer

    @asynccontextmanager
    async def running(self, where: Listening) -> AsyncIterator[None]:
        """Raises OSError if the file of targets cannot be written, PrometheusFailed if it does not start."""
        server = where.base.removeprefix("http://").rstrip("/")
        async with AsyncExitStack() as held:
            if self._sd is not None:
                await held.enter_async_context(self._keeping(TargetFile(self._sd, server)))
            if self._prometheus:
                await self._start(server, where.token, held)
            yield

    async def _start(self, server: str, token: str | None, held: AsyncExitStack) -> None:
        if shutil.which(PROGRAM) is None:
            with Place(self._place) as place:
                place.write(RULES, rules.text().encode())
            rule_file = self._place.absolute() / RULES
            self._say("Prometheus is not installed here (sudo apt-get install prometheus).")
            self._say("To let another one watch these runs, add to its prometheus.yml (only you can read")
            self._say("the file of rules there: copy it to where the other one can):\n")
            self._say(lines_to_add(server, str(rule_file), token is not None))
            return
        started = Prometheus(self._place, server, token, self._port)
        await held.enter_async_context(started)
        self.url = started.url
        self.password_file = started.password_file
        asks = f" (user {USER}, password in {self.password_file})" if self.password_file is not None else ""
        self._say(f"Prometheus: {started.url}{asks}")
        watching = asyncio.create_task(self._warn(started), name="prometheus")
        held.callback(watching.cancel)

    async def _warn(self, started: Prometheus) -> None:
        self._say(await started.ended())

    @asynccontextmanager
    async def _keeping(self, file: TargetFile) -> AsyncIterator[None]:
        await self._renew(file)
        keeping = asyncio.create_task(self._keep(file), name="targets")
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await asyncio.to_thread(file.close)

    async def _keep(self, file: TargetFile) -> None:
        said = ""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await self._renew(file)
            except (OSError, RoveError) as error:  # a full disk: the list is written when there is room
                if str(error) != said:
                    said = str(error)
                    self._say(f"the file of targets cannot be written: {error}")

    async def _renew(self, file: TargetFile) -> None:
        if self._offer is not None:
            targets = await self._offer.targets()
            await asyncio.to_thread(file.write, targets)
