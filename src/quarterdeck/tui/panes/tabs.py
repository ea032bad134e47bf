"""What a tab of a replica shows."""

from typing import ClassVar
from uuid import UUID

from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from quarterdeck.store.deck import Deck
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.placed import Placed


class TabPane(Vertical, Placed):
    """Made when it is first looked at, and kept as long as its replica is shown.

    While another tab is shown it must cost nothing: no timers, no reads.
    """

    follows_hidden: ClassVar[bool] = False
    """Whether `show_state` is also called while another tab is shown."""

    class Left(Message):
        """The person goes elsewhere: to the list, or to another tab."""

        def __init__(self, to: str) -> None:
            super().__init__()
            self.to = to

    class Mentioned(Message):
        """Text for the composer of the chat: it goes there, and so does the person.

        `upload` is a canvas upload that waits, by name and id: it goes with the message.
        """

        def __init__(self, text: str, upload: tuple[str, str] | None = None) -> None:
            super().__init__()
            self.text = text
            self.upload = upload

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self.replica_id = replica_id

    @property
    def keys_target(self) -> Widget:
        """What takes the keys when the tab is chosen."""
        raise NotImplementedError

    def take_keys(self) -> None:
        """Gives the keys to what is shown, as soon as it is there."""
        self.screen.set_focus(self.keys_target)
        release_keys(self)

    def show_state(self) -> None:
        """Shows the replica as the store has it. Called once a frame when it changed, while shown."""

    def come_online(self) -> None:
        """The line is back: what could not be read is read now, if it is shown."""

    def shown(self) -> None:
        """The tab is looked at from now on."""

    def hidden(self) -> None:
        """Another tab is looked at."""
