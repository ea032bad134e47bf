"""Which replicas are followed by an event stream: those that can change by themselves.

A replica at rest changes only by somebody's command; the look at the list sees that. So it has no
stream, unless it is on the screen.
"""

from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.client.errors import ClientError, Forbidden, NotFound, Unauthorized
from quarterdeck.store.feed import FeedOwner, ReplicaFeed
from quarterdeck.store.replicas import RUNNING, ReplicaState
from quarterdeck.store.tasks import Tasks

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


class FollowingOwner(FeedOwner, Protocol):
    """What following needs of the deck, besides what a feed tells it."""

    @property
    def client(self) -> "Client": ...

    def gone(self, replica_id: UUID, *, elsewhere: bool = True) -> None: ...

    def refused(self, error: ClientError) -> None: ...


class Following:
    """The feeds of an installation's replicas, at most one each."""

    def __init__(self, tasks: Tasks, owner: FollowingOwner) -> None:
        self._tasks = tasks
        self._owner = owner
        self._feeds: dict[UUID, ReplicaFeed] = {}

    def feed(self, replica_id: UUID) -> ReplicaFeed | None:
        """The feed of a replica, if it is followed."""
        return self._feeds.get(replica_id)

    def review(self, state: ReplicaState) -> None:
        """Follows a replica that needs it, and leaves one that does not any more."""
        if state.status in RUNNING or self._owner.looks_at(state.id):
            self.follow(state)
        else:
            self.leave(state.id)

    def follow(self, state: ReplicaState) -> None:
        """Follows a replica, whatever its state."""
        if state.id in self._feeds:
            return
        feed = ReplicaFeed(self._owner.client, state, self._owner)
        self._feeds[state.id] = feed
        self._tasks.start(("feed", state.id), self._run(state.id, feed))

    def leave(self, replica_id: UUID) -> None:
        """Follows a replica no longer."""
        if self._feeds.pop(replica_id, None) is not None:
            self._tasks.stop(("feed", replica_id))

    def reconnect_now(self) -> None:
        """Every feed tries again at once."""
        for feed in self._feeds.values():
            feed.reconnect_now()

    async def _run(self, replica_id: UUID, feed: ReplicaFeed) -> None:
        try:
            await feed.run()
        except NotFound:
            self._owner.gone(replica_id)
        except (Unauthorized, Forbidden) as error:
            self._owner.refused(error)
        except ClientError as error:
            self._owner.line_lost(error)
        finally:
            if self._feeds.get(replica_id) is feed:
                del self._feeds[replica_id]
