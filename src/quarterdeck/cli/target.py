"""The service that a verb uses, the path of the configuration file, and the keys of `qd auth login`.

--profile NAME  >  QD_PROFILE  >  QD_URL (+ QD_API_KEY)  >  `default` of the file  >  the embedded service
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from quarterdeck.cli.errors import ConfigError, NoServiceError
from quarterdeck.local.files import make_private_directory, read_file, write_file
from quarterdeck.local.home import HOME_VARIABLE, Home, find_home
from quarterdeck.local.trust import make_private, why_untrusted

if TYPE_CHECKING:
    from quarterdeck.cli.schema import Profile
    from quarterdeck.client import Client, WireNames


def config_path() -> Path:
    """Return `config.toml` in `QUARTERDECK_HOME`, else in the platform's configuration directory."""
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser().absolute() / "config.toml"
    from platformdirs import user_config_path  # slow to import, rarely needed

    return user_config_path("quarterdeck", appauthor=False) / "config.toml"


def own_home() -> Home:
    """Return the home of this user.

    Raises:
        ConfigError: another user could have written there.
    """
    home = find_home()
    for directory in (home.root, home.service):
        if why := why_untrusted(directory):
            raise ConfigError(f"{directory} {why}, so it is not used.", make_private(directory))
    return home


def stored_key_path(home: Home, profile: str) -> Path:
    """Return the file of a profile's key."""
    return home.client / "keys" / quote(profile, safe="")


def read_stored_key(path: Path) -> str | None:
    """Return the stored key, or None.

    Raises:
        ConfigError: it exists and cannot be read.
    """
    try:
        return read_file(path).decode().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"The key in {path} cannot be read: {e}.", "Remove the file.") from e


def delete_stored_key(path: Path) -> None:
    """Delete the stored key, if there is one.

    Raises:
        ConfigError: the file cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise ConfigError(f"The key in {path} cannot be removed: {e.strerror}.") from e


def store_key(path: Path, key: str) -> None:
    """Store a key in a file that only its owner can read.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        make_private_directory(path.parent)
        write_file(path, key + "\n")
    except OSError as e:
        raise ConfigError(f"The key cannot be kept in {path}: {e.strerror}.") from e


URL_VARIABLE = "QD_URL"
KEY_VARIABLE = "QD_API_KEY"
PROFILE_VARIABLE = "QD_PROFILE"
LOCAL = "local"
"""The name of the embedded service, unless a profile has this name."""
KEY_SECONDS = 60.0
"""Time limit of a key command, which may prompt a person."""


class Target(NamedTuple):
    """A service: its address, its key, and whether it is the embedded one of this home.

    `key_file` is the file in which `qd auth login` stores a key, for a profile without a key setting.
    """

    name: str
    url: str | None
    socket: Path | None
    key: str | None
    home: Home
    embedded: bool = False
    organization: str | None = None
    key_file: Path | None = None
    names: "WireNames | None" = None

    @property
    def endpoint(self) -> str:
        """The address to show."""
        from quarterdeck.local.addresses import without_password  # slow to load

        return f"unix:{self.socket}" if self.socket else without_password(self.url or "")

    @property
    def label(self) -> str:
        """The name under which the cockpit keeps data of this service."""
        return LOCAL if self.embedded else self.endpoint

    @property
    def git_variables(self) -> Mapping[str, str]:
        """Variables that select a profile by its name, or the embedded service by its socket."""
        if self.embedded:
            return {PROFILE_VARIABLE: "", URL_VARIABLE: f"unix:{self.home.socket}"}
        return {} if self.name == URL_VARIABLE else {PROFILE_VARIABLE: self.name}

    def client(self, timeout: float = 30.0) -> "Client":
        """Return a client of this service. The caller closes it."""
        from quarterdeck.client import LOCAL_URL, NEUTRAL, Client, HttpConnection

        connection = HttpConnection(
            self.url or LOCAL_URL,
            self.current_key(),
            socket=self.socket,
            names=self.names or NEUTRAL,
            organization=self.organization,
            timeout=timeout,
        )
        return Client(connection)

    def current_key(self) -> str | None:
        """Return the key; that of the embedded service is read again, as its first start creates it."""
        if self.key is not None:
            return self.key
        if self.key_file is not None:
            return read_stored_key(self.key_file)
        return read_key(self.home) if self.embedded else None


def read_key(home: Home) -> str | None:
    """Return the key of the embedded service's owner, or None before its first start.

    Raises:
        NoServiceError: it exists and cannot be read.
    """
    try:
        return read_file(home.key).decode().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise NoServiceError(
            f"The key in {home.key} cannot be read: {e}.",
            "Run qd as the user who owns this home, or set QD_API_KEY.",
        ) from e


def find_target(profile: str | None, *, may_ask: bool = True) -> Target:
    """Return the selected service.

    Args:
        profile: its name in the configuration file.
        may_ask: whether a key command may run, which may prompt a person.

    Raises:
        ConfigError: the file, the profile's name, a variable or a key command is wrong.
    """
    home = own_home()
    profile = profile or os.environ.get(PROFILE_VARIABLE) or None
    address = os.environ.get(URL_VARIABLE)
    if profile is None and address:
        return _from_address(address, home)
    chosen = _profile(profile)
    if chosen is None or chosen[1].embedded:
        return embedded_target()
    if chosen[1].key_command is not None and not may_ask:
        raise ConfigError(f"The key_command of profile {chosen[0]!r} is not run here.")
    return _from_profile(*chosen, home, _key_of(*chosen))


