"""The state of replicas in the cockpit."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.store.chats import ChatState
from quarterdeck.store.hooks import HookWatch
from quarterdeck.store.signals import ReplicaChanged
from quarterdeck.store.status import Attention, attention_of
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.git_state import EventRepository, RepositoryStatus
from quarterdeck.wire.previews import Preview
from quarterdeck.wire.replicas import Replica, ReplicaDetail, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.git import PullRequestDetail


RUNNING = {WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING}

NO_ISOLATION = "none"
SHORT_CONTEXT = 80
"""Percent of the context from which it is nearly full."""


@dataclass
class ReplicaState:
    """State of a replica. `record` is the last one read, updated by events since."""

    record: ReplicaDetail
    chats: dict[UUID, ChatState] = field(default_factory=dict[UUID, ChatState])
    seen_at: datetime | None = None
    done_at: datetime | None = None
    detailed: bool = False
    untracked: int = 0
    hooks: HookWatch = field(default_factory=HookWatch)
    previews: list[Preview] | None = None
    """Ports with a preview; None until they are read, or an event reports them."""
    shown_chat: UUID | None = None
    """The chat that was shown last."""
    pull_requests: "list[PullRequestDetail] | None" = None
    """Pull requests of its branches, as last read from the hosts; None until then."""
    programs: list[str] = field(default_factory=list[str])
    """What ran in its terminals when that was last read: before something stops it."""
    environment_read: bool = False
    """Whether its environment was requested; the service may have returned none."""
    service: str = ""
    """The name of its service."""
    beside: bool = False
    """Whether its service is shown beside the one in use, and so named with the replica."""

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def full_name(self) -> str:
        """Its name, with that of its service unless that is in use: `work/fix-login`."""
        return f"{self.service}/{self.name}" if self.beside else self.name

    @property
    def status(self) -> str:
        return self.record.status

    @property
    def asks(self) -> bool:
        return any(chat.record.awaiting_input for chat in self.chats.values())

    @property
    def plans(self) -> bool:
        """Whether a plan waits for the person's approval."""
        if not self.chats:
            return self.record.plan_ready
        return any(chat.plan_waits for chat in self.chats.values())

    @property
    def works(self) -> bool:
        return any(chat.record.processing for chat in self.chats.values())

    @property
    def unseen(self) -> bool:
        """Whether a turn ended since the person last looked."""
        if self.done_at is None:
            return False
        return self.seen_at is None or self.done_at > self.seen_at

    @property
    def attention(self) -> Attention:
        return attention_of(
            self.status,
            asks=self.asks,
            plans=self.plans,
            works=self.works,
            unseen=self.unseen,
            failed=any(chat.last_turn_failed for chat in self.chats.values()),
        )

    @property
    def active(self) -> bool:
        return self.status == WorkspaceStatus.ACTIVE

    @property
    def first_chat(self) -> ChatState | None:
        """The chat created with the replica."""
        return min(self.chats.values(), key=lambda chat: chat.record.created_at, default=None)

    @property
    def ordered_chats(self) -> list[ChatState]:
        """All chats, the oldest first: the order of their tabs."""
        return sorted(self.chats.values(), key=lambda chat: (chat.record.created_at, str(chat.id)))

    @property
    def chat_to_show(self) -> ChatState | None:
        """The chat that asks a question, else the one shown last, else the first."""
        asking = next((chat for chat in self.ordered_chats if chat.record.awaiting_input), None)
        known = self.chats.get(self.shown_chat) if self.shown_chat else None
        return asking or known or self.first_chat

    @property
    def newest_title(self) -> str:
        """Title of the chat with the latest message, else the name: for a commit."""
        spoken = [chat.record for chat in self.chats.values() if chat.record.last_message_text]
        newest = max(spoken, key=lambda one: one.updated_at, default=None)
        return (newest.title if newest else None) or self.name

    @property
    def changed_lines(self) -> tuple[int, int]:
        """Added and removed lines over all repositories."""
        lines = [status.changed_lines for status in self.record.repository_statuses]
        return sum(added for added, _ in lines), sum(removed for _, removed in lines)

    @property
    def agent(self) -> str:
        """The agent of its first chat, else the one for new chats; empty for the default."""
        first = self.first_chat
        return (first.record.provider if first else self.record.coding_agent) or ""

    @property
    def repository_name(self) -> str:
        """Name of its first repository, or empty."""
        if repositories := self.record.repositories:
            return repositories[0].name
        statuses = self.record.repository_statuses
        return statuses[0].repository if statuses else ""

    @property
    def branch(self) -> str:
        """The branch of its first repository, or empty."""
        statuses = self.record.repository_statuses
        return (statuses[0].branch or "") if statuses else ""

    @property
    def repository_and_branch(self) -> str:
        """Its first repository with the branch: `shop@qd/fix-login`."""
        return "@".join(part for part in (self.repository_name, self.branch) if part)

    @property
    def distance(self) -> tuple[int, int]:
        """Commits that the first repository's branch is ahead and behind."""
        first = next(iter(self.record.repository_statuses), None)
        return (first.ahead or 0, first.behind or 0) if first else (0, 0)

    @property
    def context_percent(self) -> int | None:
        """How full the context of its chat is; None where its agent does not report it."""
        chat = self.chat_to_show
        if chat is None or chat.tokens.context is None or not chat.tokens.window:
            return None
        return min(100, round(100 * chat.tokens.context / chat.tokens.window))

    @property
    def context_is_short(self) -> bool:
        """Whether the context of its chat is nearly full: each turn is expensive, and soon compacted."""
        return (self.context_percent or 0) >= SHORT_CONTEXT

    @property
    def active_at(self) -> datetime:
        """When something last happened in it."""
        return self.record.last_activity_at or self.record.created_at

    def repository(self, name: str) -> RepositoryStatus | None:
        """Return the state of a repository, if it is known."""
        statuses = self.record.repository_statuses
        return next((status for status in statuses if status.repository == name), None)

    @property
    def pull_request_urls(self) -> list[str]:
        """URLs of the pull requests known to the service, the newest last."""
        listed = [request.url for request in self.record.pull_requests]
        reported = [url for status in self.record.repository_statuses for url in status.pr_urls]
        return list(dict.fromkeys([*listed, *reported]))

    @property
    def pull_request(self) -> "PullRequestDetail | None":
        """The most important one: an open one that fails, an open one, else the newest."""
        return min(self.pull_requests or (), key=_urgency, default=None)

    @property
    def failing(self) -> "list[PullRequestDetail]":
        """The open pull requests with failed checks, of those that were read."""
        return [request for request in self.pull_requests or () if _urgency(request) == 0]

    @property
    def presentable(self) -> bool:
        """Whether everything needed to show it first is read."""
        known = self.environment_read or self.record.environment is not None
        return known and self.chat_to_show is not None

    @property
    def unisolated(self) -> str | None:
        """Why the sandbox is not isolated from the machine; None when it is, or unknown."""
        environment = self.record.environment
        if environment is None or environment.isolation != NO_ISOLATION:
            return None
        return environment.isolation_note or "This service runs agents without a sandbox."

    def take_summary(self, record: Replica) -> bool:
        """Apply a record of the list; return whether anything changed."""
        names = record.model_fields_set & set(Replica.model_fields)
        new = {name: getattr(record, name) for name in names}
        if all(getattr(self.record, name) == value for name, value in new.items()):
            return False
        self.record = self.record.model_copy(update=new)
        if self.status not in RUNNING:
            self.rest()
        return True

    def take_detail(self, record: ReplicaDetail) -> None:
        """Apply a full record; deleted chats are dropped."""
        known = self.record.environment
        self.record = record
        self.detailed = True
        if record.environment is None:
            record.environment = known
        kept = {chat.id for chat in record.chats}
        for chat_id in [known for known in self.chats if known not in kept]:
            del self.chats[chat_id]
        for chat in record.chats:
            self.take_chat(chat)

    def rest(self) -> None:
        """Note that its engine ended, so no hook or turn runs."""
        self.hooks.stopped()
        for chat in self.chats.values():
            chat.end_turn(processing=False)
            chat.record.awaiting_input = False

    def take_chat(self, record: Chat) -> ChatState:
        """Add a chat, or replace its record."""
        state = self.chats.get(record.id)
        if state is None:
            state = self.chats[record.id] = ChatState(record)
        else:
            state.take_record(record)
        return state

    def take_repositories(self, repositories: Iterable[EventRepository]) -> None:
        """Apply an event about all repositories."""
        entries = list(repositories)
        self.untracked = sum(len(entry.untracked) for entry in entries)
        self.record.repository_statuses = [entry.status() for entry in entries]

    def sort_key(self) -> tuple[int, float, str]:
        """Return a key that sorts by attention, then by the latest activity, then by name."""
        return (int(self.attention), -self.active_at.timestamp(), self.name)

    @classmethod
    def from_summary(cls, record: Replica, seen_at: datetime | None) -> "ReplicaState":
        """Return the state of a replica from the list; its chats come with the full record.

        Activity since it was last seen counts as unseen; one that was never seen is new to this
        cockpit, not unseen.
        """
        done_at = record.last_activity_at if seen_at else None
        return cls(
            ReplicaDetail.model_validate(record.model_dump()), seen_at=seen_at, done_at=done_at
        )


