"""The chat that a pane shows, and its status."""

from collections.abc import Callable
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.blocks import PlanState, QuestionBlock, duration_text
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.wire.chats import ChatGoal
from quarterdeck.wire.replicas import WorkspaceStatus


class ShownChat:
    """The chat of a replica that a pane shows. All parts of the pane share it.

    `problem` is shown instead of the state until the next user action. `refresh` shows the
    chat as the store has it.
    """

    def __init__(
        self, app_state: AppState, replica_id: UUID, chat_id: UUID, refresh: Callable[[], None]
    ) -> None:
        self.app_state = app_state
        self.replica_id = replica_id
        self.id = chat_id
        self.problem = ""
        self.refresh = refresh

    @property
    def state(self) -> ChatState | None:
        """The chat's state, None once it is deleted."""
        return self.app_state.chat(self.replica_id, self.id)

    @property
    def replica(self) -> ReplicaState | None:
        """The replica's state, None once it is deleted."""
        return self.app_state.replicas.get(self.replica_id)

    def show_problem(self, text: str) -> None:
        """Show what went wrong."""
        self.problem = one_line(text)
        self.refresh()

    def refused(self, what: str, error: ClientError) -> None:
        """Show that the service refused a request."""
        self.show_problem(f"{what}: {error} {error.next_step}")


def turn_words(chat: ChatState, status: str) -> str:
    """Return what the chat is doing."""
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
        return keyed("▲ Waiting for your answer · {chat.question} to answer")
    if chat.record.processing:
        since = chat.turn_started_at
        at = f" since {since.astimezone():%H:%M:%S}" if since else ""
        return f"● working{at}{plan_words(chat)} " + keyed("({composer.interrupt} interrupts)")
    return "○ idle"


def chat_label(chat: ChatState) -> str:
    """Return the label of a chat's tab: its state, and its title or agent."""
    needs_you = chat.record.awaiting_input or chat.plan_waits
    mark = "▲ " if needs_you else "● " if chat.record.processing else ""
    return mark + (one_line(chat.record.title or "") or one_line(chat.record.provider))


def plan_words(chat: ChatState) -> str:
    """Return the progress of the running turn's plan; empty without one."""
    plan = chat.transcript.turn.plan if chat.transcript else None
    if plan is None or not plan.entries or not chat.record.processing:
        return ""
    done = sum(entry.state is PlanState.COMPLETED for entry in plan.entries)
    return f" · plan {done}/{len(plan.entries)}"


def goal_words(goal: ChatGoal) -> str:
    """Return the state of a goal, and its cost."""
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
    """Return the open question whose answer is a secret."""
    question = asks_for_text(chat)
    return question if question is not None and question.secret else None


def asks_for_text(chat: ChatState | None) -> QuestionBlock | None:
    """Return the newest open question that a typed text answers."""
    if chat is None or chat.transcript is None or not chat.record.awaiting_input:
        return None
    waiting = chat.transcript.open_questions
    return next((one for one in reversed(waiting) if one.takes_text), None)


def destination(chat: ChatState, status: str, *, online: bool) -> str:
    """Return what the key that sends does with the text."""
    return keyed(_destination(chat, status, online=online))


def _destination(chat: ChatState, status: str, *, online: bool) -> str:
    if not online:
        return "Offline: {composer.send} queues locally"
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


def plan_ready_words() -> str:
    """Return that a plan waits for the user."""
    return keyed("▲ Plan ready: {chat.plan-accept} approve · {chat.plan-change} request changes")
