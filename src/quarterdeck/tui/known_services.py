"""The services that the cockpit can connect to, and what else it asks of its machine.

Apart from `host_services` because it is imported before the first frame.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from quarterdeck.store.service_choice import ServiceChoice


class NotSupportedError(Exception):
    """The operation is not possible; the text says why and what to do."""


class KnownService(NamedTuple):
    """A named service; `shown` is its displayed address, `beside` whether it is to be shown beside the one in use.

    `repeated`: it has the address of another one that is shown.
    """

    name: str
    shown: str
    beside: bool = False
    repeated: bool = False


class Surroundings(Protocol):
    """Methods raise `NotSupportedError`."""

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

    def known(self) -> list[KnownService]:
        """Return all services that can be connected to."""
        ...

    async def connect(self, name: str) -> ServiceChoice:
        """Connect to another service, from now on the current one. May run a key's command."""
        ...

    def beside(self) -> list[ServiceChoice]:
        """Return the services to show beside the current one. Their keys are found when they are run."""
        ...

    def show_beside(self, name: str, shown: bool) -> None:
        """Write whether a service is shown beside others into the configuration file."""
        ...

    def add(self, name: str, address: str, key: str | None) -> None:
        """Add a service under an unused name."""
        ...

    def keep(self, name: str, value: str | bool) -> None:
        """Write a setting of the cockpit into the configuration file."""
        ...

    async def make_key(self, name: str) -> str:
        """Create an API key for the user, and return its text."""
        ...

    async def install(self, agent: str, tell: Callable[[str], None]) -> None:
        """Install an agent on this machine, reporting each line that is printed meanwhile."""
        ...
