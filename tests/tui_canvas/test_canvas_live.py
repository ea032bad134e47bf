"""The canvas of a replica, in every state of it."""

import asyncio
from pathlib import Path

import pytest

from quarterdeck.store.files import CanvasState
from tests.support.waiting import eventually
from tests.tui_shell.live import Installation

MAKES_A_PLAN = (
    "```sh\n"
    "mkdir -p ~/.quarterdeck/canvas && cd ~/.quarterdeck/canvas\n"
    "printf '# The plan\\n\\n- **first** \\033[31mstep\\n' > plan.md\n"
    "head -c 3000 /dev/urandom > photo.png\n"
    "```"
)


async def test_markdown_is_rendered_and_saved_without_replacing_silently(
    live: Installation, tmp_path: Path
) -> None:
    await live.create("alpha", MAKES_A_PLAN)
    async with live.cockpit() as desk:
        await desk.see("1 block ran")
        await desk.press("5")
        await desk.see("plan.md", "markdown", "photo.png", "image", "2.9 KB")
        await desk.press("end", "enter")
        await desk.see("The plan", "• first step")
        await desk.press("v")
        await desk.see("1 # The plan", "3 - **first** step")
        target = tmp_path / "kept.md"
        await desk.press("s", *["backspace"] * len("plan.md"), *str(target), "enter")
        await desk.see("Saved as")
        assert target.read_text().startswith("# The plan\n\n- **first** \x1b[31m")
        target.write_text("mine")
        await desk.press("s", *["backspace"] * len("plan.md"), *str(target), "enter")
        await desk.see("Replace the file?")
        await desk.press("n")
        await desk.miss("Replace the file?")
        assert target.read_text() == "mine"
        await desk.press("enter")
        await desk.see("Replace the file?")
        await desk.press("y")
        await desk.see("Saved as")
        assert target.read_text().startswith("# The plan")
        await desk.press("escape", "home", "enter")
        await desk.see("image of type image/png", "s saves it to a file")


@pytest.mark.long
async def test_an_upload_is_there_at_once_or_waits_for_the_start(
    live: Installation, tmp_path: Path
) -> None:
    record = await live.create("alpha")
    (tmp_path / "notes.txt").write_text("bring apples\n")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("5")
        await desk.see("The canvas is empty.")
        await desk.press("u", *str(tmp_path / "no"), "tab")
        await desk.see("notes.txt")
        await desk.press("enter")
        await desk.see("Put there as ~/.quarterdeck/canvas/notes.txt", "13 bytes")
        async with live.client() as client:
            await client.replicas.sleep(record.id)
        await desk.see("Sleeping: w wakes it")
        await desk.press("u", *str(tmp_path / "notes.txt"), "enter")
        await desk.see("Queued", "◌ notes-2.txt", "waits for the start")
        assert desk.replica("alpha").status == "sleeping"
        await desk.press("m")
        await eventually(lambda: desk.focus == "Composer")
        await desk.see("~/.quarterdeck/canvas/notes-2.txt", "with the next message: notes-2.txt")
        await desk.write("read it")
        await desk.press("enter")
        await desk.see("Other agents here", "○ idle")
        async with live.client() as client:
            events = (await client.history.page(record.id)).events
        (said,) = [one.payload for one in events if one.type == "user-message"]
        assert [name.rpartition("/")[2] for name in said["uploads"]] == ["notes-2.txt"]
        await desk.press("escape", "5")
        await desk.see(" notes-2.txt", " notes.txt")
        await desk.miss("waits for the start")


async def test_enter_after_an_upload_opens_it_though_the_list_is_still_being_read(
    live: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    (tmp_path / "notes.txt").write_text("bring apples\n")
    read, go_on = CanvasState.read, asyncio.Event()

    async def read_late(state: CanvasState) -> None:
        await go_on.wait()
        await read(state)

    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("5")
        await desk.see("The canvas is empty.")
        monkeypatch.setattr(CanvasState, "read", read_late)
        await desk.press("u", *str(tmp_path / "notes.txt"), "enter")
        await desk.see("Put there as")
        await desk.press("enter")
        go_on.set()
        await desk.see("bring apples")


@pytest.mark.long
async def test_what_cannot_be_uploaded_is_said_beside_the_path(
    live: Installation, tmp_path: Path
) -> None:
    await live.create("alpha")
    (tmp_path / "huge").write_bytes(b"x" * ((5 << 20) + 1))
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("5")
        await desk.see("The canvas is empty.")
        await desk.press("u", *str(tmp_path / "huge"), "enter")
        await desk.see("Larger than 5 MB.", "huge")
        await desk.press(*"x", "enter")
        await desk.see("No such file or directory.", "hugex")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "ItemList")
