"""An app for widgets without a cockpit around them, with the colors that our themes add."""

from textual.app import App

from quarterdeck.tui.themes import own_themes


class ThemedApp(App[None]):
    """In the dark theme."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return own_themes()[0].variables