async def find_target_beside(profile: str) -> Target:
    """Return a service that is shown beside the one in use.

    `QD_API_KEY` is the key of the service in use and is sent to no other. A key command gets no terminal,
    and is killed when this is canceled.

    Raises:
        ConfigError: the file, the profile's name, a variable or a key command is wrong.
    """
    chosen = _profile(profile)
    if chosen is None or chosen[1].embedded:
        return embedded_target()._replace(key=None)
    name, found = chosen
    if found.key_command is not None:
        key = await _key_beside(name, found.key_command)
    elif found.key_variable is not None:
        key = _key_of(name, found)
    else:
        key = found.key
    return _from_profile(name, found, own_home(), key)


def find_target_with_key(profile: str | None) -> Target:
    """Return the service for a cockpit.

    Raises:
        ConfigError: there is no key for the remote service.
    """
    target = find_target(profile)
    if not target.embedded and target.key is None:
        raise ConfigError(
            f"There is no key for {target.endpoint}.", "Set QD_API_KEY or the profile's key."
        )
    return target


def embedded_target() -> Target:
    """Return the service of this home."""
    home = own_home()
    key = os.environ.get(KEY_VARIABLE) or None
    return Target(LOCAL, None, home.socket, key, home, embedded=True)


def _from_address(address: str, home: Home) -> Target:
    key = os.environ.get(KEY_VARIABLE) or None
    if address.startswith("unix:"):
        path = Path(address.removeprefix("unix:")).absolute()
        return Target(URL_VARIABLE, None, path, key, home, embedded=path == home.socket)
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"Invalid URL in {URL_VARIABLE}: {address!r}.",
            "Set it to http://HOST:PORT, https://HOST or unix:PATH.",
        )
    return Target(URL_VARIABLE, address, None, key, home)


def _profile(name: str | None) -> "tuple[str, Profile] | None":
    path = config_path()
    if name is None and not path.exists():
        return None
    from quarterdeck.cli.schema import read_config  # pydantic is only needed for a file

    config = read_config(path)
    name = name or config.default
    if name is None:
        return None
    if name not in config.profiles:
        known = ", ".join(config.profiles) or "none"
        raise ConfigError(
            f"{path} has no profile {name!r} (there is: {known}).",
            f"Add a table [profiles.{name}] with a url and a key.",
        )
    return name, config.profiles[name]


def _from_profile(name: str, profile: "Profile", home: Home, key: str | None) -> Target:
    from quarterdeck.client.names import WireNames

    names_key = any((profile.key, profile.key_command, profile.key_variable))
    return Target(
        name=name,
        url=profile.url,
        socket=_socket_path(profile),
        key=key,
        home=home,
        organization=profile.organization,
        key_file=None if names_key else stored_key_path(home, name),
        names=WireNames(**profile.names.model_dump(exclude_none=True)),
    )


def _socket_path(profile: "Profile") -> Path | None:
    return Path(profile.socket).expanduser().absolute() if profile.socket else None


def profile_endpoint(profile: "Profile") -> str:
    """Return the `Target.endpoint` of a profile, without finding its key."""
    socket = find_home().socket if profile.embedded else _socket_path(profile)
    return f"unix:{socket}" if socket is not None else profile.url or ""


def _key_of(name: str, profile: "Profile") -> str | None:
    if profile.key is not None:
        return profile.key
    if profile.key_command is not None:
        return _run_key_command(name, profile.key_command)
    variable = profile.key_variable or KEY_VARIABLE
    key = os.environ.get(variable) or None
    if key is None and profile.key_variable is not None:
        raise ConfigError(
            f"Profile {name!r} takes its key from the variable {variable}, which is not set.",
            f"Set {variable}.",
        )
    return key


def _run_key_command(name: str, command: list[str]) -> str:
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, timeout=KEY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as e:
        raise _failed_key_command(name, e) from e
    return _printed_key(name, process.stdout)


async def _key_beside(name: str, command: list[str]) -> str:
    import asyncio  # slow to import, and no other verb needs it for a key

    from quarterdeck.local.processes import end_process

    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as e:
        raise _failed_key_command(name, e) from e
    try:
        async with asyncio.timeout(KEY_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError as e:
        raise _failed_key_command(name, subprocess.TimeoutExpired(command, KEY_SECONDS)) from e
    finally:
        await end_process(process)  # with what it has started, such as gpg
    if process.returncode:
        raise _failed_key_command(name, subprocess.CalledProcessError(process.returncode, command))
    return _printed_key(name, printed)


def _failed_key_command(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"The key command of profile {name!r} failed: {error}.", "Run it by hand to see why."
    )


def _printed_key(name: str, printed: bytes) -> str:
    try:
        key = printed.decode().strip()
    except UnicodeDecodeError as e:
        raise _failed_key_command(name, e) from e
    if not key:
        raise ConfigError(f"The key command of profile {name!r} printed no key.")
    return key
