"""The panel at the right of a wide window. While it is hidden nothing is read or made for it."""

from typing import ClassVar

from textual import work
from textual.binding import BindingType

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.info import is_missing, read_info
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.reading.row_list import Row, RowList
from quarterdeck.tui.widgets.info.facts import rows_of
from quarterdeck.tui.widgets.placed import Placed

NARROWEST = 10
"""Cells below which it has no size yet."""


class InfoPanel(RowList, Placed):
    """Facts of one replica; the cursor goes from link to link."""

    DEFAULT_CSS = """
    InfoPanel {
        width: 34;
        padding: 0 1;
        border-left: solid $panel-lighten-2;
        &:blur > .painted--here { background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.INFO)]

    def __init__(self, deck: Deck) -> None:
        super().__init__()
        self._deck = deck
        self._state: ReplicaState | None = None
        self._asked: ReplicaState | None = None
        """What is missing of this one is being read, or could not be."""
        self._shown: list[Row] = []

    @property
    def place(self) -> Where:
        return Where.INFO

    def show(self, state: ReplicaState) -> None:
        """The replica as the store has it. Costs nothing while the panel is not seen."""
        self._state = state
        self._show_facts()

    def come_online(self) -> None:
        """The line is back: what could not be read is read now."""
        self._asked = None
        self._show_facts()

    def on_show(self) -> None:
        self._show_facts()

    def on_resize(self) -> None:
        super().on_resize()
        self._show_facts()

    def _show_facts(self) -> None:
        state, width = self._state, self.size.width - 1
        if state is None or not self.display or width < NARROWEST:
            return
        rows = rows_of(state, state.chat_to_show, self._deck.environment_names, width)
        if rows != self._shown:
            self._shown = rows
            self.show_rows(rows)
        if state is not self._asked and is_missing(self._deck, state):
            self._asked = state
            self._read(state)

    @work(group="read", exclusive=True)
    async def _read(self, state: ReplicaState) -> None:
        try:
            await read_info(self._deck, state)
        except* ClientError as errors:
            # What is missing is left out; the line itself is watched by the deck.
            first = errors.exceptions[0]
            self._deck.line_lost(first)

    def action_copy_link(self) -> None:
        if self.selected:
            copy_text(self, self.selected)
