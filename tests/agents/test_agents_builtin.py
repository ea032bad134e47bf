"""The built-in agent end to end: a real agent process, real shells, real repositories."""

import asyncio
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from quarterdeck.agents.port import AgentDiedError, AgentUnavailableError, Prompt, StopReason
from quarterdeck.wire.chats import PLAN_APPROVED
from tests.support.git import commit_files


def message(*blocks: str, language: str = "sh", **options) -> Prompt:
    fences = [f"```{language}\n{block}\n```" for block in blocks]
    return Prompt("m1", "Please:\n\n" + "\n\nthen\n\n".join(fences), **options)


def output(update: dict) -> str:
    if not update["sessionUpdate"].startswith("tool_call"):
        return ""
    return "".join(part["content"]["text"] for part in update.get("content") or [])


@pytest.fixture
def repository(workspace: Path) -> Path:
    path = workspace / "deck"
    path.mkdir()
    (path / "old.txt").write_text("one\n")
    return commit_files(path)


async def test_blocks_run_in_order_and_the_first_failure_stops(builtin, heard, workspace) -> None:
    session = await builtin()
    prompt = message("echo one > a; cat a", "# a note\ncat missing\necho not reached", "touch b")
    outcome = await session.prompt(prompt)
    assert outcome.stop_reason == StopReason.FAILED
    assert outcome.error == "Built-in reported an error: `cat missing` failed with exit code 1."
    calls = heard.payloads("tool_call")
    assert [call["title"] for call in calls] == ["echo one > a; cat a", "cat missing"]
    assert {call["kind"] for call in calls} == {"execute"}
    assert {call["status"] for call in calls} == {"pending"}
    ends = [u for u in heard.payloads("tool_call_update") if "rawOutput" in u]
    assert [(u["status"], u["rawOutput"]["exitCode"]) for u in ends] == [
        ("completed", 0),
        ("failed", 1),
    ]
    assert [u["toolCallId"] for u in ends] == [call["toolCallId"] for call in calls]
    assert output(ends[0]) == "one\n"
    assert "missing" in output(ends[1])
    assert "not reached" not in output(ends[1])
    assert isinstance(ends[0]["rawOutput"]["durationMs"], int)
    assert not (workspace / "b").exists()
    assert "`cat missing` failed with exit code 1. 1 block after it was not run." in heard.text()


async def test_after_a_failure_the_session_goes_on(builtin, heard, workspace) -> None:
    session = await builtin()
    for command in ("exit 3", "no-such-program", "echo http 500 >/dev/null; kill -9 $$"):
        outcome = await session.prompt(message(command))
        assert outcome.stop_reason == StopReason.FAILED
        assert "model" not in (outcome.error or "")
    outcome = await session.prompt(message("touch done"))
    assert outcome.stop_reason == StopReason.END_TURN and (workspace / "done").exists()


async def test_output_streams_while_the_block_runs(builtin, heard, workspace) -> None:
    """The block waits for a file that is only made once its output was seen."""
    session = await builtin()
    turn = asyncio.create_task(
        session.prompt(message("echo begun; while [ ! -e go ]; do sleep 0.01; done; echo over"))
    )
    seen = await heard.until(lambda e: "begun" in output(e.payload))
    assert "rawOutput" not in seen.payload
    (workspace / "go").touch()
    await turn
    states = [u["status"] for u in heard.payloads("tool_call_update") if "status" in u]
    assert states == ["in_progress", "completed"]
    assert output(heard.payloads("tool_call_update")[-1]) == "begun\nover\n"


async def test_a_great_deal_of_output_is_cut_and_said(builtin, heard) -> None:
    session = await builtin()
    await session.prompt(message("yes 0123456789abcde | head -c 300000000; echo; echo end"))
    updates = heard.payloads("tool_call_update")
    last = output(updates[-1])
    assert updates[-1]["rawOutput"]["truncated"] is True
    assert re.match(r"\[299,934,469 bytes of earlier output left out\]\n", last)
    assert last.endswith("\nend\n")
    assert all(len(output(u)) < (64 << 10) + 100 for u in updates)
    assert len(updates) < 400


