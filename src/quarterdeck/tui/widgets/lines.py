"""Lines around the content: head, status, notes."""

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Static

from quarterdeck.store.chats import ChatState
from quarterdeck.store.hooks import LiveHook, said_name
from quarterdeck.store.list_view import ListView, SortKey
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import WORDS
from quarterdeck.transcript.text import LONGEST_NAME, clean, money, name_line, one_line
from quarterdeck.tui.actions import (
    KeyContext,
    action_named,
    eager_bindings,
    keyed,
    prompt_bindings,
    shown_keys,
)
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import PullMark, part_style, pull_mark
from quarterdeck.wire.replicas import WorkspaceStatus

BOLD = Style(bold=True)
SHORTEST_NAME = 8
UNISOLATED = "⚠ not isolated"


def distance_of(state: ReplicaState) -> str:
    """Return how many commits the first repository's branch is ahead and behind; else nothing."""
    ahead, behind = state.distance
    return " ".join([*([f"↑{ahead}"] if ahead else []), *([f"↓{behind}"] if behind else [])])


def changes_of(state: ReplicaState) -> str:
    """Return the changed lines of all repositories, and how many files are new; else nothing."""
    added, removed = state.changed_lines
    untracked = f" ?{state.untracked}" if state.untracked else ""
    return f"+{added} -{removed}{untracked}" if added or removed or untracked else ""


CONTEXT = "ctx "
"""Before the share of the context that is used."""


ACTION = "action"
"""The style of words that can be clicked has the action by this name."""


class Fact(NamedTuple):
    """A part of the head line, and the id of the action that a click on it carries out."""

    text: str
    action: str


def facts_of(state: ReplicaState, agent: str) -> list[Fact]:
    """Return what a replica's head line says besides its name, the most important first.

    Changed lines, agent as it is called, context, cost, plan, goal, branch and its distance.
    """
    context, chat = state.context_percent, state.chat_to_show
    facts = [
        Fact(changes_of(state), "tab.changes"),
        Fact(agent, "chat.model"),
        Fact(f"{CONTEXT}{context}%" if context is not None else "", "info.toggle"),
        Fact(_cost_of(chat), "info.toggle"),
        Fact(_plan_of(chat), "tab.chat"),
        Fact(_goal_of(chat), "chat.goal"),
        Fact(state.branch, "replica.get-changes"),
        Fact(distance_of(state), "replica.get-changes"),
    ]
    return [fact._replace(text=one_line(fact.text[:LONGEST_NAME])) for fact in facts if fact.text]


def _plan_of(chat: ChatState | None) -> str:
    done, steps = chat.plan_progress if chat else (0, 0)
    return f"plan {done}/{steps}" if steps else ""


def _goal_of(chat: ChatState | None) -> str:
    goal = chat.record.goal if chat else None
    return f"goal {goal.status.replace('_', ' ')}" if goal else ""


def _cost_of(chat: ChatState | None) -> str:
    """Return what a chat has cost, if its agent reports it."""
    return money(chat.tokens.cost, chat.tokens.currency) if chat and chat.tokens.cost else ""


class HeadLine(Widget):
    """One line; the name is shortened last but one, facts are dropped from the end. Facts can be clicked."""

    COMPONENT_CLASSES = {
        "head--warning",
        *(f"head--pull-{color}" for color in ("muted", "primary", "success", "warning", "error")),
    }
    DEFAULT_CSS = """
    HeadLine {
        height: 1;
        background: $boost;
        & > .head--warning { color: $text-warning; text-style: bold; }
        & > .head--pull-muted { color: $text-muted; }
        & > .head--pull-primary { color: $text-primary; }
        & > .head--pull-success { color: $text-success; }
        & > .head--pull-warning { color: $text-warning; }
        & > .head--pull-error { color: $text-error; }
    }
    """

    class Chosen(Message):
        """A fact was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action
            """Its id."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, tuple[Fact, ...], str, PullMark | None] = ("", (), "", None)
        self._context_is_short = False

    def on_click(self, event: Click) -> None:
        if (action := event.style.meta.get(ACTION)) is not None:
            self.post_message(self.Chosen(action))

    def show(self, state: ReplicaState, agent: str) -> None:
        """Show a replica, whose agent is called this."""
        warning = UNISOLATED if state.unisolated else ""
        facts = tuple(facts_of(state, agent))
        shown = (name_line(state.full_name), facts, warning, pull_mark(state))
        if shown != self._shown:
            self._shown = shown
            self._context_is_short = state.context_is_short
            self.refresh()

    def render_line(self, y: int) -> Strip:
        name, facts, warning, pull = self._shown
        base, width = self.rich_style, self.size.width
        warned = base + part_style(self, "head--warning")
        room = max(0, width - 1 - (cell_len(warning) + 2 if warning else 0))
        least = min(SHORTEST_NAME, cell_len(name))
        # In words if everything else fits too; else as a sign, before all other facts.
        in_words = (
            pull is not None and _width_of([_fact(pull.words), *facts]) + cell_len(name) <= room
        )
        pull_fact = _fact((pull.words if in_words else pull.sign) if pull is not None else "")
        shown_facts: list[Fact] = []
        for fact in (pull_fact, *facts):
            if fact.text and _width_of([*shown_facts, fact]) + least <= room:
                shown_facts.append(fact)
        space = max(0, room - _width_of(shown_facts))
        segments = [Segment(f" {fit(name, min(cell_len(name), space))}", base + BOLD)]
        for fact in shown_facts:
            style = base
            if pull is not None and fact is pull_fact:
                style += part_style(self, f"head--pull-{pull.color}")
            elif self._context_is_short and fact.text.startswith(CONTEXT):
                style = warned
            clicked = Style.from_meta({ACTION: fact.action})
            segments += [Segment(" · ", base), Segment(fact.text, style + clicked)]
        if warning:
            segments.append(Segment(f"  {warning}", warned))
        return Strip(segments).crop(0, width).extend_cell_length(width, base)


def _fact(pull: str) -> Fact:
    return Fact(pull, "replica.pull-request")


def _width_of(facts: Sequence[Fact]) -> int:
    return sum(cell_len(f" · {fact.text}") for fact in facts)


def sort_words(view: ListView) -> str:
    """Return what the list is sorted by; nothing while it is by state, as usual."""
    if view.sort is SortKey.ATTENTION and not view.reverse:
        return ""
    return f"by {view.sort}{' (reversed)' if view.reverse else ''}"


WORDS_TO_FILTER = "name, is:asking, env:, repo:, agent:, from:, service:, !not"
SUGGESTED = [f"is:{word}" for word in WORDS.values()]
"""Of the list of replicas."""


class FilterLine(Vertical, HasKeyContext):
    """Hidden while everything is shown and nothing marked."""

    DEFAULT_CSS = """
    FilterLine {
        height: auto;
        & Input.-textual-compact { display: none; padding: 0 1; background: $boost; }
        & Static { display: none; padding: 0 1; color: $text-muted; }
        &.typing Input.-textual-compact { display: block; }
        &.shown Static { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.NARROWING)]

    class Changed(Message):
        """Other replicas should be shown."""

        def __init__(self, typed: str) -> None:
            super().__init__()
            self.typed = typed

    class Left(Message):
        """The user goes back to the list."""

    def __init__(self, placeholder: str = WORDS_TO_FILTER, suggested: Sequence[str] = ()) -> None:
        super().__init__()
        self._field = Input(
            placeholder=placeholder,
            suggester=SuggestFromList(suggested, case_sensitive=False) if suggested else None,
            compact=True,
        )
        self._field.cursor_blink = False
        self._counts = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._counts

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.NARROWING

    @property
    def typed(self) -> str:
        """The filter of the list, as it was typed."""
        return self._field.value

    def start(self) -> None:
        """Let the user type."""
        if not self._field.is_attached:
            self.mount(self._field, before=self._counts)
        self.add_class("typing")
        self.screen.set_focus(self._field)

    def show(self, shown: int, all_: int, marked: int, order: str = "") -> None:
        """Show how many are shown, of how many, how many are marked, and an unusual order."""
        parts = [f"{shown} of {all_}"] if self.typed.strip() else []
        parts += [f"{marked} marked"] if marked else []
        parts += [order] if order else []
        self.set_class(bool(parts), "shown")
        self._counts.update("  ".join(parts))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def action_all(self) -> None:
        """Show everything again."""
        self._go(lambda: self._leave(""))

    def action_leave_line(self) -> None:
        """Go back to the list, which stays as it is."""
        self._go(lambda: self._leave(self.typed))

    def _go(self, leave: Callable[[], None]) -> None:
        if self._field.is_attached:
            # Through the field's queue: what was typed before the key is in it by then.
            self._field.call_later(leave)
        else:
            leave()

    def _leave(self, typed: str) -> None:
        self._field.value = typed
        self.set_class(bool(typed.strip()), "typing")
        self.post_message(self.Left())


class Note(Static, can_focus=True):
    """Text in the place of content."""

    DEFAULT_CSS = """
    Note {
        height: 1fr;
        padding: 1 2;
        color: $text-muted;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.NO_TERMINAL)]

    def __init__(self, text: str, *, id: str | None = None) -> None:
        super().__init__(text, id=id, markup=False)


FAILED_STEP = (
    "{replica.wake} retry (from the composer: {composer.transcript}, then {replica.wake}) · "
    "{replica.delete} delete"
)
HOOK_FAILED = re.compile(r"The \w+ hook ")
"""Start of the engine's reason when a hook failed."""
PREPARING = "Preparing: cloning and starting. Messages are queued until it is ready."
LAST_LINES = 4
"""Lines of a running hook's output that are shown in the chat; its tab has all of them."""


class RareText(Static):
    """Text that is rarely shown; mounted when it is first shown."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)

    def show_text(
        self, text: str, *, before: Widget | None = None, after: Widget | None = None
    ) -> None:
        """Show a text, or nothing when it is empty. Its place is before or after another widget."""
        if text and not self.is_attached:
            beside = before or after
            assert beside is not None and isinstance(beside.parent, Widget)
            beside.parent.mount(self, before=before, after=after)
        if self.is_attached:
            self.display = bool(text)
            self.update(text)


class StateNote(RareText):
    """Hidden while the replica is active or at rest."""

    DEFAULT_CSS = """
    StateNote {
        display: none;
        height: auto;
        max-height: 50%;
        padding: 0 1;
        color: $text-muted;
        border: round $panel-lighten-2;
        &.failed { color: $foreground; border: round $error; border-title-color: $text-error; }
    }
    """

    def show(self, state: ReplicaState, *, before: Widget) -> None:
        """Show the state of a replica."""
        failed = state.status == WorkspaceStatus.ERROR
        self.show_text(_words(state), before=before)
        self.set_class(failed, "failed")
        self.border_title = "✗ failed" if failed else "◌ preparing"


def _words(state: ReplicaState) -> str:
    match state.status:
        case WorkspaceStatus.ERROR:
            reason = clean(state.record.error or "The service gave no reason.").strip()
            log = f"{' or '.join(shown_keys(action_named('tab.hooks')))} hook log · "
            return f"{reason}\n{log if HOOK_FAILED.match(reason) else ''}{keyed(FAILED_STEP)}"
        case WorkspaceStatus.PREPARING:
            return "\n".join((PREPARING, *_hook_lines(state.hooks.running)))
        case _:
            return ""


def _hook_lines(hook: LiveHook | None) -> list[str]:
    if hook is None:
        return []
    output = [clean(line) for line in hook.last_lines(LAST_LINES)]
    return [f"The hook {one_line(said_name(hook.name))} runs:", *output]
