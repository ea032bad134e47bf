"""Pull requests of replicas, as on their source hosts.

    the replica on the screen -> read every minute -> ReplicaState.pull_requests -> row, head
    dialog -> read, create, merge                  -> the same

Only the replica on the screen is read: hosts limit requests.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError, RateLimitedError, ResponseError
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import Change, KeyedTasks, ListChanged, ReplicaChanged

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.git import MergeMethod, OpenPullRequest, PullRequestDetail


REFRESH_SECONDS = 60.0
"""Time between two reads of the open pull requests of the replica on the screen."""
SETTLE_SECONDS = 0.3
"""Time on the screen before the first read, so that moving the cursor causes no requests."""
_TASK = "pull requests"

log = logging.getLogger(__name__)


class PullRequestStore:
    """Reads, opens and merges pull requests; keeps those of the replica on the screen up to date.

    The coroutines raise `ClientError` when the service or the host refuses.
    """

    def __init__(self, owner: "AppState", tasks: KeyedTasks) -> None:
        self._owner = owner
        self._tasks = tasks
        self._shown: ReplicaState | None = None
        self._read_urls: list[str] = []
        """URLs of the pull requests that were known when the read started."""
        owner.changed.watch(self._changed)

    def look_at(self, state: ReplicaState | None) -> None:
        """Keep only the pull requests of this replica up to date."""
        self._tasks.stop(_TASK)
        self._shown = state
        self._start()

    def _start(self) -> None:
        state = self._shown
        if state is not None and state.pull_request_urls:
            self._read_urls = state.pull_request_urls
            self._tasks.start(_TASK, self._refresh(state))

    def _changed(self, change: Change) -> None:
        state = self._shown
        if not isinstance(change, ReplicaChanged) or state is None or change.replica_id != state.id:
            return
        if state.pull_request_urls != self._read_urls:
            self._tasks.stop(_TASK)
            self._start()

    async def _refresh(self, state: ReplicaState) -> None:
        await asyncio.sleep(SETTLE_SECONDS)
        while state.id in self._owner.replicas:
            pause = REFRESH_SECONDS
            try:
                pulls = await self.read(state.id)
            except RateLimitedError as error:
                pause = max(pause, error.retry_after or 0)
            except ResponseError as error:
                # The known ones stay on the screen; the dialog shows the error.
                log.info("pull requests of %s could not be read: %s", state.id, error)
            except ClientError as error:
                self._owner.connection_lost(error)
            else:
                if not any(pull.state == "open" for pull in pulls):
                    return
            await asyncio.sleep(pause)

    async def read(self, replica_id: UUID) -> "list[PullRequestDetail]":
        """Return the pull requests of a replica as their hosts have them now."""
        pulls = await self._owner.client.pull_requests.list(replica_id)
        self._take(replica_id, pulls)
        return pulls

    async def create(self, replica_id: UUID, body: "OpenPullRequest") -> "PullRequestDetail":
        """Push the branch and open a pull request of it; return the open one if there is one."""
        pull = await self._owner.client.pull_requests.create(
            replica_id,
            body.repository,
            title=body.title,
            body=body.body,
            base=body.base,
            draft=body.draft,
        )
        self._take_one(replica_id, pull)
        return pull

    async def merge(
        self, replica_id: UUID, pull: "PullRequestDetail", method: "MergeMethod"
    ) -> "PullRequestDetail":
        """Merge a pull request, if its branch still has the commit that was shown."""
        merged = await self._owner.client.pull_requests.merge(
            replica_id, pull.number, method, repository=pull.repository, head_sha=pull.head_sha
        )
        self._take_one(replica_id, merged)
        return merged

    async def ask_to_fix(self, replica_id: UUID, pulls: "Iterable[PullRequestDetail]") -> bool:
        """Send the agent the failed checks of pull requests; return whether there is a chat.

        Raises:
            ClientError: the service refused the message.
            OSError: the message could not be saved to disk, so it was not sent.
        """
        state = self._owner.replicas.get(replica_id)
        chat = state.chat_to_show if state is not None else None
        if chat is None:
            return False
        text = "\n\n".join(fix_message(pull) for pull in pulls)
        await self._owner.outbox.send(replica_id, chat.id, text)
        return True

    def _take_one(self, replica_id: UUID, pull: "PullRequestDetail") -> None:
        state = self._owner.replicas.get(replica_id)
        known = (state.pull_requests if state is not None else None) or []
        others = [
            other
            for other in known
            if (other.repository, other.number) != (pull.repository, pull.number)
        ]
        self._take(replica_id, [pull, *others])

    def _take(self, replica_id: UUID, pulls: "list[PullRequestDetail]") -> None:
        state = self._owner.replicas.get(replica_id)
        if state is not None and state.pull_requests != pulls:
            state.pull_requests = pulls
            self._owner.publish(ReplicaChanged(replica_id))
            self._owner.publish(ListChanged())


def left_out(
    state: ReplicaState | None, repository: str, pull: "PullRequestDetail | None" = None
) -> list[str]:
    """Return what is in the replica and not part of a pull request, as sentences."""
    git = state.repository(repository) if state is not None else None
    if git is None:
        return []
    words: list[str] = []
    left = git.uncommitted.files if git.uncommitted else 0
    if left:
        words.append(f"{left} uncommitted {'file is' if left == 1 else 'files are'} not included.")
    if pull is not None and git.branch == pull.head and pull.head_sha not in (None, git.head):
        words.append("Unpushed commits are not included.")
    return words


def fix_message(pull: "PullRequestDetail") -> str:
    """Return the message that names the failed checks of a pull request to the agent."""
    named = "\n".join(
        f"- {_line(check.name)}" + (f": {_line(check.url)}" if check.url else "")
        for check in pull.checks.failed
    )
    return (
        f"These checks of pull request #{pull.number} of {_line(pull.repository)}"
        f" ({_line(pull.url)}) have failed:\n\n{named}\n\n"
        "Find the causes and fix them, run the checks here as far as possible, commit, and push"
        f" {_line(pull.head)} so that they run again."
    )


def _line(text: str) -> str:
    """Return text of a host as a part of one line, without code quotes."""
    return " ".join(text.replace("`", "'").split())