async def test_what_changed_is_told(builtin, heard, repository) -> None:
    session = await builtin()
    await session.prompt(message("cd deck; echo two >> old.txt; echo x > new.txt"))
    assert "Changed in **deck**" in heard.text()
    assert "- `new.txt` new" in heard.text()
    assert "- `old.txt` +1 -0" in heard.text()
    heard.events.clear()
    await session.prompt(message("ls"))
    assert "No files changed." in heard.text()
    heard.events.clear()
    commit = "git -c user.name=t -c user.email=t@example.invalid commit -qam 'second step'"
    await session.prompt(message(f"cd deck; {commit}; echo y >> new.txt"))
    assert re.search(r"- commit [0-9a-f]+ second step", heard.text())
    assert "- `new.txt` new" in heard.text()
    assert "- `old.txt` is as in the last commit" in heard.text()


async def test_plan_mode_runs_nothing_and_is_left_again(builtin, heard, workspace) -> None:
    session = await builtin()
    await session.prompt(message("touch a", "touch b", plan_mode=True))
    (plan,) = heard.payloads("plan")
    assert [entry["content"] for entry in plan["entries"]] == ["touch a", "touch b"]
    assert "Nothing was run" in heard.text()
    assert heard.payloads("tool_call") == []
    assert list(workspace.iterdir()) == []
    await session.prompt(message("touch a"))
    assert [path.name for path in workspace.iterdir()] == ["a"]


async def test_an_approved_plan_is_run(builtin, heard, workspace) -> None:
    session = await builtin()
    await session.prompt(message("touch a", "touch b", plan_mode=True))
    assert "Approve the plan" in heard.text()
    heard.events.clear()
    outcome = await session.prompt(Prompt("m2", f"A notice.\n\n{PLAN_APPROVED}"))
    assert outcome.stop_reason == StopReason.END_TURN
    assert {path.name for path in workspace.iterdir()} == {"a", "b"}
    assert [entry["status"] for entry in heard.payloads("plan")[-1]["entries"]] == 2 * ["completed"]
    assert "2 blocks ran without an error." in heard.text()
    await session.prompt(Prompt("m3", PLAN_APPROVED))  # nothing waits any more
    assert "I have no model" in heard.text()


async def test_a_plan_is_approved_after_a_restart_and_only_with_the_next_message(
    builtin, spec, heard, workspace
) -> None:
    session = await builtin()
    await session.prompt(message("touch a", plan_mode=True))
    await session.close()
    session = await builtin(replace(spec, session_id=session.id))
    await session.prompt(Prompt("m2", PLAN_APPROVED, plan_mode=True))
    assert list(workspace.iterdir()) == []
    await session.prompt(message("touch a", plan_mode=True))
    await session.prompt(message("touch b"))
    await session.prompt(Prompt("m3", PLAN_APPROVED))
    assert [path.name for path in workspace.iterdir()] == ["b"]


async def test_a_message_without_a_block_gets_an_honest_answer(builtin, heard, spec) -> None:
    elsewhere = {**spec.environment, "PATH": spec.state_directory}
    session = await builtin(replace(spec, environment=elsewhere))
    await session.prompt(Prompt("m", "Fix the bug, please.\n\n```python\nprint(1)\n```"))
    assert "I have no model" in heard.text()
    assert "```sh" in heard.text()
    assert "I did not run the block in `python`" in heard.text()
    assert "Not installed: Codex (`codex`), Claude (`claude`)" in heard.text()
    assert heard.payloads("tool_call") == []


async def test_an_interrupt_kills_the_whole_tree(builtin, heard, workspace, gone, appears) -> None:
    session = await builtin()
    script = (
        "sleep 1000 & echo $! > one; setsid sleep 1000 & echo $! > two;"
        " (trap '' TERM; sleep 1000 & echo $! > three; wait) & echo started; sleep 1000"
    )
    turn = asyncio.create_task(session.prompt(message(script, "touch never")))
    await heard.until(lambda e: "started" in output(e.payload))
    await appears(workspace / "three")
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    pids = [int((workspace / name).read_text()) for name in ("one", "two", "three")]
    assert await gone(*pids)
    last = heard.payloads("tool_call_update")[-1]
    assert (last["status"], last["rawOutput"]["exitCode"]) == ("failed", None)
    assert not (workspace / "never").exists()
    assert (await session.prompt(message("true"))).stop_reason == StopReason.END_TURN


