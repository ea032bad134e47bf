"""The form of an automation: what it opens with, what it asks for, what it leaves alone."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from quarterdeck.store.automation_draft import (
    AutomationDraft,
    change_body,
    draft_values,
    field_of,
    new_body,
)
from quarterdeck.wire.automations import Automation
from tests.store.automation_service import automation

SHOP, WEB = UUID(int=11), UUID(int=12)
CRON = {"type": "cron", "config": {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}}
WEBHOOK: dict[str, Any] = {"type": "custom", "config": {}}


def event(name: str, **config: Any) -> dict[str, Any]:
    return {"type": "host-a", "config": {"event": f"pull_request.{name}", **config}}


def record(*triggers: dict[str, Any], **fields: Any) -> Automation:
    return Automation.model_validate(automation("nightly", triggers=list(triggers), **fields))


def edited(before: Automation, **changes: Any) -> dict[str, Any] | None:
    """What is sent when a person changes these fields."""
    draft = AutomationDraft.model_validate({**draft_values(before), **changes})
    body = change_body(draft, before)
    return None if body is None else body.model_dump(mode="json", exclude_unset=True)


def test_a_new_one_has_the_triggers_that_were_filled_in() -> None:
    draft = AutomationDraft(
        name="nightly",
        prompt="Run.",
        environment_id=UUID(int=2),
        schedule="0 9 * * *",
        webhook=True,
        events=["pull_request.opened", "merge_request.closed"],
        repository_ids=[SHOP],
        group_pr_events=True,
        scope="user",
    )
    body = new_body(draft).model_dump(mode="json")
    assert [one["type"] for one in body["triggers"]] == ["cron", "custom", "host-a", "host-b"]
    assert body["triggers"][0]["config"] == {"schedule": "0 9 * * *", "timezone": "UTC"}
    assert body["triggers"][3]["config"]["repository_ids"] == [str(SHOP)]
    assert body["triggers"][2]["config"]["group_pr_events"] is True
    assert body["scope"] == "user"


def test_what_was_not_touched_is_not_sent() -> None:
    before = record(CRON, WEBHOOK, event("opened"), config={"report": True, "theirs": 1})
    assert edited(before) is None
    assert edited(before, name="daily") == {"name": "daily"}
    assert edited(before, model=None, description=None) is None
    sent = edited(before, report=False)
    assert sent is not None
    assert sent["config"] == {"theirs": 1, "report": False, "skip_while_running": False}
    assert edited(before, base="release")["config"]["base"] == "release"
    before = record(CRON, config={"base": "release"})
    assert "base" not in edited(before, base=None)["config"]


def test_events_keep_what_is_their_own() -> None:
    before = record(
        event("opened", repository_ids=[str(SHOP)], check=False),
        event("merged", repository_ids=[str(WEB)], excluded_actors=["bot"]),
        {"type": "chatapp", "config": {"channel": "c"}},
    )
    sent = edited(before, schedule="0 9 * * *")
    assert sent is not None
    opened, merged, chat, cron = sent["triggers"]
    assert opened["config"]["repository_ids"] == [str(SHOP)]
    assert opened["config"]["check"] is False
    assert merged["config"]["repository_ids"] == [str(WEB)]
    assert merged["config"].get("check", True) is True
    assert chat == {"type": "chatapp", "config": {"channel": "c"}}
    assert cron["config"]["timezone"] == "UTC"
    sent = edited(before, repository_ids=[WEB])
    assert sent is not None
    of = [one["config"].get("repository_ids") for one in sent["triggers"]]
    assert of == [[str(WEB)], [str(WEB)], None]
    assert sent["triggers"][1]["config"]["excluded_actors"] == ["bot"]


def test_triggers_go_when_they_are_taken_out() -> None:
    before = record(CRON, WEBHOOK, event("opened"), event("closed"))
    sent = edited(before, schedule=None, webhook=False, events=["pull_request.closed"])
    assert sent is not None
    assert [one["config"]["event"] for one in sent["triggers"]] == ["pull_request.closed"]


def test_a_trigger_of_a_newer_service_is_not_lost() -> None:
    before = record({"type": "tide", "config": {"high": True}})
    assert edited(before, name="daily") == {"name": "daily"}
    with pytest.raises(ValueError, match="unknown to this version"):
        edited(before, webhook=True)


def test_a_schedule_is_refused_in_plain_words_beside_its_field() -> None:
    given = {"name": "n", "prompt": "p", "environment_id": str(UUID(int=2))}
    with pytest.raises(ValidationError) as refused:
        AutomationDraft.model_validate({**given, "schedule": "61 * * * *"})
    (wrong,) = refused.value.errors()
    assert wrong["loc"] == ("schedule",) and "'61' is none" in wrong["msg"]
    with pytest.raises(ValidationError) as refused:
        AutomationDraft.model_validate({**given, "schedule": "0 9 * * *", "timezone": "Mars"})
    (wrong,) = refused.value.errors()
    assert wrong["loc"] == ("timezone",) and "Unknown time zone 'Mars'" in wrong["msg"]
    AutomationDraft.model_validate({**given, "timezone": "Mars"})  # nothing asks for it


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("triggers.0.config.schedule", "schedule"),
        ("triggers.2.host-a.config.repository_ids.0", "repository_ids"),
        ("triggers.1.config.repository_ids", "repository_ids"),
        ("triggers.1", "events"),
        ("triggers", "events"),
        ("environment_id", "environment_id"),
        ("config.report", "report"),
    ],
)
def test_refusals_of_the_service_find_their_field(path: str, field: str) -> None:
    assert field_of(path) == field


def test_limits_and_trust_are_sent_when_they_were_changed() -> None:
    before = record(max_minutes=5, trust="all")
    assert edited(before) is None
    assert edited(before, max_minutes=None, trust="members", concurrency=2) == {
        "max_minutes": None,
        "trust": "members",
        "concurrency": 2,
    }


def test_a_secret_is_sent_when_it_was_typed() -> None:
    before = record(WEBHOOK, webhook_signed=True)
    assert "webhook_secret" not in draft_values(before)
    assert edited(before) is None
    secret = "a secret of its own"
    assert edited(before, webhook_secret=secret) == {"webhook_secret": secret}
    draft = AutomationDraft(
        name="n", prompt="p", environment_id=SHOP, webhook=True, webhook_secret=secret
    )
    assert new_body(draft).webhook_secret == secret and secret not in repr(draft)
