"""`qd replica send`, `respond`, `interrupt`, `goal` and `rename`: talk to an agent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import find_chat, with_replica
from quarterdeck.cli.options import (
    Common,
    chat_option,
    common_options,
    replica_argument,
    text_or_stdin,
)
from quarterdeck.cli.output import (
    print_json,
    print_message,
    print_success,
    print_table,
    print_text,
    safe_line,
)
from quarterdeck.cli.replica.events import TurnFilter, event_printer, follow_turn
from quarterdeck.cli.replica.queue import steered_text
from quarterdeck.wire.chats import (
    TOKEN_BUDGET_LIMIT,
    Chat,
    ChatGoal,
    ChatSettings,
    Delivery,
    Interrupted,
    MessageAccepted,
    SendMessage,
    SteerAnswer,
    UpdateGoal,
    UpdateSettings,
)
from quarterdeck.wire.replicas import ReplicaDetail

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.transcript.blocks import QuestionBlock


@click.command(name="send")
@chat_option
@click.option("--agent", metavar="AGENT", help="Its chat; created if there is none.")
@click.option("--model", metavar="MODEL", help="Its model; default: the chat's last.")
@click.option("--thinking", metavar="LEVEL", help="Its thinking level; default: the chat's last.")
@click.option("--plan", is_flag=True, help="Plan mode: propose a plan instead of changes.")
@click.option("--steer", is_flag=True, help="Put it into the running turn, if there is one.")
@click.option("--wait", is_flag=True, help="Print the turn and wait for its end.")
@replica_argument
@click.argument("message")
@common_options
def send(
    common: Common,
    replica: str,
    message: str,
    chat: str | None,
    agent: str | None,
    model: str | None,
    thinking: str | None,
    plan: bool,
    steer: bool,
    wait: bool,
) -> None:
    """Send a message to the agent; MESSAGE - reads it from stdin.

    A busy chat queues it, a sleeping replica is woken. With --steer a busy agent gets it during its
    turn; the turn is interrupted if the agent cannot take messages during a turn. With --wait the
    exit code is 1 when the turn fails or is interrupted; with --json the first line is the answer,
    each event follows as a line.
    """
    text = text_or_stdin(message)
    if not text.strip():
        raise UsageError("The message is empty.")

    async def work(client: "Client", replica_id: UUID) -> None:
        body = SendMessage(
            message=text,
            coding_agent=agent,
            model=model,
            thinking_level=thinking,
            plan_mode=plan or None,
        )
        await _send(client, common, replica_id, body, chat, steer, wait)

    with_replica(common, replica, work)


async def _send(
    client: "Client",
    common: Common,
    replica_id: UUID,
    body: SendMessage,
    chat: str | None,
    steer: bool,
    wait: bool,
) -> None:
    detail = await client.replicas.get(replica_id)
    if chat is not None:
        body.chat_id = find_chat(detail, chat).id
    accepted = await client.messages.send(replica_id, body)
    if common.json:
        print_json(accepted)
    message: UUID | None = accepted.message_id
    if not steer or accepted.status != Delivery.QUEUED:
        print_message(_delivery_text(accepted))
    elif not await _steer(client, replica_id, accepted):
        message = None  # it is in the turn that runs
    if not wait:
        return
    following = TurnFilter(replica_id, accepted.chat_id, message, detail.log_index)
    with event_printer(common, accepted.chat_id) as show:
        await follow_turn(client, following, show)


async def _steer(client: "Client", replica_id: UUID, accepted: MessageAccepted) -> bool:
    """Put a message into the running turn; return whether it has, or had already, its own turn.

    Raises:
        ClientError: it was refused, and still waits.
    """
    from quarterdeck.client.errors import ConflictError

    try:
        answer = await steer_accepted(client, replica_id, accepted)
    except ConflictError:
        print_message(_delivery_text(accepted))
        raise
    if answer is None:
        print_message("Sent; the turn before had just ended.")
        return True
    print_message(steered_text(answer))
    return answer.interrupted


async def steer_accepted(
    client: "Client", replica_id: UUID, accepted: MessageAccepted
) -> SteerAnswer | None:
    """Put a message into the running turn; return None when it has its own turn already.

    Raises:
        ConflictError: it was refused, and still waits.
    """
    from quarterdeck.client.errors import ConflictError

    chat_id, message_id = accepted.chat_id, accepted.message_id
    try:
        return await client.messages.steer(replica_id, chat_id, message_id)
    except ConflictError:
        queue = await client.messages.queue(replica_id, chat_id)
        if any(waiting.id == message_id for waiting in queue.queue):
            raise
        return None


def _delivery_text(accepted: MessageAccepted) -> str:
    match accepted.status:
        case Delivery.QUEUED:
            return f"Queued after the running turn, position {accepted.position}."
        case Delivery.WAKING:
            return "Accepted; it is delivered as soon as the replica is active."
        case _:
            return "Sent."


@click.command(name="respond")
@chat_option
@click.option("--option", metavar="ID|NUMBER", help="Answer with one of the question's options.")
@click.option("--text", help="Answer with text.")
@click.option(
    "--message", metavar="TEXT", help="Also tell the agent this, before messages that wait."
)
@replica_argument
@click.argument("request", metavar="[QUESTION]", required=False)
@common_options
def respond(
    common: Common,
    replica: str,
    request: str | None,
    chat: str | None,
    option: str | None,
    text: str | None,
    message: str | None,
) -> None:
    """Answer a question of the agent, or list the open questions.

    QUESTION is the id of the question; it can be left out when one question is open. A question
    that is no longer open is refused.
    """
    if option is not None and text is not None:
        raise UsageError("Give one of --option and --text.")
    if (request or message) and option is None and text is None:
        raise UsageError(
            "Give --option or --text.", f"See what is asked with: qd replica respond {replica}"
        )

    async def work(client: "Client", replica_id: UUID) -> "Sequence[QuestionBlock]":
        thread = asking_chat(await client.replicas.get(replica_id), chat)
        if option is None and text is None:
            asked = await open_questions(client, replica_id, thread)
            if not asked:
                raise FailedError("No question is open.")
            return asked
        asked = await open_questions(client, replica_id, thread)
        wanted = request or only_question(asked)
        chosen = option and _option_of(asked, wanted, option)
        await client.chats.respond(
            replica_id, thread.id, wanted, option_id=chosen, text=text, message=message
        )
        return ()

    questions = with_replica(common, replica, work)
    if questions:
        _print_questions(common, questions)
        return
    print_success("Answered.", common.json)


def _option_of(questions: "Sequence[QuestionBlock]", request: str, typed: str) -> str:
    """Return the id of an option of a question that was named by its number; else what was typed."""
    options = next((one.options or () for one in questions if one.request_id == request), ())
    if any(option.id == typed for option in options) or not typed.isdecimal():
        return typed
    return next((one.id for at, one in enumerate(options, 1) if at == int(typed)), typed)


def asking_chat(detail: ReplicaDetail, wanted: str | None) -> Chat:
    """Return the named chat, else the one that waits for an answer, else the first."""
    asking = [chat for chat in detail.chats if chat.awaiting_input]
    if wanted is not None or not asking:
        return find_chat(detail, wanted)
    if len(asking) > 1:
        known = ", ".join(str(chat.id)[:8] for chat in asking)
        raise UsageError(f"{len(asking)} chats wait for an answer: {known}.", "Give --chat.")
    return asking[0]


async def open_questions(
    client: "Client", replica_id: UUID, chat: Chat
) -> "Sequence[QuestionBlock]":
    """Return the open questions of the running turn, oldest first."""
    from quarterdeck.transcript.fold import Transcript

    transcript = Transcript()
    async for page in client.history.pages(replica_id, chat_id=chat.id):
        transcript.prepend(page.events)
        if transcript.turn.started_at is not None:
            break
    return transcript.open_questions


def only_question(questions: "Sequence[QuestionBlock]") -> str:
    """Return the id of the only open question.

    Raises:
        FailedError: no question is open.
        UsageError: several are.
    """
    if not questions:
        raise FailedError("No question is open.")
    if len(questions) > 1:
        known = ", ".join(question.request_id for question in questions)
        raise UsageError(
            f"{len(questions)} questions are open: {known}.", "Give the question's id."
        )
    return questions[0].request_id


def _print_questions(common: Common, questions: "Sequence[QuestionBlock]") -> None:
    if common.json:
        print_json({"questions": [_question_json(asked) for asked in questions]})
        return
    from quarterdeck.transcript.export import plain_lines

    for question in questions:
        print_text("\n".join(plain_lines(question)))
        print_text(f"  id: {question.request_id}")
    print_message("Answer with --option and the number or id of an answer, or with --text TEXT.")


def _question_json(question: "QuestionBlock") -> dict[str, object]:
    return {
        "requestId": question.request_id,
        "title": question.title,
        "command": question.command,
        "options": [
            {"optionId": option.id, "name": option.name} for option in question.options or ()
        ],
        "takesText": question.takes_text,
    }


@click.command(name="interrupt")
@click.option("--chat", metavar="CHAT", help="Chat id or title (default: every working one).")
@replica_argument
@common_options
def interrupt(common: Common, replica: str, chat: str | None) -> None:
    """Stop the running turn. Queued messages stay queued, and a goal is paused."""

    async def stop(client: "Client", replica_id: UUID) -> list[Interrupted]:
        detail = await client.replicas.get(replica_id)
        running = [each for each in detail.chats if each.processing]
        chosen = running if chat is None and running else [find_chat(detail, chat)]
        return [await client.chats.interrupt(replica_id, each.id) for each in chosen]

    stopped = with_replica(common, replica, stop)
    interrupted = any(result.interrupted for result in stopped)
    if common.json:
        queue = [str(id) for result in stopped for id in result.queue]
        print_json({"interrupted": interrupted, "queue": queue})
    print_message("Interrupted." if interrupted else "Nothing to interrupt.")


@click.command(name="goal")
@chat_option
@click.option("--set", "objective", metavar="OBJECTIVE", help="Set a new goal.")
@click.option("--pause", "status", flag_value="paused", help="Start no further turn.")
@click.option("--resume", "status", flag_value="active", help="Resume the goal.")
@click.option(
    "--budget",
    metavar="TOKENS",
    type=click.IntRange(1, TOKEN_BUDGET_LIMIT),
    help="Token budget.",
)
@click.option("--remove", is_flag=True, help="Remove the goal; a running turn continues.")
@replica_argument
@common_options
def goal(
    common: Common,
    replica: str,
    chat: str | None,
    objective: str | None,
    status: Literal["active", "paused"] | None,
    budget: int | None,
    remove: bool,
) -> None:
    """Show the goal that an agent works towards by itself, or set, pause, resume or remove it."""
    if objective is not None and not objective.strip():
        raise UsageError("The objective is empty.")
    change = UpdateGoal(objective=objective, status=status, token_budget=budget)
    changes_goal = bool(change.model_dump(exclude_none=True))
    if changes_goal and remove:
        raise UsageError("--remove cannot be combined with --set, --pause, --resume or --budget.")

    async def work(client: "Client", replica_id: UUID) -> ChatGoal | None:
        thread = find_chat(await client.replicas.get(replica_id), chat)
        if remove:
            await client.chats.delete_goal(replica_id, thread.id)
            return None
        if not changes_goal:
            return thread.goal
        goal = await client.chats.update_goal(replica_id, thread.id, change)
        if goal is None:
            raise FailedError(f"{thread.provider} has no goals.", "See the agents with: qd doctor.")
        return goal

    goal = with_replica(common, replica, work)
    if common.json:
        print_json({"goal": goal and goal.model_dump(mode="json")})
    elif goal is None:
        print_text("No goal.")
    else:
        _print_goal(goal)


def _print_goal(goal: ChatGoal) -> None:
    print_text(f"goal     {goal.objective}")
    print_text(f"status   {goal.status}")
    budget = "" if goal.token_budget is None else f" of {goal.token_budget}"
    print_text(f"tokens   {goal.tokens_used}{budget}")
    print_text(f"time     {goal.time_used_seconds} s")


@click.command(name="settings")
@chat_option
@click.option("--mode", metavar="MODE", help="Permission mode, by its id.")
@click.option("--model", metavar="MODEL", help="Model, from the next message on.")
@click.option("--thinking", metavar="LEVEL", help="Thinking level, from the next message on.")
@replica_argument
@common_options
def settings(
    common: Common,
    replica: str,
    chat: str | None,
    mode: str | None,
    model: str | None,
    thinking: str | None,
) -> None:
    """Show the settings that an agent offers, or change them."""
    change = UpdateSettings(permission_mode=mode, model=model, thinking_level=thinking)

    async def work(client: "Client", replica_id: UUID) -> ChatSettings:
        thread = find_chat(await client.replicas.get(replica_id), chat)
        if change.model_dump(exclude_none=True):
            await client.chats.update_settings(replica_id, thread.id, change)
        return await client.chats.settings(replica_id, thread.id)

    offered = with_replica(common, replica, work)
    if common.json:
        print_json(offered)
        return
    rows = [
        [
            label,
            "*" if setting.current and setting.current.id == choice.id else "",
            choice.id,
            safe_line(choice.description or choice.name),
        ]
        for label, setting in (
            ("mode", offered.permission_mode),
            ("model", offered.model),
            ("thinking", offered.thinking_level),
        )
        if setting is not None
        for choice in setting.choices
    ]
    if rows:
        print_table(["SETTING", "NOW", "ID", "DESCRIPTION"], rows)
    else:
        print_message(
            "This agent has announced no settings; one that has some does so with the first message."
        )


@click.command(name="rename")
@chat_option
@replica_argument
@click.argument("title")
@common_options
def rename(common: Common, replica: str, title: str, chat: str | None) -> None:
    """Give a chat a title of 1 to 100 characters. The replica must be active."""
    if not title.strip():
        raise UsageError("The title is empty.")

    async def rename(client: "Client", replica_id: UUID) -> Chat:
        thread = find_chat(await client.replicas.get(replica_id), chat)
        return await client.chats.rename(replica_id, thread.id, title)

    renamed = with_replica(common, replica, rename)
    if common.json:
        print_json({"chat": renamed})
    print_message("Renamed.")
