"""A reader that shows images, too."""

from textual import on
from textual.widget import Widget

from quarterdeck.tui.kit.pages import OutputPage, Page
from quarterdeck.tui.kit.text_view import ColoredReader
from quarterdeck.tui.pictures import PictureView


class PictureReader(ColoredReader):
    """Has a picture in the place of the text while an image is shown."""

    _instead = ""

    @property
    def picture(self) -> PictureView | None:
        """The picture, while there is one."""
        found = self.query(PictureView)
        return found.first() if found else None

    @property
    def front(self) -> Widget:
        """The text or the picture: what is visible takes the focus."""
        return self.picture or self.text

    async def show_picture(self, title: str, content: bytes, *, facts: str, instead: str) -> None:
        """Show an image; where it cannot be shown, the reason and a text `instead`."""
        had_focus = self.text.has_focus
        self._instead = instead
        await self.query(PictureView).remove()
        super().show_page(title, OutputPage(), facts=facts)
        self.say("")
        self.text.display = False
        picture = PictureView(content)
        await self.mount(picture, after=self.text)
        if had_focus:
            self.screen.set_focus(picture)

    def show_page(
        self, title: str, page: Page, *, facts: str = "", end: bool = False, keep: bool = False
    ) -> None:
        """Part of `Reader`: the picture is removed."""
        self.text.display = True
        if (picture := self.picture) is not None:
            if picture.has_focus:
                self.screen.set_focus(self.text)
            picture.remove()
        super().show_page(title, page, facts=facts, end=end, keep=keep)

    @on(PictureView.Drawn)
    def _picture_drawn(self, event: PictureView.Drawn) -> None:
        event.stop()
        if self.picture is None:
            return
        if event.failed:
            page = OutputPage(f"{event.text}\n\n{self._instead}")
            self.show_page(self._title, page, facts=self._facts)
        elif event.text not in self._facts:
            self._facts = f"{event.text}  {self._facts}"
            self._show_title()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Part of `Reader`: there is nothing to find or to copy in a picture."""
        if self.picture is not None and action in {"find", "find_next", "copy"}:
            return False
        return super().check_action(action, parameters)
