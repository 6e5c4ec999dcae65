"""Prometheus beside `rove serve`: writes its configuration, starts it on the loopback, and stops it.

    async with Prometheus(runs_dir / FOLDER, server="127.0.0.1:8080") as started:
        print(started.url)

Its data stays in its directory, so that a later `rove serve --prometheus` shows earlier runs too.
"""

import asyncio
import os
import re
import secrets
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import bcrypt

from orchestrator.foreign_text import one_line
from orchestrator.live.prometheus import rules
from orchestrator.live.prometheus.place import Place, PrometheusFailed
from orchestrator.live.prometheus.probing import LOOPBACK, Login, is_ready, listens
from orchestrator.live.prometheus.targets import JOB

PROGRAM = "prometheus"
FOLDER = ".prometheus"
"""In the directory of all runs; no run's name begins with a dot."""
PORT = 9090
RETENTION = "90d"
SCRAPE_TIMEOUT = "4500ms"
START_S = 30.0
STOP_S = 10.0
GIVE_UP_S = 1.0
"""How long one that is not ready yet may take to end: it has written nothing that could be lost."""
KILL_S = 5.0
USER = "rove"
_LOG = "prometheus.log"
_CONFIG = "prometheus.yml"
_RULES = "rules.yml"
_WEB = "web.yml"
_TOKEN = "token"
_PASSWORD = "password"
_DATA = "data"
_PASSWORD_FORM = re.compile(rb"[A-Za-z0-9_-]{32}")


def scrape_config(server: str, token_file: str | None = None) -> dict[str, Any]:
    """Returns the entry of ``scrape_configs``. ``server``: host and port of `rove serve`.

    ``token_file``: has the token that the server asks for.
    """
    # The type is named: for service discovery Prometheus 2.42 has no default.
    allowed = {"authorization": {"type": "Bearer", "credentials_file": token_file}} if token_file else {}
    discovery = {"url": f"http://{server}/sd", "refresh_interval": f"{rules.SCRAPE_S}s", **allowed}
    return {
        "job_name": JOB,
        "scrape_interval": f"{rules.SCRAPE_S}s",
        "scrape_timeout": SCRAPE_TIMEOUT,
        **allowed,
        "http_sd_configs": [discovery],
    }


def configuration(server: str, rule_file: str, token_file: str | None = None) -> str:
    interval = f"{rules.SCRAPE_S}s"
    return rules.yaml_text(
        {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [rule_file],
            "scrape_configs": [scrape_config(server, token_file)],
        }
    )


def lines_to_add(server: str, rule_file: str, needs_token: bool) -> str:
    """Returns what to add to the prometheus.yml of a Prometheus that runs elsewhere."""
    token_file = "/path/to/a/file/with/the/token" if needs_token else None
    added = {"rule_files": [rule_file], "scrape_configs": [scrape_config(server, token_file)]}
    return rules.yaml_text(added)


