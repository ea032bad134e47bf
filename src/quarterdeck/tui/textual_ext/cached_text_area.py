"""A text area that reads its styles only when they have changed.

Textual's reads ten of them each time it is drawn, which was a sixth of the cost of a typed key.
"""

from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import TextArea


class StyledOnce(TextArea):
    """Base class in place of `TextArea`."""

    _styled: object = None
    """The theme that the styles were read from."""

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
