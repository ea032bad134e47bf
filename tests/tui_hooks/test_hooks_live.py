"""Hooks while they run, and what is left of them."""

import asyncio
from pathlib import Path

import pytest

from tests.support.waiting import eventually
from tests.tui_files.shop import open_shop
from tests.tui_shell.live import Installation


async def open_gate(live: Installation, code: int) -> None:
    """Lets the hook that waits go on, and end with a code."""
    gates = (live.home / "workspaces").glob
    gate: Path = await eventually(lambda: next(gates("*/home/gate"), None), "the gate")
    await asyncio.to_thread((gate.parent / "code").write_text, str(code))
    await asyncio.to_thread(gate.rmdir)


@pytest.mark.long
async def test_a_running_hook_is_followed_and_its_end_is_read_from_the_log(
    live: Installation,
) -> None:
    async with live.cockpit() as desk:
        desk.app.app_state.add(await open_shop(live, "alpha"))
        await desk.see("preparing", "The hook shop (its own) runs:", "first step")
        await desk.press("6")
        await desk.see("◌ preparing: the hook shop (its own) runs", "● shop (its own)")
        await desk.see("running hook shop", "first step")
        await desk.see("✓ warm  shop (its own)", "exit 0")
        await open_gate(live, 0)
        await desk.see("✓ start shop (its own)", "last step", "start hook shop (its own)")
        await desk.miss("preparing")
        start = next(line for line in desk.text.splitlines() if "✓ start" in line)
        assert " s  " in start
        await desk.press("down")
        await desk.see("warm hook shop (its own)", "warming up", "3")
        await desk.press("v")
        await desk.see("script", "1 echo warming up; seq 3")


async def test_a_failed_start_says_why_and_is_tried_again_by_key(live: Installation) -> None:
    async with live.cockpit() as desk:
        desk.app.app_state.add(await open_shop(live, "alpha"))
        await desk.see("first step")
        await desk.press("6")
        await desk.see("● shop (its own)")
        await open_gate(live, 4)
        await desk.see("✗ failed: The start hook", "ended with code 4", "retry")
        await desk.see("✗ start shop (its own)", "exit 4")
        await desk.press("escape", "1")
        await desk.see("ended with code 4", "6 or alt+6 hook log · w retry")
        await desk.press("alt+6", "w")
        await desk.see("◌ preparing: the hook shop", "● shop (its own)", "first step")
        await open_gate(live, 0)
        await desk.see("✓ start shop (its own)", "✗ start shop (its own)")
        await desk.miss("preparing")


@pytest.mark.long
async def test_logs_are_there_without_waking_and_without_having_watched(
    live: Installation,
) -> None:
    record = await open_shop(live, "alpha")
    await open_gate(live, 0)
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        async with live.client() as client:
            await client.replicas.sleep(record.id)
        await desk.see("☾")
        await desk.press("6")
        await desk.see("✓ start shop (its own)", "✓ warm  shop (its own)", "last step")
        await desk.press("enter", "slash", *"first", "enter")
        await eventually(lambda: desk.focus == "TextView")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "HookRunList")
        assert desk.replica("alpha").status == "sleeping"
