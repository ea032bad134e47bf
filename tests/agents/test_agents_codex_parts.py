"""How codex's words become those of the protocol, without codex."""

import pytest

from quarterdeck.agents.codex.items import (
    command_of,
    diff_parts,
    ended,
    first_line,
    started,
    tail_of,
)
from quarterdeck.agents.codex.questions import CodexQuestion, _decision, _value
from quarterdeck.agents.output import KEPT
from quarterdeck.agents.session.permissions import GivenAnswer


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/bin/bash -lc 'echo a; echo b'", "echo a; echo b"),
        ("/usr/bin/zsh -c ls", "ls"),
        ("git status", "git status"),
        ("/bin/bash -lc 'broken", "/bin/bash -lc 'broken"),
        ("", ""),
    ],
)
def test_commands_are_shown_without_their_shell(command: str, shown: str) -> None:
    assert command_of({"command": command}) == shown


def test_hunks_become_changes_of_their_own() -> None:
    diff = "@@ -3,2 +3,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n d\n+e\n\\ No newline at end of file\n"
    change = {"path": "f", "kind": {"type": "update", "move_path": None}, "diff": diff}
    assert [(one["oldText"], one["newText"]) for one in diff_parts(change)] == [
        ("a\nb\n", "a\nc\n"),
        ("d\n", "d\ne\n"),
    ]
    assert first_line(change) == 3


def test_new_and_deleted_files_are_told_whole() -> None:
    new = {"path": "f", "kind": {"type": "add"}, "diff": "x\n"}
    gone = {"path": "f", "kind": {"type": "delete"}, "diff": "x\n"}
    assert [(d["oldText"], d["newText"]) for d in diff_parts(new)] == [(None, "x\n")]
    assert [(d["oldText"], d["newText"]) for d in diff_parts(gone)] == [("x\n", "")]


def test_a_long_output_keeps_its_end() -> None:
    text = tail_of("x" * KEPT + "end")
    assert text.startswith("[3 characters of earlier output left out]\n") and text.endswith("end")
    item = {"id": "c", "type": "commandExecution", "aggregatedOutput": "y" * (2 * KEPT)}
    told = ended({**item, "status": "completed"}, shown=True)
    assert len(told["rawOutput"]["aggregatedOutput"]) < KEPT + 100
    assert told["content"][0]["content"]["text"] == told["rawOutput"]["aggregatedOutput"]


def test_an_item_nobody_knows_is_a_call_with_its_own_name() -> None:
    call = started({"id": "x", "type": "collabAgentToolCall", "tool": "spawn", "prompt": "go"})
    assert call["title"] == "Collab agent tool call: spawn" and call["rawInput"] == "go"


def test_decisions_that_carry_something() -> None:
    amended = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}
    option_id, (option, answer) = _decision(amended)
    assert (option_id, option.kind, answer) == (
        "acceptWithExecpolicyAmendment",
        "allow_always",
        amended,
    )
    refused = {
        "applyNetworkPolicyAmendment": {
            "network_policy_amendment": {"host": "example.org", "action": "deny"}
        }
    }
    _, (option, answer) = _decision(refused)
    assert option.kind == "reject_always" and "example.org" in option.name and answer == refused


@pytest.mark.parametrize(
    ("shape", "given", "value"),
    [
        ({"type": "boolean"}, GivenAnswer(option="true"), True),
        ({"type": "integer"}, GivenAnswer(text="-3"), -3),
        ({"type": "number"}, GivenAnswer(text="1.5"), 1.5),
        ({"type": "integer"}, GivenAnswer(text="many"), "many"),
        ({"type": "string"}, GivenAnswer(text="3"), "3"),
    ],
)
def test_answers_to_a_form_have_its_types(shape, given, value) -> None:
    assert _value(shape, given) == value


def test_a_secret_question_says_so_to_who_shows_it() -> None:
    assert CodexQuestion("Password?", free=True, secret=True).decision.payload["secret"] is True
    assert "secret" not in CodexQuestion("Name?", free=True).decision.payload
