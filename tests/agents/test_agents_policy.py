"""What a permission policy answers in place of a person, and what it leaves to one."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.codex.listener import Narrator
from quarterdeck.agents.codex.questions import Approvals
from quarterdeck.agents.port import PolicySession, Prompt
from quarterdeck.agents.session.permissions import PermissionRequests
from quarterdeck.agents.session.policy import PolicyJudge, propose
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.permissions import Permissions
from tests.agents.test_agents_acp_questions import ASKING, asked, form

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permissions(policy: str = "ask", *rules: str) -> Permissions:
    """`rules` are an action and a pattern each."""
    parts = [rule.split(" ", 1) for rule in rules]
    given = [{"action": action, "pattern": pattern} for action, pattern in parts]
    return Permissions.model_validate({"policy": policy, "rules": given})


def run_of(command: object, **more: Any) -> dict[str, Any]:
    raw = {"command": command, **more}
    return {"toolCallId": "t", "title": "x", "kind": "execute", "rawInput": raw}


def edit_of(*paths: str, kind: str = "edit") -> dict[str, Any]:
    locations = [{"path": path} for path in paths]
    return {"toolCallId": "t", "title": "x", "kind": kind, "locations": locations}


class Judge:
    """The policy of a workspace in a directory."""

    def __init__(self, workspace: Path) -> None:
        self.given = permissions()
        self.judge = PolicyJudge(lambda: self.given, str(workspace), str(workspace / "shop"))

    def __call__(
        self, given: Permissions, call: dict[str, Any], options: list[dict[str, str]] = OPTIONS
    ) -> str:
        self.given = given
        proposed = propose(call, options)
        answer = proposed and self.judge.answer(proposed)
        return answer.option if answer else "asked"


@pytest.fixture
def answer(tmp_path: Path) -> Judge:
    root = tmp_path / "workspace"
    (root / "shop" / "src").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root / "shop" / "away").symlink_to(tmp_path / "outside")
    (root / "shop" / "link.py").symlink_to(tmp_path / "outside" / "x.py")
    (root / "shop" / "hooks").symlink_to(root / "shop" / ".git" / "hooks")
    return Judge(root)


def test_without_a_policy_everything_is_asked(answer: Judge) -> None:
    for call in (run_of("git status"), edit_of("src/a.py"), {"toolCallId": "t", "kind": "fetch"}):
        assert answer(permissions(), call) == "asked"


@pytest.mark.parametrize("policy", ["ask", "edits", "all"])
def test_rules_answer_under_each_policy(answer: Judge, policy: str) -> None:
    rules = permissions(policy, "allow git status *", "reject git push")
    assert answer(rules, run_of("git status -s")) == "yes"
    assert answer(rules, run_of(["bash", "-lc", "git status"])) == "yes"
    assert answer(rules, run_of("git push -f")) == "no"
    assert answer(rules, run_of("git status && git push")) == "no"
    assert answer(rules, run_of("env git push")) == "asked"


def test_edits_are_allowed_in_the_workspace_alone(answer: Judge, tmp_path: Path) -> None:
    edits = permissions("edits")
    inside = [
        *("src/a.py", "new/dir/b.py", "../other/c.py", str(tmp_path / "workspace/shop/d.py")),
        *("src/../e.py", "src/new/../f.py"),
    ]
    for path in inside:
        assert answer(edits, edit_of(path)) == "yes", path
    outside = [
        *(
            "../../outside/x",
            "/etc/passwd",
            "away/x",
            "away/../x",
            "link.py",
            str(tmp_path),
            "~/x/../../../../x",
        ),
        *(".git/hooks/pre-commit", ".git", "hooks/pre-commit", ".quarterdeck/hooks/start.sh"),
        *(".claude/settings.json", ".env", "src/.venv/x", "../.git/config", "\0", "a\0b"),
    ]
    for path in outside:
        assert answer(edits, edit_of(path)) == "asked", path
    assert answer(edits, edit_of("src/a.py", "/etc/passwd")) == "asked"
    diff = {**edit_of("src/a.py"), "content": [{"type": "diff", "path": "/etc/passwd"}]}
    assert answer(edits, diff) == "asked"
    assert answer(edits, {**edit_of(), "rawInput": {"file_path": "src/a.py"}}) == "yes"
    assert answer(edits, {**edit_of("src/a.py"), "rawInput": {"file_path": "/x"}}) == "asked"


def test_what_is_no_edit_of_known_files_is_asked(answer: Judge) -> None:
    edits = permissions("edits")
    for call in (
        edit_of(),
        run_of("touch x"),
        edit_of("a", kind="delete"),
        edit_of("a", kind="move"),
    ):
        assert answer(edits, call) == "asked"


def test_all_allows_what_no_rule_rejects(answer: Judge) -> None:
    rules = permissions("all", "reject git push")
    for call in (
        run_of("rm -rf / $x"),
        edit_of("/etc/passwd"),
        {"toolCallId": "t", "kind": "fetch"},
    ):
        assert answer(rules, call) == "yes"
    assert answer(rules, run_of("true; git push")) == "no"
    # A command that is not told may be any.
    assert answer(rules, {"toolCallId": "t", "kind": "execute", "title": "git push"}) == "asked"
    assert answer(permissions("all"), {"toolCallId": "t", "kind": "execute"}) == "yes"


@pytest.mark.parametrize(
    "more",
    [
        {"args": ["rm"]},
        {"env": {"GIT_PAGER": "rm"}},
        {"stdin": "rm"},
        {"commands": ["rm", "git status"]},
        {"dangerouslyDisableSandbox": True},
    ],
)
def test_a_command_that_is_not_the_whole_call_is_asked(answer: Judge, more: dict[str, Any]) -> None:
    rules = permissions("edits", "allow git status")
    assert answer(rules, run_of("git status", **more)) == "asked"
    assert answer(rules, run_of("git status", commands=["git status"], env={}, cwd="/x")) == "yes"


def test_a_command_of_another_tool_is_no_command(answer: Judge) -> None:
    call = {**run_of("git status"), "kind": "other"}
    assert answer(permissions("ask", "allow git status"), call) == "asked"
    assert answer(permissions("all", "reject git status"), call) == "no"


@pytest.mark.parametrize("given", [7, ["git", 7], {"a": 1}, None, []])
def test_a_command_of_another_shape_is_not_known(answer: Judge, given: object) -> None:
    assert answer(permissions("ask", "allow git status"), run_of(given)) == "asked"


@pytest.mark.parametrize(
    ("kinds", "allowing", "rejecting"),
    [
        (["allow_once", "allow_once", "reject_once"], "asked", "2"),  # the answers to a question
        (["allow_always", "reject_always"], "asked", "asked"),
        (["allow_once"], "0", "asked"),
        (["reject_once", "allow_once", "reject_once"], "1", "0"),
        (["", "allow_once "], "asked", "asked"),
    ],
)
def test_only_options_for_once_are_chosen(
    answer: Judge, kinds: list[str], allowing: str, rejecting: str
) -> None:
    options = [{"optionId": str(n), "kind": kind} for n, kind in enumerate(kinds)]
    assert answer(permissions("all"), run_of("ls"), options) == allowing
    assert answer(permissions("all", "reject ls"), run_of("ls"), options) == rejecting


def test_plans_and_questions_are_left_to_a_person(answer: Judge) -> None:
    plan = {"toolCallId": "t", "title": "Ready to code?", "kind": "switch_mode"}
    assert answer(permissions("all"), plan) == "asked"
    assert answer(permissions("all"), {}) == "asked"


def test_nothing_is_allowed_while_the_agent_plans(answer: Judge) -> None:
    answer.judge.plans = True
    rules = permissions("all", "allow git status", "reject git push")
    assert answer(rules, run_of("git status")) == "asked"
    assert answer(rules, edit_of("src/a.py")) == "asked"
    assert answer(rules, run_of("git push")) == "no"


AGENT = """
    def prompt(message):
        send(id=7, method="session/request_permission", params={params})
        say(json.dumps(read().get("result")))
        answer(message, {{"stopReason": "end_turn"}})
    serve(prompt)
