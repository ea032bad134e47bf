"""A tab that shows what no event tells whole, and so reads it."""

from uuid import UUID

from quarterdeck.store.deck import Deck
from quarterdeck.tui.panes.tabs import TabPane


class ReadingTab(TabPane):
    """Reads when it is looked at, and when the line is back while it is.

    Who derives from it says what is read (`read`), and asks `moved_on` whether there may be more.
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self.is_shown = False
        self._state: tuple[object, ...] | None = None

    def read(self) -> None:
        """Begins to read what is shown."""
        raise NotImplementedError

    def shown(self) -> None:
        self.is_shown = True
        self.read()

    def hidden(self) -> None:
        self.is_shown = False

    def come_online(self) -> None:
        if self.is_shown:
            self.read()

    def moved_on(self) -> bool:
        """Whether the replica's state is another since this was asked, and somebody looks.

        What an agent or a waking changes is told by the end of the turn, or by the new state.
        """
        state = self._deck.replicas.get(self.replica_id)
        now = (state.status, state.works) if state else None
        before, self._state = self._state, now
        return self.is_shown and before not in (None, now)