def _urgency(pull: "PullRequestDetail") -> int:
    if pull.state != "open":
        return 2
    return 0 if pull.checks.state == "failing" else 1


def is_missing(owner: "AppState", state: ReplicaState) -> bool:
    """Return whether anything remains to be read."""
    return state.previews is None or _needs_name(owner, state)


def _needs_name(owner: "AppState", state: ReplicaState) -> bool:
    environment_id = state.record.environment_id
    return environment_id is not None and environment_id not in owner.environment_names


async def read_info(owner: "AppState", state: ReplicaState) -> None:
    """Read previews and the environment's name, if they are unknown.

    Raises:
        ClientError: refused or unreachable.
    """
    async with asyncio.TaskGroup() as group:
        if state.previews is None:
            group.create_task(_read_previews(owner, state))
        if _needs_name(owner, state):
            group.create_task(_read_name(owner, state))
    owner.publish(ReplicaChanged(state.id))


async def _read_previews(owner: "AppState", state: ReplicaState) -> None:
    previews = await owner.client.previews.list(state.id)
    if state.previews is None:
        # An event that arrived meanwhile is newer.
        state.previews = previews


async def _read_name(owner: "AppState", state: ReplicaState) -> None:
    environment_id = state.record.environment_id
    if environment_id is not None:
        environment = await owner.client.environments.get(environment_id)
        owner.environment_names[environment_id] = environment.name