@pytest.mark.long
async def test_the_background_goes_on_until_the_session_closes(
    builtin, heard, workspace, gone
) -> None:
    session = await builtin()
    chatter = "while :; do echo tick; sleep 0.01; done & echo $! > pid"
    await session.prompt(message(chatter))
    pid = int((workspace / "pid").read_text())
    await session.prompt(message(f"sleep 0.1; kill -0 {pid}"))
    assert heard.payloads("tool_call_update")[-1]["status"] == "completed"
    await session.close()
    assert await gone(pid)


@pytest.mark.long
async def test_a_killed_agent_takes_its_blocks_along_and_is_reloaded(
    builtin, heard, spec, workspace, gone, appears
) -> None:
    session = await builtin()
    await session.prompt(message("echo first"))
    turn = asyncio.create_task(
        session.prompt(message("echo $PPID > agent; sleep 1000 & echo $! > child; echo up; wait"))
    )
    await heard.until(lambda e: "up" in output(e.payload))
    os.kill(int((workspace / "agent").read_text()), signal.SIGKILL)
    with pytest.raises(AgentDiedError, match="killed by signal 9"):
        await turn
    assert await gone(int((workspace / "child").read_text()))

    heard.events.clear()
    again = await builtin(replace(spec, session_id=session.id))
    assert again.id == session.id
    await again.prompt(message("echo second"))
    assert "second" in output(heard.payloads("tool_call_update")[-1])
    assert "first" not in str(heard.events)
    assert heard.payloads("user_message_chunk") == []
    stored = await appears(Path(spec.state_directory, f"{session.id}.json"))
    assert "echo first" in stored
    assert "echo second" in stored


async def test_what_is_stored_is_for_its_owner_only(builtin, spec) -> None:
    session = await builtin()
    await session.prompt(message("true"))
    stored = Path(spec.state_directory, session.id)
    for suffix in (".json", ".block"):
        assert stored.with_suffix(suffix).stat().st_mode & 0o077 == 0


async def test_a_block_is_never_on_a_command_line(builtin, heard) -> None:
    session = await builtin()
    await session.prompt(message("tr '\\0' ' ' < /proc/$$/cmdline; : hidden-word"))
    assert "eval" in output(heard.payloads("tool_call_update")[-1])
    assert "hidden-word" not in output(heard.payloads("tool_call_update")[-1])


async def test_a_very_long_block_runs(builtin, heard) -> None:
    session = await builtin()
    await session.prompt(message("cat > /dev/null <<'END'\n" + "x" * 400_000 + "\nEND\necho long"))
    assert output(heard.payloads("tool_call_update")[-1]) == "long\n"


async def test_a_vanished_directory_is_a_failed_call(builtin, heard, workspace) -> None:
    session = await builtin()
    workspace.rmdir()
    await session.prompt(message("true"))
    last = heard.payloads("tool_call_update")[-1]
    assert last["status"] == "failed"
    assert "No such file or directory" in output(last)


async def test_an_unusable_state_directory_is_told(builtin, spec, tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AgentUnavailableError, match=r"Not a directory|exists"):
        await builtin(replace(spec, state_directory=str(tmp_path / "file")))


@pytest.mark.long
async def test_all_it_says_fits_the_models_of_the_protocol(builtin, heard, workspace) -> None:
    from acp.schema import SessionNotification

    session = await builtin()
    turns = [message("echo a", "false"), message("true", plan_mode=True), Prompt("m", "hello")]
    for prompt in turns:
        await session.prompt(prompt)
    kinds = {event.payload["sessionUpdate"] for event in heard.events}
    assert kinds == {"tool_call", "tool_call_update", "plan", "agent_message_chunk"}
    for event in heard.events:
        notification = {"sessionId": session.id, "update": event.payload}
        known = SessionNotification.model_validate(notification, extra="forbid")
        assert known.model_dump(by_alias=True, exclude_none=True, mode="json") == notification
