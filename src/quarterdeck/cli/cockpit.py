"""`qd` without a verb: open the cockpit on a service that is started if none runs."""

import asyncio
import gc
import os
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from quarterdeck.cli.config_file import change_config, config_text, with_value, write_config
from quarterdeck.cli.errors import CliError, ConfigError, UsageError
from quarterdeck.cli.services import service_of, services_beside
from quarterdeck.cli.target import (
    LOCAL,
    Target,
    config_path,
    delete_stored_key,
    embedded_target,
    find_target,
    find_target_with_key,
    store_key,
    stored_key_path,
)
from quarterdeck.loading import load_later
from quarterdeck.local.files import find_checkout, read_file
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.tui.known_services import KnownService, NotSupportedError
from quarterdeck.tui.options import THEME_DIRECTORY, Options, read_options, theme_files

if TYPE_CHECKING:
    from quarterdeck.cli.schema import Profile


def read_cockpit_file(path: Path) -> Options:
    """Return the person's settings and themes, with `faults` for invalid ones; never raise."""
    files = theme_files(path.parent / THEME_DIRECTORY)
    try:
        text = read_file(path).decode()
        import tomllib

        document = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        options = Options()
    except (OSError, ValueError, RecursionError) as e:
        options = Options(faults=(f"{path} cannot be read: {e}.",))
    else:
        options = read_options(document, (file.stem for file in files))
    if not files:
        return options
    from quarterdeck.tui.theme_files import read_themes

    own = read_themes(path.parent / THEME_DIRECTORY)
    return options._replace(own_themes=own, faults=(*options.faults, *own.faults))


SOCKET = "unix:"


def add_profile(path: Path, name: str, address: str, key: str | None, kept: Path) -> None:
    """Add `[profiles.NAME]`; its key is stored in `kept`, as by a login.

    The key of an earlier profile of this name belonged to another service: it is replaced, or removed
    when there is no new one.

    Raises:
        ConfigError: the address is invalid, or a file cannot be read or written.
    """
    field, value = _address_field(address)
    after = with_value(config_text(path), ("profiles", name, field), value)
    if key is None:
        delete_stored_key(kept)
    else:
        store_key(kept, key)
    write_config(path, after)


def _address_field(address: str) -> tuple[str, str]:
    """Return the field of a profile for an address, and its value."""
    if address.startswith(SOCKET):
        return "socket", address.removeprefix(SOCKET)
    from httpx import URL, InvalidURL

    try:
        host = URL(address).host
    except InvalidURL as e:
        raise ConfigError(f"{address} is not a valid URL: {str(e).rstrip('.')}.") from e
    if not host:
        raise ConfigError(f"{address} is not a valid URL: it has no host.")
    return "url", address


_LOCAL_SERVICE = "the service of this machine"


