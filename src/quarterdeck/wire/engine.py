"""The protocol between the service and the engine of a workspace.

One JSON-RPC 2.0 message per line, UTF-8, over a byte stream. The first call is `open` with the
engine secret; before it, or with a wrong one, the engine answers an error and closes. The error of a
refused call has `EngineFault` as `data`, so that the service can pass it on unchanged.

| method | parameters | result |
|---|---|---|
| `open` | `OpenLink` | `EngineHello`; with `after` set, `journal` notifications follow until the link closes |
| `status` | - | `EngineReport` |
| `shutdown` | `ShutDown` | null; then agents and terminals are stopped and the process ends |
| `exec` | `ExecRequest` | `ExecResponse` |
| `terminal.list` | - | `TerminalList` |
| `terminal.create` | `CreateTerminal` | `TerminalAnswer` |
| `terminal.input` | `TerminalCall` + `TerminalInput` | null |
| `terminal.resize` | `TerminalCall` + `ResizeTerminal` | null |
| `terminal.close` | `TerminalCall` | null |
| `terminal.stream` | `StreamTerminal` | null; `terminal` notifications follow until the link closes |
| `chat.open` | `OpenChat` | `EventChat`; known id: no change |
| `chat.rename` | `RenameEngineChat` | `ChatRenamed` |
| `chat.send` | `DeliverMessage` | `Delivered`; known message id: no change |
| `chat.interrupt` | `ChatCall` | `TurnInterrupted` |
| `chat.respond` | `Answer` | `Journaled`; null from an engine of an earlier version |
| `chat.notice` | `GiveNotice` | null; known text: no change |
| `chat.goal` | `ChangeGoal` | `GoalChanged` |
| `chat.settings` | `ChangeSettings` | `Journaled` |
| `chat.delete` | `DeleteEngineChat` | `Journaled`; unknown id: it cannot be opened any more |
| `queue.cancel` | `CancelQueued` | `QueueChanged` |
| `queue.order` | `OrderQueue` | `QueueChanged` |
| `queue.steer` | `SteerQueued` | `Steered` |
| `queue.join` | `JoinQueued` | `Journaled`; known id of the joined message: no change |
| `queue.held` | - | `HeldQueues` |
| `queue.release` | - | null; held queues and goals continue |
| `repos.refresh` | - | `ReposChanged` |
| `repos.diffs` | - | `RepositoryDiffs` |
| `permissions.set` | `Permissions` | null; from now on this policy applies |
| `workspace.claim` | `ClaimWorkspace` | null; claimed already: no change |
| `canvas.list` | - | `CanvasList` |
| `canvas.get` | `CanvasCall` | `CanvasFile` |
| `canvas.put` | `WriteCanvas` | `CanvasWritten`; known upload id: no change |
| `files.index` | - | `IndexedFiles` |
| `files.read` | `ReadFile` | `FileContent` |

Answers to calls on chats have `index`: the journal entry up to which the service must have read to
see the change.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.base import CamelRecord, Id, Timestamp
from quarterdeck.wire.chats import EventChat, EventGoal, Image, Interrupted, SettingValue
from quarterdeck.wire.events import EngineStatus
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.history import TurnOrigin
from quarterdeck.wire.permissions import Permissions
from quarterdeck.wire.setup import Setup, SetupState
from quarterdeck.wire.terminals import TerminalEvent

LINE_LIMIT = 40 << 20
"""Longest line either side accepts, in bytes."""

LARGEST_INDEX = (1 << 53) - 1
"""Largest index of a journal: the largest integer that every JSON reader keeps."""

Index = Annotated[int, Field(ge=0, le=LARGEST_INDEX)]
"""Index of a journal's entry; 0 is before the first."""

SOCKET_NAME = "engine.sock"
CONFIG_NAME = "engine.json"


class EngineConfig(CamelRecord):
    """Content of `engine.json` in the run directory (mode 0600), never passed in argv.

    Programs inside have only the engine's own secret in their environment; they could read the file
    anyway.
    """

    workspace_id: Id
    secret: str
    workspace_dir: str
    state_dir: str
    run_dir: str
    isolation: str
    repositories: list[EngineRepository] = []
    environment: dict[str, str] = {}
    """Variables for shells, exec and agents."""
    setup: Setup = Setup()
    agents: dict[str, OwnAgent] = {}
    """A person's own agents, by id."""
    permissions: Permissions = Field(default_factory=Permissions)
    """The permission policy at its start; `permissions.set` changes it."""
    hold_queues: bool = False
    """Queued messages are not run before `queue.release`."""
    auto_stop_seconds: float | None = None
    """An engine without a service ends after this time without use; null: never."""
    known_index: Index = 0
    """The newest journal entry that the service has stored: numbers continue above it, even if the
    journal was lost."""


