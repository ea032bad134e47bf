"""The facts of an automation as a part of its screen."""

from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.automations.text_view import TextView


class FactsView(TextView):
    """Scrolled by keys; has the keys of the automation."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *TextView.MOVES,
        *prompt_bindings(Where.AUTOMATION_FACTS),
    ]

    @property
    def place(self) -> Where:
        return Where.AUTOMATION_FACTS


class StoryView(TextView):
    """The facts of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *TextView.MOVES,
        *prompt_bindings(Where.AUTOMATION_RUN),
    ]

    @property
    def place(self) -> Where:
        return Where.AUTOMATION_RUN
