"""The full screens over the deck, by the names that actions call them.

A row's function loads what its screen needs: the start of the cockpit does not wait for it.
"""

from collections.abc import Callable

from quarterdeck.store.deck import Deck
from quarterdeck.tui.screens.page import PageScreen


def _environments(deck: Deck) -> PageScreen:
    from quarterdeck.tui.environments.screen import EnvironmentsScreen

    return EnvironmentsScreen(deck)


def _automations(deck: Deck) -> PageScreen:
    from quarterdeck.tui.automations.screen import AutomationsScreen

    return AutomationsScreen(deck)


def _settings(deck: Deck) -> PageScreen:
    from quarterdeck.tui.settings.screen import SettingsScreen

    return SettingsScreen(deck)


PAGES: dict[str, Callable[[Deck], PageScreen]] = {
    "environments": _environments,
    "automations": _automations,
    "settings": _settings,
}
