"""The services that a cockpit connects to: the one in use, and those that are shown beside it."""

from shlex import quote
from typing import TYPE_CHECKING

from quarterdeck.cli.background import service_starter
from quarterdeck.cli.errors import CliError
from quarterdeck.cli.target import (
    LOCAL,
    PROFILE_VARIABLE,
    URL_VARIABLE,
    Target,
    config_path,
    find_target_beside,
    profile_endpoint,
)
from quarterdeck.client.errors import InvalidKeyError, NoKeyError
from quarterdeck.store.service_choice import ServiceChoice

if TYPE_CHECKING:
    from quarterdeck.client import Client


def service_of(target: Target) -> ServiceChoice:
    """Return a service for the cockpit."""
    return ServiceChoice(
        target.client, target.label, service_starter(target), target.name, target.git_variables
    )


def services_beside(target: Target) -> list[ServiceChoice]:
    """Return the services of the profiles with `shown = true` beside the one in use, each address once.

    A configuration file that cannot be read has none: who needs it says why.
    """
    if not config_path().exists():
        return []
    from quarterdeck.cli.schema import read_config

    try:
        profiles = read_config(config_path()).profiles
    except CliError:
        return []
    taken = {target.endpoint}
    found: list[ServiceChoice] = []
    for name, profile in profiles.items():
        endpoint = profile_endpoint(profile)
        if profile.shown and endpoint not in taken:
            taken.add(endpoint)
            label = LOCAL if profile.embedded else endpoint
            found.append(_BesideService(name, label, endpoint).choice)
    return found


class _BesideService:
    """A service shown beside the one in use: its key is found in the background, when it is first needed."""

    def __init__(self, name: str, label: str, endpoint: str) -> None:
        self._name = name
        self._target: Target | None = None
        embedded = {PROFILE_VARIABLE: "", URL_VARIABLE: endpoint}
        variables = embedded if label == LOCAL else {PROFILE_VARIABLE: name}
        self.choice = ServiceChoice(self._client, label, self._revive, name, variables)

    async def _revive(self, wanted: bool) -> str | None:
        if self._target is None:
            self._target = await self._find()
        start = service_starter(self._target)
        return await start(wanted) if start is not None else None

    async def _find(self) -> Target:
        login = f"Get one with: qd auth login --profile {quote(self._name)}."
        try:
            target = await find_target_beside(self._name)
            if target.embedded or target.current_key() is not None:
                return target
        except CliError as e:
            raise NoKeyError(e.message, next_step=e.next_step or login) from e
        raise NoKeyError(f"There is no key for {self._name}.", next_step=login)

    def _client(self) -> "Client":
        assert self._target is not None, "a service is made available before its client is created"
        try:
            return self._target.client()
        except InvalidKeyError:
            self._target = None  # the next try finds the key again
            raise
