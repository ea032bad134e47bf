"""What the service asks of an engine's chats beyond sending: the queue, the goal, the end of a chat.

Every answer carries `index`: the journal entry up to which the service must have read to know of
what the call changed.
"""

from typing import Literal

from quarterdeck.wire.base import CamelRecord, Id
from quarterdeck.wire.goals import EventGoal


class CancelQueued(CamelRecord):
    """Takes messages out of a chat's queue; one that the engine does not know yet is never run."""

    chat_id: Id
    message_ids: list[Id]


class OrderQueue(CamelRecord):
    """The order in which a chat's waiting messages shall run, those on their way included."""

    chat_id: Id
    message_ids: list[Id]


class QueueChanged(CamelRecord):
    """`started` are those that could not be canceled: their turn has begun, or ended."""

    index: int
    canceled: list[Id] = []
    started: list[Id] = []


class HeldQueues(CamelRecord):
    """Whether the queues wait to be released, and what is in them, by chat."""

    held: bool
    queues: dict[str, list[Id]] = {}


class DeleteEngineChat(CamelRecord):
    """Ends a chat. With `told` its end is in the event log already."""

    chat_id: Id
    told: bool = False


class Journaled(CamelRecord):
    """The change is in the journal, at this index at the latest."""

    index: int


class ChangeGoal(CamelRecord):
    """Sets, pauses or resumes a chat's goal; what is null stays."""

    chat_id: Id
    objective: str | None = None
    status: Literal["active", "paused"] | None = None
    token_budget: int | None = None


class GoalChanged(CamelRecord):
    """The goal as it is now; null when the chat's agent has no goals."""

    index: int
    goal: EventGoal | None = None
