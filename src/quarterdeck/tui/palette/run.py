"""Opens the palette, and carries out the chosen entry."""

from typing import Any

from textual.app import App
from textual.screen import Screen

from quarterdeck.store.app_state import AppState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import keys_of
from quarterdeck.tui.palette.entries import PaletteEntry, entries
from quarterdeck.tui.palette.screen import PaletteScreen
from quarterdeck.tui.screens.deck import DeckScreen
from quarterdeck.tui.textual_ext.type_ahead import TypeAhead, hold_keys


async def run_palette(app: App[Any], app_state: AppState) -> None:
    """Ask for an entry, and carry it out where the user was."""
    screen: Screen[object] = app.screen
    chosen = await app.push_screen_wait(
        PaletteScreen(entries(screen, app_state.ordered(), _meant(screen)))
    )
    if chosen is None:
        return
    with hold_keys(screen, chosen.text):
        if chosen.replica_id is not None:
            (await _deck_screen(app)).go_to(chosen.replica_id)
        elif chosen.page:
            (await _deck_screen(app)).action_page(chosen.page)
        else:
            await _act(app, screen, chosen)


def _meant(screen: Screen[object]) -> list[ReplicaState]:
    return screen.meant if isinstance(screen, DeckScreen) else []


async def _deck_screen(app: App[Any]) -> DeckScreen:
    """Return the main screen, with nothing over it."""
    while not isinstance(app.screen, DeckScreen):
        await app.pop_screen()
    return app.screen


async def _act(app: App[Any], screen: Screen[object], entry: PaletteEntry) -> None:
    action, node = entry.action, entry.node
    if action is None or node is None or app.screen is not screen:
        return
    if action.method:
        await app.run_action(action.method.removeprefix("own."), default_namespace=node)
    elif isinstance(app, TypeAhead):
        app.press_next(keys_of(action)[0])
