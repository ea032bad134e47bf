"""Read a text: find, copy, open.

A text under its title, with a search field.

The place, and so the keys, depend on the part of the cockpit that it is in.
"""

import asyncio
from typing import cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.fields import FindField
from quarterdeck.tui.kit.highlight import can_color, file_lines
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import Page, SourcePage, TitleLine
from quarterdeck.tui.kit.text_view import TextView


class PaneAction(Message):
    """An action that the surrounding pane carries out. Keys typed meanwhile are held until the pane releases them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ForwardsToPane:
    """Mixin for a widget with keys that its pane handles."""

    def action_forward(self, name: str) -> None:
        """Part of the table of actions: `forward('name')`."""
        cast("Widget", self).post_message(PaneAction(name))


class Reader(Vertical, ForwardsToPane, HasKeyContext):
    """Title, text, a line for remarks, and the search field while it is used."""

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
        """The text itself; it takes the focus."""
        return self.query_one(TextView)

    @property
    def finding(self) -> bool:
        """Whether a search is active."""
        return self.has_class("finding")

    def show_page(
        self, title: str, page: Page, *, facts: str = "", end: bool = False, keep: bool = False
    ) -> None:
        """Show another text; with `keep` the scroll position is kept."""
        self._title, self._facts = title, facts
        self.text.show_page(page, end=end, keep=keep)
        self._show_title()

    def say(self, words: str) -> None:
        """Show a remark; an empty one removes the line."""
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
        """Return whether an action may run: letters typed into the field are not keys."""
        return not isinstance(self.screen.focused, FindField)

    def action_find(self) -> None:
        self.add_class("finding")
        field = self.query_one(FindField)
        self.screen.set_focus(field)
        field.select_all()

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


class ColoredReader(Reader):
    """A reader whose text is highlighted shortly after it is shown."""

    def color(self, name: str, page: SourcePage) -> bool:
        """Highlight a page by its file's name, unless it is too large for that."""
        if not can_color(page.lines):
            return False
        self._color(name, page)
        return True

    @work(group="color", exclusive=True)
    async def _color(self, name: str, page: SourcePage) -> None:
        # In a thread: the first file loads the highlighter, and a long one takes a while.
        page.colors = await asyncio.to_thread(file_lines, name.rpartition("/")[2], page.lines)
        if page.colors is not None and self.text.page is page:
            self.text.refresh()
