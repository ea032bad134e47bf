"""What the cockpit asks of whoever opened it: services to go to, and what lies on this machine."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.lookout import Revive


class NotPossible(Exception):
    """It cannot be done; the text says why and what to do."""


@dataclass(frozen=True)
class Service:
    """A service that the cockpit can be opened on."""

    client: "Callable[[], Client]"
    endpoint: str
    revive: "Revive | None"


@dataclass(frozen=True)
class Known:
    """A service that can be named; `shown` is its address for a person."""

    name: str
    shown: str


class Surroundings(Protocol):
    """Methods raise `NotPossible`."""

    @property
    def current(self) -> str:
        """The name of the service that the cockpit is on."""
        ...

    @property
    def file(self) -> Path:
        """The configuration file."""
        ...

    @property
    def own_machine(self) -> bool:
        """Whether the service runs here and is ours: then agents can be installed for it."""
        ...

    def known(self) -> list[Known]:
        """All services that can be gone to."""
        ...

    async def connect(self, name: str) -> Service:
        """Another service, which is the current one from now on. May ask a key's command."""
        ...

    def add(self, name: str, address: str, key: str | None) -> None:
        """Makes a service known under a name that none has."""
        ...

    def keep(self, name: str, value: str | bool) -> None:
        """Writes a setting of the cockpit into the configuration file."""
        ...

    async def make_key(self, name: str) -> str:
        """Makes an API key for the person, and answers its text."""
        ...

    async def install(self, agent: str, tell: Callable[[str], None]) -> None:
        """Installs an agent on this machine, telling each line that is printed meanwhile."""
        ...
