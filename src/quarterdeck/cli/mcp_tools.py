"""The tools of `qd mcp`: operations on replicas for an agent, over the client of the command line."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Annotated, Any, Literal
from uuid import UUID

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

from quarterdeck import __version__
from quarterdeck.cli.errors import CliError, FailedError, UsageError
from quarterdeck.cli.lookup import find_chat, find_environment, find_replica
from quarterdeck.cli.replica.conversation import (
    asking_chat,
    only_question,
    open_questions,
    steer_accepted,
)
from quarterdeck.cli.replica.git import find_replica_repository
from quarterdeck.cli.replica.waiting import NEEDS_PERSON, wait_for_state
from quarterdeck.client import Client
from quarterdeck.client.errors import ClientError
from quarterdeck.store.creation import CreationRequest, create
from quarterdeck.transcript.blocks import QuestionBlock
from quarterdeck.transcript.export import plain_lines
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.base import first_error
from quarterdeck.wire.chats import Delivery, MessageAccepted, SendMessage
from quarterdeck.wire.git import Against
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.previews import LAST_PORT, Preview
from quarterdeck.wire.replicas import Replica, ReplicaDetail, WorkspaceStatus

INSTRUCTIONS = """Command coding agents that work in replicas: sandboxes with clones of repositories.
Create a replica with a first message, call wait until its agent needs you, then read_history and
get_diff. Answer questions with respond, and send further messages with send_message."""
INSIDE_INSTRUCTIONS = """Operations of the replica that you work in."""
PATCH_BYTES = 200_000
"""Most bytes of a patch in one answer; an agent reads all of it."""
LONGEST_WAIT = 3600.0
TURN_EVENTS = 1000
"""Newest events of a replica among which the beginning of a turn is looked for."""
POLL_SECONDS = 0.25

OpenClient = Callable[[], AbstractAsyncContextManager[Client]]
Tool = Callable[..., Awaitable[Any]]

ReplicaName = Annotated[
    str, Field(description="The replica's name, its id, or a prefix that fits only one.")
]
ChatName = Annotated[str | None, Field(description="A chat's id, a prefix of one, or its title.")]
Port = Annotated[int, Field(ge=1, le=LAST_PORT)]
State = Literal["asking", "plan", "done", "failed", "idle"]


class Replicas(BaseModel):
    """A page of replicas."""

    replicas: list[Replica]
    total: int
    total_pages: int


class Question(BaseModel):
    """A question that waits for an answer by the tool respond."""

    question: str
    title: str | None
    command: str | None
    options: dict[str, str]
    """Names of the options by their ids."""
    takes_text: bool


class ChatText(BaseModel):
    """A part of a chat as text."""

    chat: str
    text: str
    questions: list[Question]
    earlier: str | None
    """Value of `before` for what precedes it; null at the beginning."""


class ReplicaPatch(BaseModel):
    """What was changed in a repository."""

    repository: str
    patch: str
    is_complete: bool


class Reached(BaseModel):
    """The end of a wait."""

    state: str
    """The state reached, or `working` when the time was over first."""
    timed_out: bool


class ReplicaTools:
    """Operations on every replica that the caller's key allows.

    Args:
        open_client: opens a client for one call, so a service that was restarted is found again.
        locate: returns the URL under which the service reaches a repository.
    """

    def __init__(self, open_client: OpenClient, locate: Callable[[str], str | None]) -> None:
        self._open_client = open_client
        self._locate = locate

    async def create_replica(
        self,
        message: Annotated[str | None, Field(description="The agent's first message.")] = None,
        repository: Annotated[
            str | None, Field(description="A git URL or the path of a local repository.")
        ] = None,
        environment: Annotated[
            str | None,
            Field(description="Name or id of an environment, instead of a repository."),
        ] = None,
        name: Annotated[
            str | None, Field(description="Without spaces; default: from the message.")
        ] = None,
        agent: Annotated[
            str | None, Field(description="Default: the first that is ready, else builtin.")
        ] = None,
        model: Annotated[str | None, Field(description="Default: the agent's.")] = None,
        base: Annotated[
            str | None, Field(description="Branch, tag or commit to start from.")
        ] = None,
        plan_mode: Annotated[
            bool, Field(description="Let the agent propose a plan instead of changes.")
        ] = False,
    ) -> ReplicaDetail:
        """Create a replica, in which an agent starts on the message. Returns at once; call wait next.

        Without a repository and an environment, the replica has no repository.
        """
        if repository is not None and environment is not None:
            raise UsageError("Both a repository and an environment are given.", "Give one of them.")
        url = None if repository is None else self._locate(repository)
        async with self._open_client() as client:
            known = await find_environment(client, environment) if environment else None
            request = CreationRequest(
                repository_url=url,
                environment_id=known and known.id,
                agent=agent,
                model=model,
                name=name,
                message=message or "",
                plan_mode=plan_mode,
                base=base,
            )
            taken = [replica.name async for replica in client.replicas.all()]
            return await create(client, request, taken)

    async def list_replicas(
        self,
        status: Annotated[
            WorkspaceStatus | None, Field(description="Only replicas in this state.")
        ] = None,
        page: Annotated[int, Field(ge=1)] = 1,
        limit: Annotated[int, Field(ge=1, le=100, description="Replicas on a page.")] = 20,
    ) -> Replicas:
        """List replicas, newest first, with what their agents are doing."""
        async with self._open_client() as client:
            found = await client.replicas.list(page, limit, status=status)
        return Replicas(replicas=found.replicas, total=found.total, total_pages=found.total_pages)

    async def get_replica(self, replica: ReplicaName) -> ReplicaDetail:
        """Return a replica with its chats and the state of its repositories. Never wakes it."""
        async with self._open_client() as client:
            return await client.replicas.get(await find_replica(client, replica))

    async def send_message(
        self,
        replica: ReplicaName,
        message: Annotated[str, Field(min_length=1)],
        chat: ChatName = None,
        agent: Annotated[
            str | None, Field(description="Send to this agent's chat; created if there is none.")
        ] = None,
        model: Annotated[str | None, Field(description="Default: the chat's last.")] = None,
        plan_mode: Annotated[
            bool, Field(description="Let the agent propose a plan instead of changes.")
        ] = False,
        steer: Annotated[
            bool,
            Field(
                description="Put it into the running turn. The turn is interrupted if the agent "
                "cannot take messages during a turn."
            ),
        ] = False,
    ) -> MessageAccepted:
        """Send a message to an agent. A busy chat queues it; a sleeping replica is woken."""
        body = SendMessage(
            message=message, coding_agent=agent, model=model, plan_mode=plan_mode or None
        )
        async with self._open_client() as client:
            replica_id = await find_replica(client, replica)
            if chat is not None:
                body.chat_id = find_chat(await client.replicas.get(replica_id), chat).id
            accepted = await client.messages.send(replica_id, body)
            if steer and accepted.status == Delivery.QUEUED:
                await steer_accepted(client, replica_id, accepted)
            return accepted

    async def read_history(
        self,
        replica: ReplicaName,
        chat: ChatName = None,
        limit: Annotated[int, Field(ge=1, le=1000, description="Most events to read.")] = 200,
        before: Annotated[
            str | None, Field(description="`earlier` of an answer, for what precedes it.")
        ] = None,
    ) -> ChatText:
        """Read the end of a chat: messages, tool calls and open questions. Never wakes the replica.

        By default the chat that asks, else the first one.
        """
        async with self._open_client() as client:
            replica_id = await find_replica(client, replica)
            thread = asking_chat(await client.replicas.get(replica_id), chat)
            page = await client.history.page(
                replica_id, chat_id=thread.id, limit=limit, before_cursor=before
            )
            asked: Sequence[QuestionBlock] = ()
            if before is None:
                asked = await open_questions(client, replica_id, thread)
        texts = ("\n".join(plain_lines(block)) for block in Transcript(page.events).blocks)
        return ChatText(
            chat=str(thread.id),
            text="\n\n".join(text for text in texts if text),
            questions=[_question(block) for block in asked],
            earlier=page.before_cursor,
        )

    async def respond(
        self,
        replica: ReplicaName,
        option: Annotated[str | None, Field(description="Id of an option.")] = None,
        text: Annotated[
            str | None, Field(description="An answer in words, where the question takes one.")
        ] = None,
        question: Annotated[
            str | None, Field(description="Its id; needed when several are open.")
        ] = None,
        chat: ChatName = None,
    ) -> str:
        """Answer a question of an agent with one of its options or with text.

        Open questions and their options are in the answer of read_history.
        """
        if (option is None) == (text is None):
            raise UsageError("An answer is an option or a text.", "Give one of them.")
        async with self._open_client() as client:
            replica_id = await find_replica(client, replica)
            thread = asking_chat(await client.replicas.get(replica_id), chat)
            wanted = question or only_question(await open_questions(client, replica_id, thread))
            await client.chats.respond(replica_id, thread.id, wanted, option_id=option, text=text)
        return "Answered."

    async def get_diff(
        self,
        replica: ReplicaName,
        repository: Annotated[
            str | None, Field(description="Its name; needed when the replica has several.")
        ] = None,
        path: Annotated[str | None, Field(description="Only this file or directory.")] = None,
        against: Annotated[
            Against, Field(description="All changes since the base, commits, or uncommitted ones.")
        ] = Against.BASE,
    ) -> ReplicaPatch:
        """Return what was changed in a replica as a patch. Never wakes the replica."""
        patch = bytearray()
        async with self._open_client() as client:
            replica_id, name = await find_replica_repository(client, replica, repository)
            async with client.git.diff(replica_id, name, against=against, path=path) as parts:
                async for part in parts:
                    patch += part
                    if len(patch) > PATCH_BYTES:
                        break
        return ReplicaPatch(
            repository=name,
            patch=patch[:PATCH_BYTES].decode(errors="replace"),
            is_complete=len(patch) <= PATCH_BYTES,
        )

    async def wait(
        self,
        replica: ReplicaName,
        states: Annotated[
            list[State] | None,
            Field(min_length=1, description="States to wait for; default: all but idle."),
        ] = None,
        message: Annotated[
            UUID | None,
            Field(
                description="`message_id` of send_message: wait for its turn, not an earlier one."
            ),
        ] = None,
        timeout_seconds: Annotated[float, Field(ge=1, le=LONGEST_WAIT)] = 50,
    ) -> Reached:
        """Wait until a replica needs you.

        It is asking when the agent waits for an answer, plan when a plan waits for review, done or
        failed by its last turn, idle when no turn runs. When the time is over, the state is working:
        wait again.
        """
        async with self._open_client() as client:
            replica_id = await find_replica(client, replica)
            try:
                async with asyncio.timeout(timeout_seconds):
                    if message is not None:
                        await _wait_for_turn(client, replica_id, str(message))
                    goals = frozenset[str](states or NEEDS_PERSON)
                    state = await wait_for_state(client, replica_id, goals)
            except TimeoutError:
                return Reached(state="working", timed_out=True)
        return Reached(state=state, timed_out=False)


class InsideTools:
    """Operations that the secret of a replica allows its programs."""

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client

    async def open_preview(self, port: Port) -> Preview:
        """Make a port of this replica reachable from outside; the answer has its URL."""
        async with self._open_client() as client:
            return await client.previews.open_own(port)

    async def close_preview(self, port: Port) -> str:
        """Close the preview of a port of this replica."""
        async with self._open_client() as client:
            await client.previews.close_own(port)
        return f"Port {port} is closed."


def replica_server(
    open_client: OpenClient, locate: Callable[[str], str | None]
) -> MCPServer[dict[str, Any]]:
    """Return a server with the tools on every replica."""
    server = _server(INSTRUCTIONS)
    tools = ReplicaTools(open_client, locate)
    reading = ToolAnnotations(read_only_hint=True)
    writing = ToolAnnotations(read_only_hint=False, destructive_hint=False)
    readers: list[Tool] = [
        tools.list_replicas,
        tools.get_replica,
        tools.read_history,
        tools.get_diff,
        tools.wait,
    ]
    writers: list[Tool] = [tools.create_replica, tools.send_message, tools.respond]
    for tool in readers:
        server.add_tool(_with_tool_errors(tool), annotations=reading)
    for tool in writers:
        server.add_tool(_with_tool_errors(tool), annotations=writing)
    return server


def inside_server(open_client: OpenClient) -> MCPServer[dict[str, Any]]:
    """Return a server with the tools for programs inside a replica."""
    server = _server(INSIDE_INSTRUCTIONS)
    tools = InsideTools(open_client)
    inside: list[Tool] = [tools.open_preview, tools.close_preview]
    for tool in inside:
        server.add_tool(_with_tool_errors(tool))
    return server


def _server(instructions: str) -> MCPServer[dict[str, Any]]:
    return MCPServer(
        "quarterdeck",
        version=__version__,
        instructions=instructions,
        log_level="WARNING",
        subscriptions=False,  # nothing changes that a client could wait for
    )


def _with_tool_errors(tool: Tool) -> Tool:
    """Return the tool with expected errors turned into tool errors, with their next step."""

    @wraps(tool)
    async def call(**arguments: Any) -> Any:
        try:
            return await tool(**arguments)
        except ValidationError as error:
            raise ToolError(f"{first_error(error)}.") from error
        except (ClientError, CliError) as error:
            details = getattr(error, "details", None)
            told = (error.message, details and f"({details})", error.next_step)
            raise ToolError(" ".join(part for part in told if part)) from error

    return call


async def _wait_for_turn(client: Client, replica_id: UUID, message: str) -> None:
    """Wait until the turn of a message has begun, or cannot begin before somebody acts.

    An accepted message to a new chat is in no record of the replica until its engine has it.

    Raises:
        FailedError: the message was canceled.
    """
    while True:
        page = await client.history.page(replica_id, limit=TURN_EVENTS)
        if message in page.canceled_message_ids:
            raise FailedError("The message was canceled.", "Send it again, or wait without it.")
        if any(
            event.type == AgentEventType.USER_MESSAGE and event.payload.get("messageId") == message
            for event in page.events
        ):
            return
        detail = await client.replicas.get(replica_id)
        if detail.asking or detail.status == WorkspaceStatus.ERROR:
            return
        await asyncio.sleep(POLL_SECONDS)


def _question(block: QuestionBlock) -> Question:
    return Question(
        question=block.request_id,
        title=block.title,
        command=block.command,
        options={option.id: option.name for option in block.options or ()},
        takes_text=block.takes_text,
    )
