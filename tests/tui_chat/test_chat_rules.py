"""Rules that are added in the dialog of a permission request, and the list of a replica's rules."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.client.errors import ConflictError, NotConnectedError
from quarterdeck.store.commands import Commands
from quarterdeck.tui.widgets import question
from quarterdeck.wire.permissions import ChangePermissions, Permissions, ReplicaPermissions
from tests.support.waiting import eventually
from tests.tui_chat.test_chat_question import PERMISSION, ask, asking, focus, pane
from tests.tui_shell.frozen import FrozenCockpit, Story, screen_text

OPTIONS = [{"optionId": id, "name": name, "kind": kind} for id, (name, kind) in PERMISSION.items()]


def run(command: object, kind: str = "execute", **more: Any) -> Story:
    call = {"toolCallId": "t", "title": "Run it", "kind": kind, "rawInput": {"command": command}}
    call["rawInput"] |= more
    return (
        Story()
        .user("go")
        .add("acp-permission_request", requestId="r", toolCall=call, options=OPTIONS)
    )


class Given:
    """A replica's permissions, in place of a service."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.permissions = ReplicaPermissions(environment=Permissions(), effective=Permissions())
        self.answers: list[str | None] = []
        self.error: Exception | None = None
        self.closed = False
        monkeypatch.setattr(Commands, "permissions", self.read)
        monkeypatch.setattr(Commands, "change_permissions", self.change)
        monkeypatch.setattr(Commands, "respond", self.respond)
        monkeypatch.setattr(question, "GRACE_SECONDS", 0.0)

    @property
    def rules(self) -> list[str]:
        return [rule.line for rule in self.permissions.rules]

    async def read(self, _: UUID) -> ReplicaPermissions:
        return self.permissions

    async def change(self, _: UUID, change: ChangePermissions) -> ReplicaPermissions:
        if self.error is not None:
            raise self.error
        before = self.permissions
        rules = [rule for rule in before.rules if rule not in change.remove_rules]
        policy = change.policy if "policy" in change.model_fields_set else before.policy
        environment = before.environment
        cost_limit = before.cost_limit
        if "cost_limit" in change.model_fields_set:
            cost_limit = change.cost_limit
        effective = Permissions(policy=policy or environment.policy, cost_limit=cost_limit)
        self.permissions = ReplicaPermissions(
            policy=policy,
            rules=[*rules, *change.add_rules],
            cost_limit=cost_limit,
            environment=environment,
            effective=effective,
        )
        return self.permissions

    async def respond(self, *_: Any, option_id: str | None = None, **__: Any) -> None:
        self.answers.append(option_id)
        if self.closed:
            raise ConflictError("The agent no longer waits for this answer.", status=409)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    given = Given(monkeypatch)
    for name in ("permissions", "change_permissions", "respond"):
        bound = getattr(
            given, {"change_permissions": "change", "permissions": "read"}.get(name, name)
        )
        monkeypatch.setattr(Commands, name, lambda _, *a, bound=bound, **k: bound(*a, **k))
    return given


@pytest.mark.parametrize("closed", [False, True])
async def test_a_letter_adds_a_rule_and_allows_the_command(
    frozen: FrozenCockpit, given: Given, closed: bool
) -> None:
    given.closed = closed  # the engine may be quicker, and answers by the rule
    asking(frozen, run("cd src && git status -s"))
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        assert "r Always allow `cd src`, `git status *` by a rule" in screen_text(frozen)
        await pilot.press("r")
        await eventually(lambda: given.answers == ["yes"], "the answer")
        assert given.rules == ["allow cd src", "allow git status *"]
        assert "no longer waits" not in screen_text(frozen)


async def test_a_rule_that_is_refused_leaves_the_question_open(
    frozen: FrozenCockpit, given: Given
) -> None:
    given.error = NotConnectedError("The service does not answer.")
    asking(frozen, run("make"))
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("r")
        await eventually(lambda: "does not answer" in screen_text(frozen), "the refusal")
        assert given.answers == []
        given.error = None
        await pilot.press("r")
        await eventually(lambda: given.answers == ["yes"], "the answer")


@pytest.mark.parametrize(
    "story",
    [
        run("git status $(x)"),
        run("make > log"),
        run("git status", kind="other"),
        run("git status", env={"GIT_PAGER": "x"}),
        run("rm *"),
        run(None),
        ask(Story().user("go")),
    ],
)
async def test_no_rule_is_offered_that_would_not_apply(
    frozen: FrozenCockpit, given: Given, story: Story
) -> None:
    asking(frozen, story)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        assert "r Always allow" not in screen_text(frozen)
        await pilot.press("r", "y")
        await eventually(lambda: given.answers == ["yes"], "the answer")
        assert given.rules == []