"""
RUNS = AGENT.format(params={"toolCall": run_of("git status"), "options": OPTIONS})


def types(heard) -> list[str]:
    return [event.type for event in heard.events]


async def test_an_agent_is_answered_and_no_person_asked(scripted, heard, spec) -> None:
    given = permissions("ask", "allow git *")
    await (await scripted(RUNS, replace(spec, permissions=lambda: given))).prompt(Prompt("m", "go"))
    assert types(heard) == ["policy-answer", "acp-session_update"]
    assert json.loads(heard.text()) == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    told = heard.events[0].payload
    assert told.pop("requestId") and told == {
        "toolCall": run_of("git status"),
        "allowed": True,
        "rules": ["git *"],
        "text": "Allowed by the rule `git *`",
    }


async def test_what_was_reported_of_a_call_before_counts_too(scripted, heard, spec) -> None:
    """Mistral Vibe requests permission with the id of the call alone."""
    call = run_of("git push")
    body = f"""
    reported = {call}
    def prompt(message):
        update(sessionUpdate="tool_call", status="pending", **reported)
        send(id=7, method="session/request_permission",
             params={{"toolCall": {{"toolCallId": "t", "title": None}}, "options": {OPTIONS}}})
        say(json.dumps(read().get("result")))
        answer(message, {{"stopReason": "end_turn"}})
    serve(prompt)
    """
    given = permissions("all", "reject git push")
    session = await scripted(body, replace(spec, permissions=lambda: given))
    await session.prompt(Prompt("m", "go"))
    assert json.loads(heard.text()) == {"outcome": {"outcome": "selected", "optionId": "no"}}
    (told,) = (event.payload for event in heard.events if event.type == "policy-answer")
    assert told["toolCall"] == call


async def test_a_changed_policy_answers_an_open_question(scripted, heard, spec) -> None:
    given = permissions()
    session = await scripted(RUNS, replace(spec, permissions=lambda: given))
    turn = asyncio.create_task(session.prompt(Prompt("m", "go")))
    question = (await heard.until(asked(0))).payload
    assert isinstance(session, PolicySession)
    await session.review_questions()
    assert types(heard) == ["acp-permission_request"]
    given = permissions("ask", "reject git status")
    await session.review_questions()
    await turn
    outcome, told = (event.payload for event in heard.events[1:3])
    assert outcome["outcome"] == {"outcome": "selected", "optionId": "no"}
    assert (told["text"], told["requestId"]) == (
        "Rejected by the rule `git status`",
        question["requestId"],
    )
    assert not await session.respond(question["requestId"], "yes", None)


async def test_plan_mode_asks_and_the_next_turn_does_not(scripted, heard, spec) -> None:
    modes = {"currentModeId": "code", "availableModes": [{"id": "code"}, {"id": "plan"}]}
    opened = {"sessionId": "s1", "modes": modes}
    set_mode = "session_set_mode=lambda message: answer(message, {})"
    body = RUNS.replace("serve(prompt)", f"serve(prompt, session={opened}, {set_mode})")
    session = await scripted(body, replace(spec, permissions=lambda: permissions("all")))
    turn = asyncio.create_task(session.prompt(Prompt("m", "plan", plan_mode=True)))
    question = (await heard.until(asked(0))).payload
    await session.respond(question["requestId"], "no", None)
    await turn
    await session.prompt(Prompt("m2", "go"))
    assert "policy-answer" in types(heard)


async def test_a_form_is_left_to_a_person(scripted, heard, spec) -> None:
    body = ASKING.format(params=form(sure={"type": "boolean"}))
    session = await scripted(body, replace(spec, permissions=lambda: permissions("all")))
    turn = asyncio.create_task(session.prompt(Prompt("m", "go")))
    question = (await heard.until(asked(0))).payload
    await session.respond(question["requestId"], "yes", None)
    await turn


class Codex:
    """Requests of Codex, answered by a policy where it can."""

    def __init__(self, heard, workspace: Path) -> None:
        self.heard = heard
        self.given = permissions()
        recorder = Recorder(heard)
        judge = PolicyJudge(lambda: self.given, str(workspace), str(workspace))
        self.requests = PermissionRequests(recorder, judge.answer)
        self.narrator = Narrator(recorder)
        self.approvals = Approvals(self.requests, self.narrator.edited_files)
        self.ready = recorder.open_turn

    async def ask(self, method: str, **params: Any) -> Any:
        """The answer; `asked` when a person is."""
        reply = await self.approvals.handle_request(method, {"itemId": "i", **params})
        assert reply is not None
        if self.requests.waits:
            await self.requests.cancel_all()
            return "asked"
        return (await reply())["decision"]

    async def run(self, command: str, **more: Any) -> Any:
        return await self.ask("item/commandExecution/requestApproval", command=command, **more)


@pytest.fixture
async def codex(heard, workspace: Path) -> Codex:
    codex = Codex(heard, workspace)
    await codex.ready()
    return codex


async def test_codex_commands_are_judged_without_their_shell(codex: Codex) -> None:
    codex.given = permissions("ask", "allow git status", "reject git push")
    assert await codex.run("/bin/bash -lc 'git status'") == "accept"
    assert await codex.run("git status") == "accept"
    assert await codex.run("/bin/bash -lc 'git status; git push'") == "decline"
    assert await codex.run("/tmp/bash -lc 'git status'") == "asked"
    assert await codex.run("/bin/bash -lc 'git status > x'") == "asked"
    assert await codex.run("") == "asked"
    told = [event.payload["text"] for event in codex.heard.events if event.type == "policy-answer"]
    assert told == [
        *["Allowed by the rule `git status`"] * 2,
        "Rejected by the rule `git push`",
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"networkApprovalContext": {"host": "x", "protocol": "https"}},
        {"additionalPermissions": {"network": {}}},
        {"kind": "writeStdin"},
        {"kind": "humanCommand"},
        {"availableDecisions": ["acceptForSession", "somethingNew"]},
    ],
)
async def test_what_codex_asks_beyond_a_command_is_left_to_a_person(
    codex: Codex, more: dict[str, Any]
) -> None:
    codex.given = permissions("all", "allow git status")
    assert await codex.run("git status", **more) == "asked"
    assert await codex.run("git status", kind="command") == "accept"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/permissions/requestApproval", {"permissions": {"network": {}}}),
        ("item/tool/requestUserInput", {"questions": [{"id": "q", "options": [{"label": "a"}]}]}),
        ("mcpServer/elicitation/request", {"mode": "form", "requestedSchema": {}}),
    ],
)
async def test_codex_questions_are_left_to_a_person(
    codex: Codex, method: str, params: dict[str, Any]
) -> None:
    codex.given = permissions("all")
    assert await codex.ask(method, **params) == "asked"


async def test_codex_edits_are_known_by_their_call(codex: Codex, workspace: Path) -> None:
    codex.given = permissions("edits")

    async def edit(*changes: tuple[str, dict[str, Any]], **more: Any) -> Any:
        item = {
            "id": "i",
            "type": "fileChange",
            "changes": [{"path": path, "kind": kind, "diff": ""} for path, kind in changes],
        }
        await codex.narrator.hear("item/started", {"item": item})
        answer = await codex.ask("item/fileChange/requestApproval", **more)
        await codex.narrator.hear("item/completed", {"item": {**item, "status": "completed"}})
        return answer

    add, update = {"type": "add"}, {"type": "update", "move_path": None}
    inside = str(workspace / "a.py")
    assert await edit((inside, add), ("b.py", update)) == "accept"
    assert await edit((inside, add), ("/etc/passwd", update)) == "asked"
    assert await edit((inside, {"type": "delete"})) == "asked"
    assert await edit((inside, {"type": "update", "move_path": "/etc/x"})) == "asked"
    assert await edit((inside, add), grantRoot="/") == "asked"
    assert await edit() == "asked"
    assert await codex.ask("item/fileChange/requestApproval") == "asked"
