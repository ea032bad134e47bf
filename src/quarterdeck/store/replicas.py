"""One replica as the cockpit knows it, and how its events change it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from quarterdeck.store.attention import Attention, attention_of
from quarterdeck.store.chats import ChatState
from quarterdeck.store.hooks import HookWatch
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.events import EventRepository, Preview
from quarterdeck.wire.replicas import (
    Replica,
    ReplicaDetail,
    RepositoryStatus,
    WorkspaceStatus,
)

RUNNING = {WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING}

NO_ISOLATION = "none"


@dataclass
class ReplicaState:
    """State of a replica. `record` is the last one read, corrected by events since."""

    record: ReplicaDetail
    chats: dict[UUID, ChatState] = field(default_factory=dict[UUID, ChatState])
    seen_at: datetime | None = None
    done_at: datetime | None = None
    detailed: bool = False
    untracked: int = 0
    hooks: HookWatch = field(default_factory=HookWatch)
    previews: list[Preview] | None = None
    """Ports that can be looked at; None before somebody asked, or an event told."""
    shown_chat: UUID | None = None
    """The chat that the person looked at last."""
    environment_read: bool = False
    """Whether its environment was asked for; the service may tell none."""

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def status(self) -> str:
        return self.record.status

    @property
    def asks(self) -> bool:
        return any(chat.record.awaiting_input for chat in self.chats.values())

    @property
    def plans(self) -> bool:
        """A plan waits for the person's word."""
        if not self.chats:
            return self.record.plan_ready
        return any(chat.plan_waits for chat in self.chats.values())

    @property
    def works(self) -> bool:
        return any(chat.record.processing for chat in self.chats.values())

    @property
    def unseen(self) -> bool:
        """Something finished since the person last looked."""
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
        """The chat made with the replica."""
        return min(self.chats.values(), key=lambda chat: chat.record.created_at, default=None)

    @property
    def ordered_chats(self) -> list[ChatState]:
        """All chats, the oldest first: the order of their tabs."""
        return sorted(self.chats.values(), key=lambda chat: (chat.record.created_at, str(chat.id)))

    @property
    def chat_to_show(self) -> ChatState | None:
        """The chat that asks, else the one that was looked at last, else the first."""
        asking = next((one for one in self.ordered_chats if one.record.awaiting_input), None)
        known = self.chats.get(self.shown_chat) if self.shown_chat else None
        return asking or known or self.first_chat

    @property
    def changed_lines(self) -> tuple[int, int]:
        """Added and removed lines over all repositories."""
        diffs = [status.git_diff or {} for status in self.record.repository_statuses]
        return (
            sum(int(diff.get("added") or 0) for diff in diffs),
            sum(int(diff.get("removed") or 0) for diff in diffs),
        )

    @property
    def presentable(self) -> bool:
        """Whether all is here that a first look at it shows."""
        known = self.environment_read or self.record.environment is not None
        return known and self.chat_to_show is not None

    @property
    def unisolated(self) -> str | None:
        """Why the sandbox is not kept apart from the machine; None when it is, or not known."""
        environment = self.record.environment
        if environment is None or environment.isolation != NO_ISOLATION:
            return None
        return environment.isolation_note or "This service runs agents without a sandbox."

    def take_summary(self, record: Replica) -> bool:
        """Takes over what a list says; True when anything is new."""
        told = record.model_fields_set & set(Replica.model_fields)
        new = {name: getattr(record, name) for name in told}
        if all(getattr(self.record, name) == value for name, value in new.items()):
            return False
        self.record = self.record.model_copy(update=new)
        if self.status not in RUNNING:
            self.rest()
        return True

    def take_detail(self, record: ReplicaDetail) -> None:
        """Takes over a full record; chats that are gone are dropped."""
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
        """Nothing runs in it any more."""
        self.hooks.stopped()
        for chat in self.chats.values():
            chat.end_turn(processing=False)
            chat.record.awaiting_input = False

    def take_chat(self, record: Chat) -> ChatState:
        """Adds a chat or replaces its record."""
        state = self.chats.get(record.id)
        if state is None:
            state = self.chats[record.id] = ChatState(record)
        else:
            state.take_record(record)
        return state

    def take_repositories(self, repositories: Iterable[EventRepository]) -> None:
        """Takes over what an event says of all repositories."""
        found = list(repositories)
        self.untracked = sum(len(entry.untracked) for entry in found)
        self.record.repository_statuses = [
            RepositoryStatus(
                repository=entry.name,
                branch=entry.current_branch,
                default_branch=entry.default_branch,
                pr_urls=entry.pr_urls,
                start_hooks_completed=entry.start_hooks_completed,
                git_diff=entry.git_diff.model_dump(exclude_none=True) if entry.git_diff else None,
            )
            for entry in found
        ]

    def sort_key(self) -> tuple[int, float, str]:
        """Attention first, then the latest activity, then the name."""
        at = self.record.last_activity_at or self.record.created_at
        return (int(self.attention), -at.timestamp(), self.name)

    @classmethod
    def from_summary(cls, record: Replica, seen_at: datetime | None) -> "ReplicaState":
        """A replica as a list shows it; its chats come with the full record.

        What happened since it was last looked at counts as unseen; one never looked at is new to
        this cockpit, not unseen.
        """
        done_at = record.last_activity_at if seen_at else None
        return cls(
            ReplicaDetail.model_validate(record.model_dump()), seen_at=seen_at, done_at=done_at
        )
