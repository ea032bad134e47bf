"""A text area that looks its styles up when they have changed.

Textual's looks up ten of them each time it is drawn, which was a sixth of what a typed key costs.
"""

from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import TextArea


class StyledOnce(TextArea):
    """Put in the place of `TextArea` among a widget's bases."""

    _styled: object = None
    """The theme that has the styles of now."""

    def notify_style_update(self) -> None:
        """Part of `Widget`."""
        self._styled = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Part of `TextArea`, whose own is passed over when it would find nothing new."""
        if self._styled is not None and self._styled is self._theme:
            return super(TextArea, self).render_lines(crop)
        self._styled = self._theme
        return super().render_lines(crop)