class LocalMachine:
    """Part of `quarterdeck.tui.known_services.Surroundings`."""

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

    def known(self) -> list[KnownService]:
        """Return the embedded service, the profiles, and the service of the variables."""
        profiles = self._profiles()
        endpoints = {LOCAL: _LOCAL_SERVICE}
        for name, profile in profiles.items():
            if not profile.embedded:
                endpoints[name] = profile.url or f"unix:{profile.socket}"
        endpoints.setdefault(self.current, self._target.endpoint)
        beside = {name for name, profile in profiles.items() if profile.shown}
        repeated = beside - {service.name for service in self.beside()}
        return [
            KnownService(name, shown, name in beside, name in repeated)
            for name, shown in endpoints.items()
        ]

    def _profiles(self) -> "dict[str, Profile]":
        if not self.file.exists():
            return {}
        from quarterdeck.cli.schema import read_config

        try:
            return read_config(self.file).profiles
        except CliError as e:
            raise NotSupportedError(_message(e)) from e

    def beside(self) -> list[ServiceChoice]:
        """Return the services of the profiles that are shown, each address once."""
        return services_beside(self._target)

    def show_beside(self, name: str, shown: bool) -> None:
        """Set `shown` of a profile; the embedded service gets one."""
        try:
            change_config(self.file, ("profiles", name, "shown"), shown)
        except CliError as e:
            raise NotSupportedError(_message(e)) from e

    async def connect(self, name: str) -> ServiceChoice:
        """Find a service; no request is sent yet."""
        if name == self.current:
            return service_of(self._target)
        try:
            # A key's command may prompt a person, or query a server.
            target = await asyncio.to_thread(self._find, name)
        except CliError as e:
            raise NotSupportedError(_message(e)) from e
        if not target.embedded and target.current_key() is None:
            login = f"qd auth login --profile {quote(name)}"
            raise NotSupportedError(f"There is no key for {name}. Get one with: {login}.")
        self._target = target
        return service_of(target)

    def add(self, name: str, address: str, key: str | None) -> None:
        """Add a profile to the configuration file; store the key as `qd auth login` does."""
        try:
            add_profile(self.file, name, address, key, stored_key_path(self._target.home, name))
        except CliError as e:
            raise NotSupportedError(_message(e)) from e

    def _find(self, name: str) -> Target:
        named = any(
            profile.name == name and profile.shown != _LOCAL_SERVICE for profile in self.known()
        )
        return find_target(name) if named else embedded_target()

    def keep(self, name: str, value: str | bool) -> None:
        """Set a value of the table `[cockpit]` in the configuration file."""
        try:
            change_config(self.file, ("cockpit", name), value)
        except CliError as e:
            raise NotSupportedError(_message(e)) from e

    async def make_key(self, name: str) -> str:
        """Create a personal key with a new user token: a key cannot create keys."""
        if not self._target.embedded:
            raise NotSupportedError(
                "Create a key on the service's machine, or after a login:"
                f" qd --profile {self.current} keys create."
            )
        async with self._target.client() as client:
            token = await client.auth.login(lambda _: None)
        async with self._target._replace(key=token.access_token).client() as own:
            return (await own.api_keys.create(name)).key

    async def install(self, agent: str, tell: Callable[[str], None]) -> None:
        """Run `qd agents install`, as a person would."""
        process = await asyncio.create_subprocess_exec(
            # -P: a directory named quarterdeck in the current directory must not be imported.
            *(sys.executable, "-P", "-m", "quarterdeck", "agents", "install", agent),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        # The last lines: npm's output, the exit status, and the next step.
        last: deque[str] = deque(maxlen=3)
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                if text := line.decode(errors="replace").strip():
                    last.append(text)
                    tell(text)
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
        if code != 0:
            raise NotSupportedError(" ".join(last) or f"qd agents install: exit status {code}.")


def _message(error: CliError) -> str:
    return f"{error.message} {error.next_step or ''}".strip()


PALETTE = (
    "CommandListItem",
    "CommandPalette",
    "DiscoveryHit",
    "Hit",
    "Hits",
    "Provider",
    "SimpleProvider",
)
"""What Textual imports from its own command palette, which the cockpit does not use."""

CANNOT_DRAW = ("dumb", "unknown")
"""Values of TERM for terminals that show control sequences as text."""


def load_less() -> None:
    """Keep widgets out of the start that Textual imports for names alone; 6 ms."""
    load_later("textual.types", light="textual._types")
    load_later("textual.command", instead=dict.fromkeys(PALETTE, object))


def open_cockpit(profile: str | None = None) -> int:
    """Open the cockpit; closing it does not stop the service.

    Returns:
        The exit code.

    Raises:
        UsageError: there is no terminal, or it does not support control sequences.
        ConfigError: there is no key for the remote service.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The cockpit needs a terminal.",
            "Use qd --plain, which reads lines, or a command: qd --help lists them.",
        )
    term = os.environ.get("TERM")
    if term in CANNOT_DRAW:
        raise UsageError(
            f"The cockpit cannot be drawn on this terminal: TERM is {term}.",
            "Set TERM to what the terminal is, such as TERM=xterm-256color, or use qd --plain, which"
            " prints lines of text.",
        )
    target = find_target_with_key(profile)
    gc.disable()  # until the cockpit is open: most of what its start makes stays
    load_less()
    from quarterdeck.tui.app import run

    service = service_of(target)
    return run(
        service,
        drafts=target.home.client,
        directory=find_checkout(Path.cwd()),
        options=read_cockpit_file(config_path()),
        surroundings=LocalMachine(target),
    )
