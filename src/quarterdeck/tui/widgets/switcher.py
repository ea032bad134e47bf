"""Several contents at one place, of which one is shown."""

from textual.widget import Widget
from textual.widgets import ContentSwitcher


class Switcher(ContentSwitcher):
    """Textual's, for contents that are made while somebody may be leaving."""

    async def bring(self, content: Widget, *, show: bool = True) -> bool:
        """Adds content; False when all of it was removed while it was being made."""
        with self.app.batch_update():
            await self.add_content(content)
            if content.parent is not self or not self.is_attached:
                return False
            if show:
                self.current = content.id
        return True
