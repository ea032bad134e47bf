"""Opens the palette, and does what was chosen in it."""

from typing import Any

from textual.app import App
from textual.screen import Screen

from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import keys_of
from quarterdeck.tui.palette.entries import Entry, entries
from quarterdeck.tui.palette.screen import PaletteScreen
from quarterdeck.tui.screens.deck import DeckScreen
from quarterdeck.tui.type_ahead import drop_keys, release_keys


async def run_palette(app: App[Any], deck: Deck) -> None:
    """Asks what to do, and does it where the person was."""
    screen: Screen[object] = app.screen
    chosen = await app.push_screen_wait(
        PaletteScreen(entries(screen, deck.ordered(), _meant(screen)))
    )
    if chosen is None:
        release_keys(screen)
    elif chosen.replica_id is not None:
        deck_screen = await _deck_screen(app)
        await deck_screen.go_to(chosen.replica_id)
    elif chosen.page:
        (await _deck_screen(app)).action_page(chosen.page)
    else:
        await _act(app, screen, chosen)


def _meant(screen: Screen[object]) -> list[ReplicaState]:
    return screen.meant if isinstance(screen, DeckScreen) else []


async def _deck_screen(app: App[Any]) -> DeckScreen:
    """The main screen, with nothing over it."""
    while not isinstance(app.screen, DeckScreen):
        await app.pop_screen()
    return app.screen


async def _act(app: App[Any], screen: Screen[object], entry: Entry) -> None:
    action, node = entry.action, entry.node
    if action is None or node is None or app.screen is not screen:
        drop_keys(screen)
        return
    release_keys(screen)
    if action.method:
        await app.run_action(action.method.removeprefix("own."), default_namespace=node)
    else:
        app.simulate_key(keys_of(action)[0])
