"""Where a person writes to an agent: several lines, Enter sends."""

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive

from quarterdeck.tui.actions import Where, prompt_bindings, which
from quarterdeck.tui.text import one_line
from quarterdeck.tui.widgets.folding_area import FoldingArea
from quarterdeck.tui.widgets.placed import Placed

MOST_LINES = 8


class Composer(FoldingArea, Placed):
    """A text area that grows to eight lines; what is in it is never lost."""

    DEFAULT_CSS = """
    Composer {
        height: 3;
        min-height: 3;
        border: round $panel-lighten-2;
        padding: 0 1;
        background: $background;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
        &.plan { border: round $warning; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.COMPOSER)]

    plan_mode: reactive[bool] = reactive(False)
    goal_mode: reactive[bool] = reactive(False)
    model: reactive[str] = reactive("")
    """The model that was chosen, empty for the agent's own choice."""

    class Submitted(Message):
        """The text should go to the agent."""

        def __init__(self, text: str, plan_mode: bool, goal_mode: bool = False) -> None:
            super().__init__()
            self.text = text
            self.plan_mode = plan_mode
            self.goal_mode = goal_mode

    sends_empty = False
    """Something else goes with the message, so it needs no text."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self._show_title()

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.COMPOSER

    def where(self, words: str) -> None:
        """Says where Enter will send the text to."""
        self.border_subtitle = words

    def watch_plan_mode(self, on: bool) -> None:
        self.set_class(on, "plan")
        self._show_title()

    def watch_goal_mode(self) -> None:
        self._show_title()

    def watch_model(self) -> None:
        self._show_title()

    def _show_title(self) -> None:
        words = ["Message"]
        words += ["plan mode"] if self.plan_mode else []
        words += ["goal mode"] if self.goal_mode else []
        words += [one_line(self.model).replace("[", "(")] if self.model else []
        self.border_title = " · ".join(words)

    def on_text_area_changed(self) -> None:
        lines = max(1, min(MOST_LINES, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != lines + 2:
            self.styles.height = lines + 2

    async def _on_key(self, event: events.Key) -> None:
        match which(Where.COMPOSER, event.key):
            case "composer.send":
                self._enter(event)
            case "" if event.key in ("up", "down") and self.move_at_edge(event.key):
                self._stop(event)
            case "composer.newline":
                self._stop(event)
                self.insert("\n")
            case "composer.plan":
                self._stop(event)
                self.plan_mode = not self.plan_mode
            case "composer.goal":
                self._stop(event)
                self.goal_mode = not self.goal_mode
            case _:
                await super()._on_key(event)

    def _enter(self, event: events.Key) -> None:
        self._stop(event)
        row, column = self.cursor_location
        if self.text and self.document.get_line(row)[:column].endswith("\\"):
            self.action_delete_left()
            self.insert("\n")
            return
        if self._wants_completion() and self.accept():
            return
        if self.text.strip() or self.sends_empty:
            # Taken out at once: what is typed from here on is another message.
            self.post_message(self.Submitted(self.written, self.plan_mode, self.goal_mode))
            self.text = ""
            self.plan_mode = self.goal_mode = False

    def _wants_completion(self) -> bool:
        """A word that is written out already is sent, not completed."""
        offers, token = self.offers, self.token
        if offers is None or token is None or offers.chosen is None:
            return False
        return offers.chosen.insert.lstrip("/@") != token.query

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    def put_back(self, text: str, plan_mode: bool, goal_mode: bool = False) -> None:
        """A message was refused: it stands before what was written since."""
        self.text = f"{text}\n{self.written}" if self.text else text
        self.plan_mode = self.plan_mode or plan_mode
        self.goal_mode = self.goal_mode or goal_mode
        self.move_cursor(self.document.end)
