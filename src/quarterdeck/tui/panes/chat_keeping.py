"""Taking a transcript along: in another program, as a file, its images as files or shown."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from textual import work
from textual.app import App

from quarterdeck.client.errors import ClientError
from quarterdeck.store.attaching import home_path
from quarterdeck.store.exporting import export_chat, find_images, write_new
from quarterdeck.transcript import Block, plain_lines
from quarterdeck.transcript.prose_export import markdown_of
from quarterdeck.tui.outside.copies import look_at
from quarterdeck.tui.outside.programs import OutsideError, editor, pager
from quarterdeck.tui.panes.chat_ask import AskField, AskScreen, WrongFieldError
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.pictures.words import saved_words, why_none
from quarterdeck.tui.type_ahead import drop_keys, hold_keys

TAKEN = "There is such a file already, and it is not touched: choose another name."


class Keeping(ChatBase):
    """Nothing is ever written over."""

    async def action_open_block(self) -> None:
        """The block under the cursor in `$PAGER`."""
        block = self.transcript.cursor_block
        if block is not None:
            await self._look_at("\n".join(plain_lines(block)), pager)

    async def action_open_all(self) -> None:
        """What is loaded of the transcript in `$EDITOR`."""
        await self._look_at(markdown_of(self.transcript.transcript.blocks), editor)

    async def _look_at(self, text: str, program: Callable[[], list[str]]) -> None:
        app = cast("App[Any]", self.app)
        try:
            await look_at(app, "transcript.md", text.encode(errors="replace"), program)
        except OutsideError as error:
            self.trouble(str(error))

    @work(exclusive=True, group="export")
    async def action_export(self) -> None:
        """Asks for a name, and writes the whole chat there."""
        chat_id = self.chat_id

        async def export(values: Mapping[str, str]) -> None:
            path = _path(values["path"])
            try:
                await export_chat(self._deck.client, self.replica_id, chat_id, path)
            except OSError as error:
                raise _wrong(error) from error
            self.tell(f"The chat is in {path}")

        hint = "chat.md for markdown, chat.jsonl for its events"
        field = AskField("path", "New file (.md or .jsonl)", f"{self._stem()}.md", hint)
        hold_keys(self)
        await self.app.push_screen_wait(AskScreen("Export the chat", [field], export, "writes it"))

    def _stem(self) -> str:
        """A file name after the replica; names come from anywhere."""
        name = self.replica.name if self.replica else "chat"
        kept = "".join(one if one.isalnum() or one in "-._" else "-" for one in name)
        return kept.lstrip(".-")[:60] or "chat"

    @work(exclusive=True, group="export")
    async def action_save_images(self) -> None:
        """Asks for a directory, and writes the images of the block under the cursor there."""
        images = await self._wanted_images()
        if images:
            await self._save(images, "Name, without its ending")

    @work(exclusive=True, group="export")
    async def action_view_images(self) -> None:
        """Shows the images of the block under the cursor; saves them where none can be shown."""
        from quarterdeck.tui.pictures.screen import PictureScreen

        images = await self._wanted_images()
        if not images:
            return
        why = why_none(cast("App[Any]", self.app))
        if why:
            await self._save(images, f"{why}\nName of a file to save it in, without its ending")
        else:
            contents = [content for _, content in images]
            await self.app.push_screen(PictureScreen(self._deck, contents))

    async def _wanted_images(self) -> list[tuple[str, bytes]]:
        """Those of the block under the cursor. Holds keys for who asks further; says if none."""
        block = self.transcript.cursor_block
        if block is None:
            return []
        hold_keys(self)
        try:
            images = await self._images_of(block)
        except ClientError as error:
            drop_keys(self)
            self.refused("no images", error)
            return []
        if not images:
            drop_keys(self)
            self.trouble(
                "There are no images in this block: put the cursor on one that names some."
            )
        return images

    async def _save(self, images: Sequence[tuple[str, bytes]], label: str) -> None:
        async def save(values: Mapping[str, str]) -> None:
            names = _names(_path(values["path"]), images)
            try:
                for path, (_, content) in zip(names, images, strict=True):
                    write_new(path, content)
            except OSError as error:
                raise _wrong(error) from error
            self.tell(saved_words(names))

        field = AskField("path", label, f"{self._stem()}-image")
        title = f"Save {len(images)} image{'s' if len(images) > 1 else ''}"
        await self.app.push_screen_wait(AskScreen(title, [field], save, "writes them"))

    async def _images_of(self, block: Block) -> list[tuple[str, bytes]]:
        transcript = self.transcript.transcript
        at = transcript.position(block.id)
        later = islice(transcript.blocks, len(transcript.blocks) if at is None else at + 1, None)
        end = next((one.at for one in later if one.at > block.at), None)
        return await find_images(self._deck.client, self.replica_id, self.chat_id, block.at, end)


def _path(typed: str) -> Path:
    if not typed:
        raise WrongFieldError("path", "A file needs a name.")
    return home_path(typed)


def _names(path: Path, images: Sequence[tuple[str, bytes]]) -> list[Path]:
    if len(images) == 1:
        return [path.with_name(f"{path.name}.{images[0][0]}")]
    return [path.with_name(f"{path.name}-{n}.{end}") for n, (end, _) in enumerate(images, 1)]


def _wrong(error: OSError) -> WrongFieldError:
    if isinstance(error, FileExistsError):
        return WrongFieldError("path", TAKEN)
    return WrongFieldError("path", f"It cannot be written: {error.strerror}.")
