"""What every part of the screen works on."""

from collections.abc import Callable
from dataclasses import dataclass

from quarterdeck.store.deck import Deck
from quarterdeck.store.environment_contents import Contents
from quarterdeck.store.environment_hooks import HookShelf
from quarterdeck.store.environments import EnvironmentBook


@dataclass(frozen=True)
class Parts:
    """The state behind the screen."""

    book: EnvironmentBook
    contents: Contents
    hooks: HookShelf
    lost: Callable[[Exception], None]
    """Told of a line that broke: the deck finds out, and says when it is back."""
    online: Callable[[], bool]
    """Whether the deck knows of nothing wrong with the line."""

    @classmethod
    def of(cls, deck: Deck) -> "Parts":
        """Over the deck's client."""
        book = EnvironmentBook(deck)
        return cls(book, Contents(deck, book), HookShelf(deck), deck.line_lost, lambda: deck.online)
