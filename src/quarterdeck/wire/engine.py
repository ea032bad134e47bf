"""What the service and an engine say to each other.

One JSON-RPC 2.0 message a line, UTF-8, over a byte stream. The first call is `open` with the
engine secret; before it, or with a wrong one, the engine answers an error and closes. A call that
is refused carries `EngineFault` in the error's `data`, so the service can pass it on unchanged.

| method | parameters | result |
|---|---|---|
| `open` | `OpenLink` | `EngineHello`; with `after` set, `journal` notifications follow, for ever |
| `status` | - | `EngineReport` |
| `shutdown` | - | null; then agents and terminals are stopped and the process ends |
| `exec` | `ExecRequest` | `ExecResponse` |
| `terminal.list` | - | `TerminalList` |
| `terminal.create` | `CreateTerminal` | `TerminalAnswer` |
| `terminal.input` | `TerminalCall` + `TerminalInput` | null |
| `terminal.resize` | `TerminalCall` + `ResizeTerminal` | null |
| `terminal.close` | `TerminalCall` | null |
| `terminal.stream` | `StreamTerminal` | null; `terminal` notifications follow until the link closes |
| `chat.open` | `OpenChat` | `EventChat`; known id: no change |
| `chat.rename` | `RenameEngineChat` | `EventChat` |
| `chat.send` | `DeliverMessage` | `Delivered`; known message id: no change |
| `chat.interrupt` | `ChatCall` | `Interrupted` |
| `chat.respond` | `Answer` | null |
| `chat.goal` | `ChangeGoal` | `GoalChanged` |
| `chat.delete` | `DeleteEngineChat` | `Journaled`; unknown id: it cannot be opened any more |
| `queue.cancel` | `CancelQueued` | `QueueChanged` |
| `queue.order` | `OrderQueue` | `QueueChanged` |
| `queue.held` | - | `HeldQueues` |
| `queue.release` | - | null; queues and goals that were held go on |
| `repos.refresh` | - | `ReposChanged` |
| `repos.diffs` | - | `RepositoryDiffs` |
| `workspace.claim` | `ClaimWorkspace` | null; claimed already: no change |
| `canvas.list` | - | `CanvasList` |
| `canvas.get` | `CanvasCall` | `CanvasFile` |
| `canvas.put` | `WriteCanvas` | `CanvasWritten`; known upload id: no change |
| `files.index` | - | `IndexedFiles` |
| `files.read` | `ReadFile` | `FileContent` |
"""

from typing import Annotated, Any

from pydantic import Field

from quarterdeck.wire.base import CamelRecord, Id, Timestamp
from quarterdeck.wire.events import EngineStatus
from quarterdeck.wire.messages import Image, ThinkingLevel
from quarterdeck.wire.own_agents import OwnAgent
from quarterdeck.wire.setup import Setup, SetupState
from quarterdeck.wire.terminals import TerminalEvent

LINE_LIMIT = 64 << 20
"""Longest line either side accepts, in bytes."""

SOCKET_NAME = "engine.sock"
CONFIG_NAME = "engine.json"


class EngineRepository(CamelRecord):
    """A repository that was put into the workspace. `path` is absolute, as the engine sees it."""

    id: Id
    name: str
    path: str
    default_branch: str
    base_commit: str | None = None
    """The commit the workspace's branch started from; changed lines are counted against it."""


class EngineConfig(CamelRecord):
    """Content of `engine.json` in the run directory (mode 0600): never in argv, and of the secrets
    only the engine's own in the environment of what runs inside, which could read the file anyway.
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
    hold_queues: bool = False
    """Nothing that waits is run before `queue.release`."""


class OpenLink(CamelRecord):
    """First call on a link. `after` asks for every journal entry with a higher index."""

    secret: str
    after: Annotated[int, Field(ge=0)] | None = None


class EngineHello(CamelRecord):
    """The engine's first answer."""

    version: str
    workspace_id: Id
    last_index: int
    boot_time_ms: int
    pid: int
    setup: SetupState | None = None
    """How far its boot has come; null from an engine that does not tell."""


class JournalEntry(CamelRecord):
    """One numbered entry; `type` and `payload` are those of the event stream."""

    index: int
    ts: Timestamp
    type: str
    payload: dict[str, Any]


class EngineReport(EngineStatus):
    """Answer of `status`."""

    terminals: int = 0
    terminals_attached: int = 0
    last_activity_at: Timestamp | None = None
    journal_fault: str | None = None
    """Why the journal cannot be written, for instance a full disk; null when it can."""
    setup: SetupState | None = None


class TerminalCall(CamelRecord):
    """Names the terminal of a call."""

    session_id: Id


class StreamTerminal(CamelRecord):
    """Asks for a terminal's output from a byte offset, or with a replay when null or gone."""

    session_id: Id
    offset: int | None = None


class TerminalFrame(CamelRecord):
    """Params of a `terminal` notification: `offset` is the byte offset after the chunk."""

    offset: int
    event: TerminalEvent


class ChatCall(CamelRecord):
    """Names the chat of a call."""

    chat_id: Id


class OpenChat(CamelRecord):
    """Makes a chat, or finds it. No event tells it: whoever asks has done that."""

    chat_id: Id
    provider: str
    title: str | None = None
    parent_chat_id: Id | None = None
    created_at: Timestamp | None = None


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
    """The replica's own: used where the message names none, and none was chosen in the chat."""
    plan_mode: bool = False
    goal_mode: bool = False
    fast_mode: bool = False
    thinking_level: ThinkingLevel | None = None
    uploads: list[str] | None = None
    """Files of the canvas that come with it, by display path."""
    continuation: bool = False
    """The engine's own message: the next turn towards the goal."""


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


class CanvasCall(CamelRecord):
    """Names an item of the canvas, relative to it."""

    filename: str


class WriteCanvas(CamelRecord):
    """An upload. The id makes writing at-least-once happen once."""

    upload_id: Id
    filename: str
    base64: str


class CanvasWritten(CamelRecord):
    """The name that an upload was given: its own, or the next that was free."""

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


class RepositoryDiff(CamelRecord):
    """What a repository's checkout differs in from the commit it started from, as git shows it."""

    name: str
    diff: str


class RepositoryDiffs(CamelRecord):
    """Answer of `repos.diffs`."""

    diffs: list[RepositoryDiff]


class EngineFault(CamelRecord):
    """`data` of a JSON-RPC error: the contract's error, made by the engine."""

    code: str
    details: str | None = None