class Prometheus:
    """Owns the process: it is stopped on leaving, and dies with this one.

    If there is a token, Prometheus asks for a password too: it knows what the page shows only with the token.
    """

    def __init__(
        self, directory: Path, server: str, token: str | None = None, port: int | None = None
    ) -> None:
        """``port``: where Prometheus listens; by default 9090, or another one if that is taken."""
        self._place = Place(directory)
        self._server = server
        self._token = token
        self._port = port or free_port(PORT)
        self._process: asyncio.subprocess.Process | None = None
        self._login: Login | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def password_file(self) -> Path | None:
        """Has the password of ``USER``; None if Prometheus asks for none."""
        return None if self._login is None else self._place.path.absolute() / _PASSWORD

    async def __aenter__(self) -> "Prometheus":
        program = shutil.which(PROGRAM)
        if program is None:
            raise PrometheusFailed("Prometheus is not installed: sudo apt-get install prometheus")
        try:
            self._place.open()
            await self._start(program)
            await self._ready()
        except BaseException:
            await self._stop(GIVE_UP_S)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop(STOP_S)

    async def ended(self) -> str:
        """Returns, once Prometheus has ended by itself, what it said last."""
        assert self._process is not None
        code = await self._process.wait()
        return f"Prometheus has ended with code {code}: {self._last_words()}"

    async def _start(self, program: str) -> None:
        lock = self._place.lock()  # before anything is written
        try:
            command = [*_dies_with_this(), program, *self._write_files()]
            log = self._place.create(_LOG)
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._place.current,
                    pass_fds=(lock,),
                )
            finally:
                os.close(log)
        finally:
            self._place.unlock()  # Prometheus holds it from now on, however this process ends

    def _write_files(self) -> list[str]:
        """Returns Prometheus' options. Names are without a path: it works in the directory itself."""
        place = self._place
        place.folder(_DATA)
        for name in (_TOKEN, _WEB):
            place.remove(name)
        options = []
        if self._token is not None:
            place.write(_TOKEN, self._token.encode())
            self._login = Login(USER, self._password())
            # Few rounds: nobody guesses 192 random bits, and each request costs them.
            hashed = bcrypt.hashpw(self._login.password.encode(), bcrypt.gensalt(rounds=5)).decode()
            place.write(_WEB, rules.yaml_text({"basic_auth_users": {USER: hashed}}).encode())
            options = [f"--web.config.file={_WEB}"]
        place.write(_RULES, rules.text().encode())
        token_file = _TOKEN if self._token is not None else None
        place.write(_CONFIG, configuration(self._server, _RULES, token_file).encode())
        return [
            f"--config.file={_CONFIG}",
            f"--storage.tsdb.path={_DATA}",
            f"--storage.tsdb.retention.time={RETENTION}",
            f"--web.listen-address={LOOPBACK}:{self._port}",
            # Its own pages only: by default it lets those of all sites read its answers.
            f"--web.cors.origin={re.escape(self.url)}",
            *options,
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
        ]

    def _password(self) -> str:
        """Returns that of the last time, so that a data source of Grafana keeps working; or a new one."""
        kept = self._place.end_of(_PASSWORD) if self._place.was_private else None
        if kept is None or not _PASSWORD_FORM.fullmatch(kept.strip()):
            kept = secrets.token_urlsafe(24).encode()
            self._place.write(_PASSWORD, kept + b"\n")
        return kept.strip().decode()

    async def _ready(self) -> None:
        assert self._process is not None
        try:
            async with asyncio.timeout(START_S):
                while not await self._is_ready(self._process.pid):
                    if self._process.returncode is not None:
                        raise PrometheusFailed(f"Prometheus ended at once: {self._last_words()}")
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise PrometheusFailed(
                f"Prometheus is not ready after {START_S:g} s: {self._last_words()}"
            ) from None

    async def _is_ready(self, pid: int) -> bool:
        # Asked only if it is the one that listens: another program gets no password, and cannot pass for it.
        return listens(pid, self._port) and await asyncio.to_thread(is_ready, self._port, self._login)

    async def _stop(self, grace_s: float) -> None:
        try:
            if self._process is not None:
                await _end(self._process, grace_s)
        finally:
            self._place.close()

    def _last_words(self) -> str:
        log = self._place.end_of(_LOG)
        if log is None:
            return "it left no log"
        said = [line for line in reversed(log.decode(errors="replace").split("\n")) if line.strip()]
        telling = (line for line in said if "level=error" in line)
        return one_line(next(telling, said[0] if said else "it said nothing"))


async def _end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    for end, grace in ((process.terminate, grace_s), (process.kill, KILL_S)):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            end()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await process.wait()


def free_port(wanted: int) -> int:
    """Returns ``wanted`` if nobody listens there, else a free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PrometheusFailed("no port is free on this machine")


def _dies_with_this() -> list[str]:
    """Returns what lets the kernel end a program when this process dies."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []
