"""A dialog of choices: what each would do now, carried out one at a time, then its result."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rich.table import Table
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Click
from textual.message import Message
from textual.widgets import Static
from textual.worker import Worker

from quarterdeck.store.git import Failed, OperationFailure, failure_of
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import Action, action_named, keyed, shown_key
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog

MOST_FILES = 8
"""How many files are named when an action is refused."""

R = TypeVar("R")


@dataclass(frozen=True)
class ActionChoice:
    """An action in the current state; with a `reason` it cannot be chosen."""

    label: str
    note: str = ""
    reason: str = ""


class ActionRow(Static):
    """An action: its key, its effect, and its object."""

    class Chosen(Message):
        """The row was clicked."""

        def __init__(self, action_id: str) -> None:
            super().__init__()
            self.action_id = action_id

    def __init__(self, action_id: str) -> None:
        super().__init__(id=action_id.replace(".", "-"))
        self._action_id = action_id

    def show(self, choice: ActionChoice, *, selected: bool) -> None:
        """Show the action in the current state."""
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=4, no_wrap=True)
        table.add_column(ratio=10)
        table.add_column(ratio=11)
        key = shown_key(action_named(self._action_id))
        dim = "dim" if choice.reason else ""
        table.add_row(
            Text(f"{'▸' if selected else ' '} {key}", style=dim or "bold"),
            Text(one_line(choice.label), style=dim),
            Text(one_line(choice.reason or choice.note), style="dim"),
        )
        self.update(table)
        self.set_class(selected, "selected")

    def on_click(self, event: Click) -> None:
        event.stop()
        self.post_message(self.Chosen(self._action_id))


class ActionScreen(Dialog[R], SettledLayout[R]):
    """`choices` are its lines in order; the ends of their ids are passed to `carry_out`."""

    DEFAULT_CSS = """
    ActionScreen {
        align: center middle;
        & > VerticalScroll {
            max-width: 98%;
            height: auto;
            max-height: 100%;
            padding: 0 1;
            background: $surface;
            border: round $border;
            border-subtitle-color: $text-muted;
        }
        & #choices { height: auto; }
        & ActionRow { height: auto; }
        & ActionRow.selected { background: $block-cursor-blurred-background; }
        & #result { height: auto; margin-top: 1; display: none; }
        & #result.failed { color: $text-error; }
        & #result.done { color: $text-success; }
    }
    """
    AUTO_FOCUS = ""  # letters are actions
    choices: ClassVar[tuple[Action, ...]]

    def __init__(self, start: str = "") -> None:
        """`start` names the line that is selected first."""
        super().__init__()
        names = [name_of(choice.id) for choice in self.choices]
        self._selected = names.index(start) if start in names else 0
        self.active: tuple[str, Worker[None]] | None = None
        """The running action."""

    def options(self) -> Iterator[ActionChoice]:
        """Yield the actions in the current state, in the order of `choices`; none while unknown."""
        raise NotImplementedError

    async def carry_out(self, name: str) -> str:
        """Carry out an action and return its result as a text.

        Raises:
            Failed: it was refused.
        """
        raise NotImplementedError

    def show(self) -> None:
        """Show the current state."""
        for number, (action, choice) in enumerate(zip(self.choices, self.options(), strict=False)):
            row = self.query_one(f"#{action.id.replace('.', '-')}", ActionRow)
            row.show(choice, selected=number == self._selected)

    def box(self, title: str, subtitle: str) -> VerticalScroll:
        """Return the container of everything."""
        box = VerticalScroll()
        box.can_focus = False
        box.border_title, box.border_subtitle = Text(title), Text(subtitle)
        return box

    def rows(self) -> ComposeResult:
        """Yield the lines that can be chosen."""
        with Vertical(id="choices"):
            for action in self.choices:
                yield ActionRow(action.id)

    def tell(self, text: str, kind: str = "") -> None:
        """Show the progress or the result of an action; nothing with an empty text."""
        result = self.query_one("#result", Static)
        result.display = bool(text)
        result.set_classes(kind)
        result.update(text)
        self.call_after_refresh(result.scroll_visible, animate=False)

    def action_move(self, step: int) -> None:
        """Select another action."""
        self._selected = (self._selected + step) % len(self.choices)
        self.show()

    @on(ActionRow.Chosen)
    def _clicked(self, event: ActionRow.Chosen) -> None:
        event.stop()
        self.action_start(name_of(event.action_id))

    def action_run(self) -> None:
        """Carry out the selected action."""
        self.action_start(name_of(self.choices[self._selected].id))

    def action_start(self, name: str) -> None:
        """Carry out an action, unless it has no effect now."""
        if self.fits(name):
            self.begin(name)

    def fits(self, line: str) -> bool:
        """Select a line; return whether it can be chosen, and show why not."""
        self._selected = next(
            n for n, action in enumerate(self.choices) if name_of(action.id) == line
        )
        self.show()
        reason = list(self.options())[self._selected].reason
        if reason:
            self.tell(f"{one_line(reason)}.", "failed")
        return not reason

    def begin(self, name: str) -> None:
        """Carry an action out, unless another one runs."""
        if self.active is None:
            self.active = (name, self._run(name))

    @work(group="carry out")
    async def _run(self, name: str) -> None:
        text, kind = "Canceled.", "failed"
        try:
            text, kind = await self.carry_out(name), "done"
        except Failed as error:
            text = refusal_words(failure_of(error))
        finally:
            self.active = None
            if self.is_mounted:
                self.tell(text, kind)
                self.show()


def name_of(action_id: str) -> str:
    """Return the end of an action's id."""
    return action_id.rpartition(".")[2]


SAME_LINES = (
    "In {tab.changes} Changes, {changes.merge} brings the base branch in,"
    " {changes.resolve} asks the agent to resolve the conflicts."
)


def refusal_words(failure: OperationFailure) -> str:
    """Return why an operation was refused, in several lines."""
    lines = [one_line(failure.message)]
    if failure.files:
        lines.append(f"Files: {named_files(failure.files)}.")
    lines += [one_line(line) for line in failure.details.splitlines()[-MOST_FILES:]]
    if failure.same_lines:
        lines.append(keyed(SAME_LINES))
    if failure.diverged:
        lines = [lines[0], keyed("{get.force} replaces the local branch.")]
    return "\n".join(line for line in lines if line)


def named_files(files: tuple[str, ...] | list[str]) -> str:
    """Return the first of some files, and how many more there are."""
    shown = ", ".join(one_line(file) for file in files[:MOST_FILES])
    more = len(files) - MOST_FILES
    return f"{shown} and {more} more" if more > 0 else shown