async def test_rules_are_listed_added_and_removed(frozen: FrozenCockpit, given: Given) -> None:
    rules = [{"action": "reject", "pattern": "git push"}]
    given.permissions.environment = Permissions.model_validate({"policy": "edits", "rules": rules})
    given.permissions.effective = Permissions.model_validate({"policy": "edits"})
    frozen.add("alpha")

    async def shows(*texts: str) -> None:
        await eventually(lambda: all(text in screen_text(frozen) for text in texts), str(texts))

    async def press(keys: Sequence[str]) -> None:
        await pilot.press(*keys)

    async with frozen.run_test(size=(100, 30)) as pilot:
        await shows("alpha")
        await press(["alt+r"])
        await shows("Permissions of alpha", "Policy: edits, allow edits of workspace files (env")
        assert "reject git push (environment)" in screen_text(frozen)
        assert "Set a cost limit" in screen_text(frozen)
        await press([*"cost", "enter"])
        await shows("Dollars; 0 for no limit, empty for the environment's limit")
        await press([*"much", "enter"])
        await shows("Not an amount in dollars")
        await press([*["backspace"] * 4, *"2.5", "enter"])
        await shows("Cost limit: $2.50")
        await press(["a", "d", "d", "enter"])
        await shows("Allow commands")
        await press([*"ls;", "enter"])
        await shows("without shell syntax")
        await press(["backspace", "enter"])
        await shows("Remove the rule: allow ls")
        assert given.rules == ["allow ls"]
        await press(["r", "e", "j", "e", "c", "t", "s", "enter"])
        await shows("Reject commands", "Rejected are all commands that begin with")
        await press([*"rm", "enter"])
        await shows("Remove the rule: reject rm")
        await press(["enter"])
        await shows("Permission policy")
        await press([*"no rule", "enter"])
        await shows("Policy: all, allow what no rule rejects")
        assert "Policy: all, allow what no rule rejects (env" not in screen_text(frozen)
        await press([*"allow ls", "enter"])
        await eventually(lambda: given.rules == ["reject rm"], "the rule was removed")
        await shows("Remove the rule: reject rm")
        await press(["enter"])
        await shows("As the environment says: edits")
        await press([*"as the", "enter"])
        await shows("Policy: edits, allow edits of workspace files (environment)")
        await press(["escape"])
        await eventually(lambda: not frozen.screen.is_modal, "the end")


async def test_a_cost_limit_is_shown_as_it_was_set(frozen: FrozenCockpit, given: Given) -> None:
    given.permissions.cost_limit = 12345.67
    frozen.add("alpha")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await eventually(lambda: "alpha" in screen_text(frozen), "the replica")
        await pilot.press("alt+r")
        await eventually(lambda: "Permissions of alpha" in screen_text(frozen), "the dialog")
        await pilot.press(*"cost", "enter")
        await eventually(lambda: "12345.67" in screen_text(frozen), "the limit")
        await pilot.press("enter")
        await eventually(lambda: "Cost limit: $12345.67" in screen_text(frozen), "the end")
        assert given.permissions.cost_limit == 12345.67


async def test_the_dialog_works_from_the_chat_and_says_what_is_refused(
    frozen: FrozenCockpit, given: Given
) -> None:
    frozen.add("alpha")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "Composer", "the composer")
        await pilot.press("alt+r")
        await eventually(lambda: "Policy: ask" in screen_text(frozen), "the dialog")
        given.error = NotConnectedError("The service does not answer.")
        await pilot.press("enter")
        await eventually(lambda: "As the environment says" in screen_text(frozen), "the policies")
        await pilot.press("enter")
        await eventually(
            lambda: any("does not answer" in one.message for one in frozen._notifications),
            "the refusal",
        )
        assert pane(frozen).composer.text == ""


def test_what_the_policy_answered_is_a_line_of_the_transcript() -> None:
    from quarterdeck.transcript.blocks import NoteBlock, ToolBlock
    from quarterdeck.transcript.fold import Transcript

    story = Story().user("go")
    call = {"toolCallId": "t", "title": "git status", "kind": "execute"}
    story.add(
        "policy-answer", requestId="r", toolCall=call, allowed=True, text="Allowed by the rule `ls`"
    )
    tool, note = Transcript(story.events).blocks[-2:]
    assert isinstance(tool, ToolBlock) and tool.title == "git status"
    assert isinstance(note, NoteBlock) and note.text == "Allowed by the rule `ls`"
