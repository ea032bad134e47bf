"""Single commands in a replica of the real service."""

import pytest

from quarterdeck.tui.panes.exec import ExecPane
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation


async def ready(desk: Desk) -> None:
    """The only replica's prompt has the keys."""
    await desk.see("○ alpha")
    await desk.press("7")
    await desk.see("Runs one command")
    await eventually(lambda: desk.focus == "ExecPrompt")


async def run(desk: Desk, command: str) -> None:
    await desk.press(*("space" if c == " " else c for c in command), "enter")


async def test_commands_run_one_below_the_other(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await ready(desk)
        await run(desk, "echo 1w?q; exit 3")
        await desk.see("$ echo 1w?q; exit 3", "exit 3", "  1w?q")
        await run(desk, "printf '\\033[31mred\\033[0m \\033]0;owned\\007\\033[2Jok\\n'")
        await desk.see("exit 0", "  red ok", "exit 3")
        assert "owned" not in desk.text.split("exit 0")[-1]
        # Up brings back what was run, and what was typed comes back behind it.
        await desk.press(*"half", "up", "up")
        prompt = desk.app.screen.query_one(ExecPane).prompt
        await eventually(lambda: prompt.value == "echo 1w?q; exit 3")
        await desk.press("down", "down")
        await eventually(lambda: prompt.value == "half")


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    ["sleep 45", "sleep 45; echo never", "while :; do :; done", "trap '' INT; sleep 44; :"],
)
async def test_a_command_is_interrupted(live: Installation, command: str) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await ready(desk)
        await run(desk, command)
        await desk.see("runs since")
        [one] = desk.app.app_state.exec_runs.of(desk.replica("alpha").id)

        await desk.press("ctrl+x")
        if "trap" in command:
            # It does not listen: the second time it is killed.
            await eventually(lambda: one.interrupted)
            assert one.running
            await desk.press("ctrl+x")
        await eventually(lambda: not one.running)
        assert one.seconds is not None and one.seconds < 30
        assert one.problem == ""
        await desk.miss("runs since")


async def test_nothing_typed_is_lost_when_it_sleeps(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await ready(desk)
        async with live.client() as client:
            await client.replicas.sleep(desk.replica("alpha").id)
        await desk.see("sleeping")
        await run(desk, "echo hi")
        await desk.see("Asleep;", "echo hi")
        assert desk.app.screen.query_one(ExecPane).prompt.value == "echo hi"
