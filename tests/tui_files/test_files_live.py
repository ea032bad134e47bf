"""Finding and reading files of a replica, through the real service."""

import os
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from quarterdeck.tui import outside as copies
from tests.support.waiting import eventually
from tests.tui_files.shop import open_shop
from tests.tui_shell.live import Installation


async def test_a_file_is_found_as_it_is_typed_read_and_mentioned(live: Installation) -> None:
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("200+ files")
        await desk.write("bask")
        await desk.see("1 file", "src/shop/basket.py")
        await desk.press("enter")
        await desk.see("1 ", '"""What is bought."""', "return sum(prices)", "1/5")
        await desk.press("slash", *"prices", "enter", "n")
        await desk.see("5/5")
        await desk.press("m")
        await eventually(lambda: desk.focus == "Composer")
        await desk.see("@src/shop/basket.py")


@pytest.mark.long
async def test_next_pages_come_while_the_cursor_goes_down(live: Installation) -> None:
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("200+ files")
        await desk.press("tab", "G")
        await desk.see("305 files")


@pytest.mark.long
async def test_what_is_no_text_or_was_not_there_is_told_plainly(live: Installation) -> None:
    record = await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("200+ files")
        await desk.write("logo")
        await desk.see("1 file", "logo.bin")
        await desk.press("enter")
        await desk.see("Not a text (256 bytes)", "00 01 02 03")
        await desk.press("escape", *["backspace"] * 4, *"gone")
        await desk.see("No file matches.")
        async with live.client() as client:
            await client.replicas.sleep(record.id)
        await desk.press(*["backspace"] * 4, *"till")
        await desk.see("1 file · as of", "src/shop/till.py")
        await desk.press("enter")
        await desk.see("Sleeping: w wakes it")
        await desk.press("tab", "w")
        await eventually(lambda: desk.replica("alpha").active)
        await desk.press("enter")
        await desk.see("def pay(amount):")


@pytest.mark.long
async def test_a_copy_that_cannot_be_written_is_read_outside(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_shop(live, "alpha")
    seen: list[tuple[str, str, bool]] = []

    def run(command: list[str]) -> int:
        path = Path(command[-1])
        seen.append((path.name, path.read_text(), bool(path.stat().st_mode & 0o222)))
        return 0

    async def ran(command: list[str]) -> int:
        return run(command)

    class Suspended:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: Any) -> None: ...

    monkeypatch.setattr(copies, "run_there", ran)
    monkeypatch.setitem(os.environ, "PAGER", "less -S")
    async with live.cockpit() as desk:
        monkeypatch.setattr(desk.app, "suspend", Suspended)
        await desk.see("○ idle")
        await desk.press("4")
        await desk.write("till")
        await desk.see("src/shop/till.py")
        await desk.press("tab", "p")
        await eventually(lambda: seen, "the pager")
    assert seen == [("till.py", "def pay(amount):\n    raise NotImplementedError\n", False)]


@pytest.mark.long
async def test_enter_before_the_answer_opens_what_was_typed(live: Installation) -> None:
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("200+ files")
        driver = desk.app._driver
        assert driver is not None
        for key in (*"basket", "enter", "slash", *"sum"):
            # In one burst, as a slow line delivers them.
            driver.send_message(Key(key, key if len(key) == 1 else None))
        await desk.see("src/shop/basket.py", "return sum(prices)", "5/5")
        assert desk.focus == "FindField"


@pytest.mark.parametrize("stem", ["漢" * 85, "🙂" * 100 + "é", "x" * 255, "../" * 50 + "x"])
def test_a_copy_for_another_program_has_a_name_that_file_systems_take(stem: str) -> None:
    with copies._copy(f"{stem}.diff", b"text", copies.READ_ONLY) as path:
        assert path.read_bytes() == b"text"
        assert path.suffix == ".diff"
