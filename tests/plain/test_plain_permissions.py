"""The permission policy and rules of the open replica, in lines."""

from uuid import uuid4

import pytest

from tests.plain.conftest import Shop, create

pytestmark = pytest.mark.timeout(240)

NO_RULES = ["Policy of the environment: ask, ask for everything.", "No rules."]


def test_rules_are_added_used_and_removed(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "ruled")
        talk.until("ruled is idle.")
        talk.type("permissions", "permissions remove")
        shown = talk.until("To change the policy, type permissions and ask")
        assert shown[:-1] == NO_RULES
        talk.until("The replica has no rules of its own.")
        talk.type("permissions allow", "make $TARGET", "make *", "permissions reject", "make clean")
        talk.until("Reject all commands that begin with:")
        assert talk.until("2. ") == [
            "Policy of the environment: ask, ask for everything.",
            "1. allow make *",
            "2. reject make clean",
        ]
        assert any(line.startswith("A pattern is the words of one command") for line in talk.lines)
        talk.type("run make test", "wait", "run make clean", "wait")
        allowed = talk.until("Scripted: I may run it.")
        assert any("Allowed by the rule" in line for line in allowed)
        talk.until("Scripted: I may not run it.")
        talk.type("permissions remove", "3", "1", "run make test", "wait")
        removed = talk.until("1. reject make clean")
        assert "Remove which (Enter to cancel):" in removed
        assert "Type a number from 1 to 2." in removed
        talk.until("Type a number or reject and a reason.")
        talk.type("2", "wait", "permissions remove", "", "permissions remove", "cancel", "quit")
        talk.until("Canceled.")
        talk.until("Canceled.")
        assert talk.finish() == 0
    rules = shop.qd("replica", "permissions", "ruled", "--json").json["rules"]
    assert rules == [{"action": "reject", "pattern": "make clean"}]


@pytest.mark.long
def test_the_policy_is_changed_also_while_a_question_is_open(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "free", "run make test")
        talk.type("wait", "permissions are fine", "permissions all")
        talk.until("The agent waits for an answer; your message follows it.")
        talk.until("Scripted: I may run it.")
        talk.until("Scripted: You said: permissions are fine.")
        talk.type("permissions edits", "permissions ask", "permissions environment", "quit")
        assert talk.finish() == 0
    assert [line for line in talk.lines if line.startswith("Policy")] == [
        "Policy: all, allow what no rule rejects.",
        "Policy: edits, allow edits of workspace files.",
        "Policy: ask, ask for everything.",
        "Policy of the environment: ask, ask for everything.",
    ]


def test_what_the_environment_says_is_shown(shop: Shop) -> None:
    name = uuid4().hex
    settings = ("--permissions", "edits", "--reject", "git push", "--cost-limit", "5")
    assert shop.qd("env", "create", name, *settings).code == 0
    first = ("--env", name, "--agent", "scripted", "--name", "guided", "--wait")
    assert shop.qd("replica", "create", *first).code == 0
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("open guided", "permissions", "permissions cost", "much", "2.5", "quit")
        assert talk.until("To change the policy")[-4:-1] == [
            "Policy of the environment: edits, allow edits of workspace files.",
            "Cost limit of the environment: $5.00.",
            "Of the environment: reject git push",
        ]
        talk.until(
            "Dollars that its agents may cost (0 for no limit, empty for the environment's limit):"
        )
        talk.until("Not an amount in dollars, such as 5 or 2.50.")
        talk.until("Cost limit: $2.50.")
        assert talk.finish() == 0
    assert shop.qd("replica", "rm", "--yes", "guided").code == 0
    assert shop.qd("env", "rm", "--yes", name).code == 0
