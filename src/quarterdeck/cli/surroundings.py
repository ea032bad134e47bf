"""What the cockpit asks for while it runs, on this machine."""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote

from quarterdeck.cli.background import ensure_service
from quarterdeck.cli.cockpit_edit import write_setting
from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import CliError
from quarterdeck.cli.kept_keys import kept_key_path
from quarterdeck.cli.target import Target, embedded_target, find_target
from quarterdeck.tui.surroundings import Known, NotPossible, Service

LOCAL = "local"
"""The name of the embedded service, unless a profile has it."""
HERE = "the service of this machine"


class Machine:
    """Part of `quarterdeck.tui.surroundings.Surroundings`."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def current(self) -> str:
        return self._target.name

    @property
    def file(self) -> Path:
        return config_path()

    @property
    def own_machine(self) -> bool:
        return self._target.embedded

    def known(self) -> list[Known]:
        """The profiles, the embedded service, and where the variables point to."""
        found = {LOCAL: HERE}
        if self.file.exists():
            from quarterdeck.cli.config import read_config

            try:
                profiles = read_config(self.file).profiles
            except CliError as e:
                raise NotPossible(_sentence(e)) from e
            for name, profile in profiles.items():
                found[name] = profile.url or f"unix:{profile.socket}"
        found.setdefault(self.current, self._target.endpoint)
        return [Known(name, shown) for name, shown in found.items()]

    async def connect(self, name: str) -> Service:
        """Finds a service; nothing is asked of it yet."""
        if name == self.current:
            return service_of(self._target)
        try:
            # A key's command may ask a person something, or a server.
            target = await asyncio.to_thread(self._find, name)
        except CliError as e:
            raise NotPossible(_sentence(e)) from e
        if not target.embedded and target.current_key() is None:
            login = f"qd auth login --profile {quote(name)}"
            raise NotPossible(f"There is no key for {name}. Get one with: {login}.")
        self._target = target
        return service_of(target)

    def add(self, name: str, address: str, key: str | None) -> None:
        """Into the configuration file; the key where `qd auth login` would keep it."""
        from quarterdeck.cli.profile_edit import add_profile

        try:
            add_profile(self.file, name, address, key, kept_key_path(self._target.home, name))
        except CliError as e:
            raise NotPossible(_sentence(e)) from e

    def _find(self, name: str) -> Target:
        named = any(one.name == name and one.shown != HERE for one in self.known())
        return find_target(name) if named else embedded_target()

    def keep(self, name: str, value: str | bool) -> None:
        """Into the configuration file."""
        try:
            write_setting(self.file, name, value)
        except CliError as e:
            raise NotPossible(_sentence(e)) from e

    async def make_key(self, name: str) -> str:
        """With a token made for it: a key cannot make keys."""
        if not self._target.embedded:
            raise NotPossible(
                "A key is made on the machine of the service, or after a login:"
                f" qd --profile {self.current} keys create."
            )
        async with self._target.client() as client:
            token = await client.auth.login(lambda _: None)
        async with replace(self._target, key=token.access_token).client() as own:
            return (await own.api_keys.create(name)).key

    async def install(self, agent: str, tell: Callable[[str], None]) -> None:
        """`qd agents install`, as it would be called by hand."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quarterdeck", "agents", "install", agent),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        # The last ones: what npm said, how it ended, and what to do about it.
        last: deque[str] = deque(maxlen=3)
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                if said := line.decode(errors="replace").strip():
                    last.append(said)
                    tell(said)
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
        if code != 0:
            raise NotPossible(" ".join(last) or f"qd agents install ended with code {code}.")


def service_of(target: Target) -> Service:
    """A service as the cockpit takes it."""
    endpoint = "local" if target.embedded else target.endpoint
    return Service(target.client, endpoint, _reviver(target))


def _reviver(target: Target) -> Callable[[], Awaitable[str | None]] | None:
    """Sees to it that the embedded service runs; nothing for a service elsewhere."""
    if not target.embedded:
        return None

    async def revive() -> str | None:
        try:
            await ensure_service(target.home, lambda _: None)
        except CliError as e:
            return _sentence(e)
        return None

    return revive


def _sentence(error: CliError) -> str:
    return f"{error.message} {error.next_step or ''}".strip()
