"""Which service a verb talks to.

--profile NAME  >  QD_URL (+ QD_API_KEY)  >  `default` of the file  >  the embedded service
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import ConfigFault, NoService
from quarterdeck.cli.kept_keys import kept_key_path, read_kept_key
from quarterdeck.local.home import Home, find_home

if TYPE_CHECKING:
    from quarterdeck.cli.config import Profile
    from quarterdeck.client import Client, WireNames

URL_VARIABLE = "QD_URL"
KEY_VARIABLE = "QD_API_KEY"
KEY_SECONDS = 60.0
"""A key command may ask a person something."""


@dataclass(frozen=True)
class Target:
    """A service: its address, its key, and whether it is the embedded one of this home.

    `kept` is where `qd auth login` keeps a key, on a profile that does not say where its key is.
    """

    name: str
    url: str | None
    socket: Path | None
    key: str | None
    home: Home
    embedded: bool = False
    organization: str | None = None
    kept: Path | None = None
    names: "WireNames | None" = None

    @property
    def endpoint(self) -> str:
        """The address for a person."""
        return f"unix:{self.socket}" if self.socket else self.url or ""

    def client(self, timeout: float = 30.0) -> "Client":
        """A client of this service. The caller closes it."""
        from quarterdeck.client import LOCAL_URL, NEUTRAL, Client, Connection

        connection = Connection(
            self.url or LOCAL_URL,
            self.current_key(),
            socket=self.socket,
            names=self.names or NEUTRAL,
            organization=self.organization,
            timeout=timeout,
        )
        return Client(connection)

    def current_key(self) -> str | None:
        """The key; that of the embedded service is read anew, as it is made at its first start."""
        if self.key is not None:
            return self.key
        if self.kept is not None:
            return read_kept_key(self.kept)
        return read_key(self.home) if self.embedded else None


def read_key(home: Home) -> str | None:
    """The key of the embedded service's owner, or None before its first start.

    Raises:
        NoService: it is there and cannot be read.
    """
    try:
        return home.key.read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise NoService(
            f"The key in {home.key} cannot be read: {e.strerror}.",
            "Run qd as the user who owns this home, or set QD_API_KEY.",
        ) from e


def find_target(profile: str | None) -> Target:
    """The service that is meant.

    Raises:
        ConfigFault: the file, the profile's name, a variable or a key command is wrong.
    """
    home = find_home()
    address = os.environ.get(URL_VARIABLE)
    if profile is None and address:
        return _from_address(address, home)
    chosen = _profile(profile)
    return embedded_target() if chosen is None else _from_profile(*chosen, home)


def embedded_target() -> Target:
    """The service of this home."""
    home = find_home()
    key = os.environ.get(KEY_VARIABLE) or None
    return Target("local", None, home.socket, key, home, embedded=True)


def _from_address(address: str, home: Home) -> Target:
    key = os.environ.get(KEY_VARIABLE) or None
    if address.startswith("unix:"):
        path = Path(address.removeprefix("unix:")).absolute()
        return Target(URL_VARIABLE, None, path, key, home, embedded=path == home.socket)
    if not address.startswith(("http://", "https://")):
        raise ConfigFault(
            f"{URL_VARIABLE} is {address!r}, which is no address.",
            "Set it to http://HOST:PORT, https://HOST or unix:PATH.",
        )
    return Target(URL_VARIABLE, address, None, key, home)


def _profile(name: str | None) -> "tuple[str, Profile] | None":
    path = config_path()
    if name is None and not path.exists():
        return None
    from quarterdeck.cli.config import read_config  # pydantic is only needed for a file

    config = read_config(path)
    name = name or config.default
    if name is None:
        return None
    if name not in config.profiles:
        known = ", ".join(config.profiles) or "none"
        raise ConfigFault(
            f"{path} has no profile {name!r} (there is: {known}).",
            f"Add a table [profiles.{name}] with a url and a key.",
        )
    return name, config.profiles[name]


def _from_profile(name: str, profile: "Profile", home: Home) -> Target:
    from quarterdeck.client.names import WireNames

    return Target(
        name=name,
        url=profile.url,
        socket=Path(profile.socket).expanduser().absolute() if profile.socket else None,
        key=_key_of(name, profile),
        home=home,
        organization=profile.organization,
        kept=None if _says_its_key(profile) else kept_key_path(home, name),
        names=WireNames(**profile.names.model_dump(exclude_none=True)),
    )


def _says_its_key(profile: "Profile") -> bool:
    return any((profile.key, profile.key_command, profile.key_variable))


def _key_of(name: str, profile: "Profile") -> str | None:
    if profile.key is not None:
        return profile.key
    if profile.key_command is not None:
        return _run_key_command(name, profile.key_command)
    variable = profile.key_variable or KEY_VARIABLE
    key = os.environ.get(variable) or None
    if key is None and profile.key_variable is not None:
        raise ConfigFault(
            f"Profile {name!r} takes its key from the variable {variable}, which is not set.",
            f"Set {variable}.",
        )
    return key


def _run_key_command(name: str, command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=KEY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise ConfigFault(
            f"The key command of profile {name!r} failed: {e}.", "Run it by hand to see why."
        ) from e
    key = done.stdout.strip()
    if not key:
        raise ConfigFault(f"The key command of profile {name!r} printed no key.")
    return key