class ShutDown(CamelRecord):
    """Ends the engine."""

    by_request: bool = False
    """A person puts the workspace to rest: a running turn counts as interrupted, not as failed."""


class OpenLink(CamelRecord):
    """First call on a link. `after` asks for every journal entry with a higher index.

    `lease` counts the services that had the workspace: links of earlier ones end, and are refused.
    """

    secret: str
    after: Index | None = None
    lease: Annotated[int, Field(ge=0, le=LARGEST_INDEX)] = 0


class EngineHello(CamelRecord):
    """The engine's first answer."""

    version: str
    workspace_id: Id
    last_index: Index
    boot_time_ms: Annotated[int, Field(ge=0, le=LARGEST_INDEX >> 5)]
    pid: int
    setup: SetupState | None = None
    """Progress of its boot; null from an engine that does not report it."""


class JournalEntry(CamelRecord):
    """One numbered entry; `type` and `payload` are those of the event stream."""

    index: Annotated[int, Field(ge=1, le=LARGEST_INDEX)]
    ts: Timestamp
    type: str
    payload: dict[str, Any]


LONGEST_IDLE = 1e9
"""Largest `idle_seconds`: thirty years."""


class EngineReport(EngineStatus):
    """Answer of `status`."""

    chats_held_back: list[Id] = []
    """Chats whose messages or goals wait for a higher cost limit."""
    terminals: int = 0
    terminals_attached: int = 0
    idle_seconds: Annotated[float, Field(ge=0, le=LONGEST_IDLE)] | None = None
    """Time since the workspace was last used; independent of clocks."""
    last_activity_at: Timestamp | None = None
    """When it was last used by the engine's clock, from an engine of an earlier version."""
    journal_fault: str | None = None
    """Why the journal cannot be written, for instance a full disk; null when it can."""
    setup: SetupState | None = None


class TerminalCall(CamelRecord):
    """Names the terminal of a call."""

    session_id: Id


class StreamTerminal(CamelRecord):
    """Requests a terminal's output from a byte offset, or a replay when it is null or dropped."""

    session_id: Id
    offset: int | None = None


class TerminalFrame(CamelRecord):
    """Params of a `terminal` notification: `offset` is the byte offset after the chunk."""

    offset: int
    event: TerminalEvent


class StreamCommand(CamelRecord):
    """Requests the output of a command, which ends with the link."""

    command: Annotated[list[str], Field(min_length=1)]
    directory: str
    data: str = ""
    """Its whole input."""


class CommandOutput(CamelRecord):
    """Params of an `output` notification: the next part of a command's output."""

    data: str
    """In base64."""


class ChatCall(CamelRecord):
    """Names the chat of a call."""

    chat_id: Id


class OpenChat(CamelRecord):
    """Create a chat, or return it. There is no event for it: the caller publishes it.

    The fields after the title are for an engine that has lost the chat.
    """

    chat_id: Id
    provider: str
    title: str | None = None
    parent_chat_id: Id | None = None
    created_at: Timestamp | None = None
    last_message_text: str | None = None
    goal: EventGoal | None = None
    plan_ready: bool = False
    turn_failed: bool | None = None
    permission_mode: SettingValue | None = None
    model: SettingValue | None = None
    thinking_level: SettingValue | None = None


class RenameEngineChat(CamelRecord):
    """Gives a chat its title."""

    chat_id: Id
    title: str


class DeliverMessage(CamelRecord):
    """A message for a chat. The id makes delivery at-least-once run once."""

    chat_id: Id
    message_id: Id
    text: str
    images: list[Image] | None = None
    model: str | None = None
    usual_model: str | None = None
    """The replica's model: used when neither the message nor the chat has one."""
    plan_mode: bool = False
    goal_mode: bool = False
    fast_mode: bool = False
    thinking_level: str | None = None
    uploads: list[str] | None = None
    """Files of the canvas that belong to it, by display path."""
    continuation: bool = False
    """The engine's own message: the next turn towards the goal."""
    origin: TurnOrigin | None = None
    """`agent`: a turn that the agent began by itself; it has no text."""


class Delivered(CamelRecord):
    """The engine has the message on disk; `position` is its place in the queue, from 1."""

    queued: bool
    position: int | None = None


