"""Terminals in the cockpit, through the whole life of their replica."""

from collections.abc import Callable

import pytest

from tests.support.waiting import eventually
from tests.tui_shell.live import Installation


async def test_a_terminal_is_typed_in_ended_and_opened_again(
    live: Installation, require_tool: Callable[[str], str]
) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$", "[1 bash 1]")
        assert desk.focus == "TerminalView"
        await desk.press(*"echo", "space", *"a$((2+3))b", "enter")
        await desk.see("a5b")
        await desk.press(*"exit", "space", "3", "enter")
        await desk.see("ended (3): enter open another")
        await desk.press("enter")
        await desk.see("[1 bash 2]", "workspace$")
        await desk.press("ctrl+g", "c")
        await desk.see("[2 bash 3]")
        await desk.press("ctrl+g", "n")
        await desk.see("[1 bash 2]")
        await desk.press("ctrl+g", "escape", *"echo", "space", *"st$((3+4))ill", "enter")
        await desk.see("st7ill")  # it is the terminal that has the keys
        assert desk.focus == "TerminalView"
        await desk.press("ctrl+g", "l")
        await eventually(lambda: desk.focus == "ReplicaListView")


@pytest.mark.long
async def test_a_program_in_a_terminal_is_named_before_sleep_ends_it_and_help_follows_the_prefix(
    live: Installation,
) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        await desk.press("ctrl+g", "question_mark")
        await desk.see("Terminal, after its prefix key", "New terminal")
        await desk.press("escape")
        await desk.miss("Terminal, after its prefix key")
        assert desk.focus == "TerminalView"
        await desk.press(*"echo", "space", *"g$((2+3))o;sleep", "space", *"1000", "enter")
        await desk.see("g5o")
        async with live.client() as client:
            id = desk.replica("alpha").id

            async def runs_sleep() -> bool:
                (session,) = await client.terminals.list(id)
                return session.program == "sleep"

            await eventually(runs_sleep)
            await desk.press("ctrl+g", "l", "s")
            await desk.see("Sleep alpha?", "Stops a program in a terminal of alpha: sleep.")
            await desk.press("n")
            await desk.miss("Sleep alpha?")
            assert await runs_sleep()
        await desk.press("s", "y")
        await desk.see("Its terminals have ended")


@pytest.mark.long
async def test_keys_typed_in_one_burst_go_where_they_were_meant(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t", *"echo", "space", *"x$((4+4))y", "enter", "ctrl+g", "l", "n", *"Hi")
        await desk.see("New replica", "│ Hi")
        await desk.press("escape", "t")
        await desk.see("x8y")


@pytest.mark.long
async def test_sleep_ends_terminals_and_waking_brings_a_new_one(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        await desk.press(*"echo", "space", *"old-one", "enter")
        await desk.see("old-one")
        async with live.client() as client:
            await client.replicas.sleep(desk.replica("alpha").id)
        await desk.see("Its terminals have ended", "w wakes it")
        assert desk.focus == "Note"
        await desk.press("w")
        await desk.see("workspace$", "bash 1")
        await desk.miss("old-one")
        await eventually(lambda: desk.focus == "TerminalView")


@pytest.mark.long
async def test_a_terminal_goes_on_when_the_service_was_killed(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        await desk.press(*"A=before-$((1+1))", "enter")
        live.kill()
        await desk.see("✗ offline")
        await desk.press(*"echo", "space", *"$A-after", "enter")
        live.start()
        await desk.see("online", "before-2-after")


@pytest.mark.long
async def test_the_mouse_chooses_replicas_and_tabs(live: Installation) -> None:
    await live.create("alpha")
    await live.create("two")
    async with live.cockpit() as desk:
        await desk.see("alpha", "two")
        await desk.see("○ alpha", "○ two", " · builtin")
        # Which of the two came first decides their order.
        other = next(name for name in ("alpha", "two") if f"{name} · builtin" not in desk.text)
        rows = [row for row in desk.text.splitlines() if row.startswith((" ○ alpha", " ○ two"))]
        at = next(n for n, row in enumerate(rows) if row.startswith(f" ○ {other}"))
        await desk.pilot.click("ReplicaListView", offset=(3, at))
        await desk.see(f"{other} · builtin")
        await desk.pilot.click("#tabs", offset=(11, 0))
        await desk.see("workspace$")
        await eventually(lambda: desk.focus == "TerminalView")
        await desk.pilot.click("#tabs", offset=(2, 0))
        await eventually(lambda: desk.focus == "Composer")
