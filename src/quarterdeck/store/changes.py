"""What changes at the service beside what replicas report: automations, their runs, and the list of replicas.

    stream opened -> automations read, if there are any -> events applied

The stream is opened before anything is read, so no change is missed. The modules for automations are
imported when there are some: they take long to import, and many people have none.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from quarterdeck.client.errors import ClientError, ForbiddenError, NotFoundError, UnauthorizedError
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Malformed, Received
from quarterdeck.wire.events import AutomationEventType

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.events import Event

log = logging.getLogger(__name__)


class ChangeFeed:
    """Follows the changes of one service. `live` is whether they are reported as they happen."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner
        self.live = False
        self._reconnect: Callable[[], None] | None = None

    async def run(self) -> None:
        """Follow until canceled, or until the service refuses."""
        try:
            await self._follow()
        except NotFoundError:
            log.info("this service does not send events of automations")
        except (UnauthorizedError, ForbiddenError) as error:
            self._failed(error)
            self._owner.refused(error)
        except ClientError as error:
            self._failed(error)
        finally:
            self.live = False
            self._reconnect = None

    def reconnect_now(self) -> None:
        """Do not wait for the next try."""
        if self._reconnect is not None:
            self._reconnect()

    async def _follow(self) -> None:
        stream = self._owner.client.changes.stream()
        self._reconnect = stream.reconnect_now
        async with stream:
            async for item in stream:
                match item:
                    case Received(_, event):
                        await self._apply(event)
                    case ConnectionLost(error, _):
                        self.live = False
                        self._owner.connection_lost(error)
                    case ConnectionRestored(resumed):
                        await self._try(self._catch_up(resumed))
                        self.live = True
                    case Malformed(error):
                        log.warning("an event of automations could not be read: %s", error)

    async def _catch_up(self, resumed: bool) -> None:
        automations = self._owner.known_automations
        if automations is None and await self._owner.client.changes.has_automations():
            automations = self._owner.automations
        if automations is not None:
            await automations.catch_up(resumed)

    async def _apply(self, event: "Event") -> None:
        if event.type == AutomationEventType.REPLICA_CHANGED:
            self._apply_replica(event.payload)
        elif (automations := self._owner.known_automations) is None:
            await self._try(self._owner.automations.catch_up(resumed=False))
        else:
            await self._try(automations.apply(event))

    def _apply_replica(self, payload: dict[str, Any]) -> None:
        if (changed := read_id(payload.get("replica_id"))) is not None:
            known = self._owner.replicas.get(changed)
            if payload.get("status") != (known and known.status):
                self._owner.refresh_soon()

    async def _try(self, reading: Awaitable[None]) -> None:
        """Await a reading; a failed one is repeated when the connection is restored."""
        try:
            await reading
        except (UnauthorizedError, ForbiddenError):
            raise
        except ClientError as error:
            self._owner.connection_lost(error)

    def _failed(self, error: ClientError) -> None:
        log.warning("the changes of the service cannot be followed: %s", error)
        if (automations := self._owner.known_automations) is not None:
            automations.failed(error)


def read_id(value: Any) -> UUID | None:
    """Return the id in a payload, or None when it is none."""
    try:
        return UUID(value)
    except (TypeError, ValueError, AttributeError):
        return None