class Answer(CamelRecord):
    """Answers a question or permission request of an agent."""

    chat_id: Id
    request_id: str
    option_id: str | None = None
    text: str | None = None
    message: DeliverMessage | None = None
    """Accepted first, and before all that wait: the answer may end the turn."""


class AskOption(CamelRecord):
    """One of the answers to a question of the service."""

    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once"]


class AskPerson(CamelRecord):
    """Asks a person in a chat, for the service; open until it is answered or the link breaks.

    Without a chat, or with an unknown one, the chat with the newest turn is used.
    """

    chat_id: Id | None = None
    title: str
    options: list[AskOption]


class PersonAsked(CamelRecord):
    """The chosen option; null when the question was withdrawn."""

    option_id: str | None = None


class CanvasCall(CamelRecord):
    """Names an item of the canvas, relative to it."""

    filename: str


class WriteCanvas(CamelRecord):
    """An upload. The id makes writing at-least-once happen once."""

    upload_id: Id
    filename: str
    base64: str


class CanvasWritten(CamelRecord):
    """The name of a stored upload: its own, or the next free one."""

    filename: str


class IndexedFiles(CamelRecord):
    """The files of all repositories.

    `packed` is base64 of zlib of JSON, which is stored as it is: `[[repository, [path, ...],
    statuses], ...]`, where `statuses` has a letter for each path: `u`nchanged, `c`hanged or `n`ew.
    `truncated` when there are more files than an index holds, or a repository cannot be read.
    """

    truncated: bool
    packed: str


class ReadFile(CamelRecord):
    """Names a file of a repository."""

    repo_name: str
    path: str


class EngineFault(CamelRecord):
    """`data` of a JSON-RPC error: the contract's error, made by the engine."""

    code: str
    details: str | None = None


class CancelQueued(CamelRecord):
    """Removes messages from a chat's queue; one unknown to the engine is never run."""

    chat_id: Id
    message_ids: list[Id]


class OrderQueue(CamelRecord):
    """The new order of a chat's queued messages, including those not delivered yet."""

    chat_id: Id
    message_ids: list[Id]


class QueueChanged(CamelRecord):
    """`started` are those that could not be canceled: their turn has started, or ended."""

    index: Index
    canceled: list[Id] = []
    started: list[Id] = []


class SteerQueued(CamelRecord):
    """Puts a message that waits into the running turn of its chat."""

    chat_id: Id
    message_id: Id


class Steered(CamelRecord):
    """The message is in the turn; `interrupted`: the turn was stopped instead, and it is the next one."""

    index: Index
    interrupted: bool = False


class JoinQueued(CamelRecord):
    """Replaces messages that wait by one; all of them must still wait. It takes the first one's place."""

    chat_id: Id
    message_ids: list[Id]
    message: DeliverMessage


class HeldQueues(CamelRecord):
    """Whether the queues wait to be released, and their messages, by chat.

    `open` has, by chat, the message of each turn that is still open because an earlier engine was
    killed during it; null from an engine that does not report it.
    """

    held: bool
    queues: dict[Id, list[Id]] = {}
    open: dict[Id, Id] | None = None
    index: Index = 0


class DeleteEngineChat(CamelRecord):
    """Deletes a chat. With `logged` its deletion is already in the event log."""

    chat_id: Id
    logged: bool = False


class GiveNotice(CamelRecord):
    """A notice that precedes the next message to a chat's agent; it is not an event."""

    chat_id: Id
    text: str


class Journaled(CamelRecord):
    """The change is in the journal, at this index at the latest."""

    index: Index


class ChatRenamed(EventChat):
    """The chat with its new title. An engine of an earlier version sends no index."""

    index: Index = 0


class TurnInterrupted(Interrupted):
    """Whether a turn ran, and what is still queued; `index` as of `ChatRenamed`."""

    index: Index = 0


class ChangeGoal(CamelRecord):
    """Sets, pauses, resumes or removes a chat's goal; what is null stays."""

    chat_id: Id
    objective: str | None = None
    status: Literal["active", "paused"] | None = None
    token_budget: int | None = None
    remove: bool = False


class ChangeSettings(CamelRecord):
    """Changes settings of a chat's agent; what is null stays."""

    chat_id: Id
    permission_mode: str | None = None
    model: str | None = None
    thinking_level: str | None = None
    names: dict[str, str] = {}
    """Names of the values by field, for an agent that has not started yet."""


class GoalChanged(CamelRecord):
    """The current goal; null when the chat's agent has no goals."""

    index: Index
    goal: EventGoal | None = None
