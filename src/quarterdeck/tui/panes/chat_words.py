"""What the lines around the composer say."""

from quarterdeck.store.chats import ChatState
from quarterdeck.transcript.blocks import PlanState, QuestionBlock
from quarterdeck.transcript.words import duration_text
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.text import one_line
from quarterdeck.wire.goals import ChatGoal
from quarterdeck.wire.replicas import WorkspaceStatus


def turn_words(chat: ChatState, status: str) -> str:
    """What the chat is doing."""
    match status:
        case WorkspaceStatus.ERROR:
            return "✗ failed"
        case WorkspaceStatus.PREPARING:
            return "◌ preparing"
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return f"☾ {status}: a message wakes it, or " + keyed("{replica.wake} in the list")
        case _:
            pass
    if chat.record.awaiting_input:
        return "▲ waits for your answer"
    if chat.record.processing:
        since = chat.turn_started_at
        at = f" since {since.astimezone():%H:%M:%S}" if since else ""
        return f"● working{at}{plan_words(chat)} " + keyed("({composer.interrupt} interrupts)")
    return "○ idle"


def chat_label(chat: ChatState) -> str:
    """A chat's tab: what it is doing, and its title, or its agent."""
    needs_you = chat.record.awaiting_input or chat.plan_waits
    mark = "▲ " if needs_you else "● " if chat.record.processing else ""
    return mark + (one_line(chat.record.title or "") or one_line(chat.record.provider))


def plan_words(chat: ChatState) -> str:
    """How far the plan of the running turn is; empty without one."""
    plan = chat.transcript.turn.plan if chat.transcript else None
    if plan is None or not plan.entries or not chat.record.processing:
        return ""
    done = sum(entry.state is PlanState.COMPLETED for entry in plan.entries)
    return f" · plan {done}/{len(plan.entries)}"


def goal_words(goal: ChatGoal) -> str:
    """How a goal stands, and what it has cost."""
    spent = _tokens(goal.tokens_used)
    if goal.token_budget:
        spent += f"/{_tokens(goal.token_budget)}"
    took = f", {duration_text(goal.time_used_seconds)}" if goal.time_used_seconds else ""
    status = one_line(goal.status).replace("_", " ")
    return f"goal {status} · {spent} tokens{took} · {one_line(goal.objective)}"


def _tokens(count: int) -> str:
    for size, unit in ((1_000_000, "m"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def secret_question(chat: ChatState | None) -> QuestionBlock | None:
    """The open question whose answer must be seen by nobody."""
    question = asks_for_text(chat)
    return question if question is not None and question.secret else None


def asks_for_text(chat: ChatState | None) -> QuestionBlock | None:
    """The newest open question that what is written answers."""
    if chat is None or chat.transcript is None or not chat.record.awaiting_input:
        return None
    waiting = chat.transcript.open_questions
    return next((one for one in reversed(waiting) if one.takes_text), None)


def destination(chat: ChatState, status: str, *, online: bool) -> str:
    """What the key that sends does with the text."""
    return keyed(_destination(chat, status, online=online))


def _destination(chat: ChatState, status: str, *, online: bool) -> str:
    if not online:
        return "{composer.send} keeps it and sends it later"
    match status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "{composer.send} wakes and sends"
        case WorkspaceStatus.PREPARING:
            return "{composer.send} sends when it is ready"
        case WorkspaceStatus.ERROR:
            return "first wake it: {composer.transcript}, then {replica.wake}"
        case _ if asks_for_text(chat):
            return "{composer.send} answers the question"
        case _:
            return "{composer.send} " + ("queues" if chat.record.processing else "sends")
