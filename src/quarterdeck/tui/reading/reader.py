"""A text under its title, with a field to find in it.

What part of the cockpit it is in decides its place, and so its keys.
"""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.reading.deeds import Doer
from quarterdeck.tui.reading.line_input import LineInput
from quarterdeck.tui.reading.pages import Page
from quarterdeck.tui.reading.text_view import TextView
from quarterdeck.tui.reading.title_line import TitleLine
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.tui.widgets.placed import Placed


class FindField(LineInput, Placed):
    """Where a person types what is to be found."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.FIND)]

    class Left(Message):
        """Back to the text; with `kept` the places stay marked."""

        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    class Next(Message):
        """On to another place."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    @property
    def place(self) -> Where:
        return Where.FIND

    def action_leave(self, kept: bool) -> None:
        hold_keys(self)
        self.post_message(self.Left(kept))

    def action_step(self, step: int) -> None:
        self.post_message(self.Next(step))


class Reader(Vertical, Doer, Placed):
    """Title, text, a line for what must be known of it, and the field while it is used."""

    DEFAULT_CSS = """
    Reader {
        & TextView { height: 1fr; }
        & FindField { display: none; }
        &.finding FindField { display: block; }
        & .said { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = ""
        self._facts = ""

    def compose(self) -> ComposeResult:
        yield TitleLine()
        yield TextView()
        yield Static(classes="said", markup=False)
        yield FindField(placeholder="find in the text")

    @property
    def text(self) -> TextView:
        """The text itself; it takes the keys."""
        return self.query_one(TextView)

    @property
    def finding(self) -> bool:
        """Whether something is being looked for."""
        return self.has_class("finding")

    def show_page(
        self, title: str, page: Page, *, facts: str = "", end: bool = False, keep: bool = False
    ) -> None:
        """Shows another text; with `keep` the reader stays where they are."""
        self._title, self._facts = title, facts
        self.text.show_page(page, end=end, keep=keep)
        self._show_title()

    def say(self, words: str) -> None:
        """What must be known beside the text; empty words take the line away."""
        said = self.query_one(".said", Static)
        said.display = bool(words)
        said.update(one_line(words))

    @on(TextView.Moved)
    def _show_title(self) -> None:
        view = self.text
        numbered = view.page.numbered and len(view.page)
        at = f"{view.cursor + 1}/{len(view.page)}" if numbered else ""
        facts = "  ".join(part for part in (self._facts, at) if part)
        self.query_one(TitleLine).show(self._title, facts)

    # actions of every place that is a reader

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters typed into the field are no keys."""
        return not isinstance(self.screen.focused, FindField)

    def action_find(self) -> None:
        self.add_class("finding")
        field = self.query_one(FindField)
        self.screen.set_focus(field)
        field.select_all()
        release_keys(self)

    def action_find_next(self, step: int) -> None:
        wanted = self.text.wanted
        if not wanted:
            self.action_find()
        elif not self.text.find(wanted, step, onward=True):
            self._not_found(wanted)

    def action_copy(self) -> None:
        if chosen := self.text.chosen_text():
            copy_text(self, chosen)

    def _not_found(self, wanted: str) -> None:
        self.say(f"Nowhere in it: {wanted}" if wanted else "")

    @on(FindField.Changed)
    def _wanted_changed(self, event: FindField.Changed) -> None:
        event.stop()
        found = self.text.find(event.value) if event.value else True
        if not event.value:
            self.text.wanted = ""
        self._not_found("" if found else event.value)

    @on(FindField.Next)
    def _next_wanted(self, event: FindField.Next) -> None:
        event.stop()
        if self.text.wanted:
            self.text.find(self.text.wanted, event.step, onward=True)

    @on(FindField.Left)
    def _field_left(self, event: FindField.Left) -> None:
        event.stop()
        self.remove_class("finding")
        self.say("")
        if not event.kept:
            self.text.wanted = ""
        self.screen.set_focus(self.text)
        release_keys(self)
