"""What the page of one run says."""

from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.tui.automations.run_facts import RunStory, story_lines
from quarterdeck.wire.automations import Execution

MOMENT = "2026-11-20T08:00:00Z"


def run_with(**check: Any) -> Execution:
    told = {"id": "1", "name": "nightly", "status": "open", "opened_at": MOMENT, **check}
    ids = {name: str(uuid4()) for name in ("id", "automation_id", "organization_id")}
    return Execution.model_validate(
        {**ids, "triggered_at": MOMENT, "status": "running", "check": told}
    )


@pytest.mark.parametrize(
    ("repository", "words"), [("sea/shop", "nightly of sea/shop"), ("", "nightly")]
)
def test_a_check_is_of_a_repository_when_the_run_has_a_pull_request(
    repository: str, words: str
) -> None:
    lines = story_lines(RunStory(run_with(repository=repository), "nightly-1"))
    assert [line.text for line in lines if line.label == "check"] == [words]
