"""Requests that nobody thought of, against a running service, from its own description.

No answer is a failure of the service, none is 422, none is outside its schema, and none is missing.
The same requests every time, as many as fit into some seconds. A longer run, with the number of
requests for each group of operations: `QUARTERDECK_FUZZ=1000 make test ARGS=tests/fuzz`.
"""

import os
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.calls import Operation, requests
from tests.fuzz.service import Fuzzed

ASKED = os.environ.get("QUARTERDECK_FUZZ")
EACH = int(ASKED or "60")
"""Requests for each group of operations."""
BUDGET = 2.5 if ASKED is None else float("inf")
"""Seconds for a group; a slow machine sends fewer."""

GROUPS = (
    "agents",
    "api-keys",
    "auth",
    "automations",
    "canvas",
    "chatapp",
    "chats",
    "credentials",
    "environments",
    "events",
    "exec",
    "files",
    "git",
    "health",
    "history",
    "hooks",
    "messages",
    "permissions",
    "previews",
    "replicas",
    "repositories",
    "services",
    "terminals",
    "users",
    "workspaces",
)


def test_every_group_is_fuzzed(fuzzed: Fuzzed) -> None:
    assert {one.group for one in fuzzed.operations} == set(GROUPS)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_operations(fuzzed: Fuzzed, group: str) -> None:
    chosen = [one for one in fuzzed.operations if one.group == group]
    end = monotonic() + BUDGET

    @settings(
        max_examples=EACH,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: Any) -> None:
        operation: Operation = data.draw(st.sampled_from(chosen))
        request = data.draw(requests(operation, fuzzed.known))
        # Drawn in any case: what is generated must not depend on time.
        if monotonic() < end:
            fuzzed.check(operation, request, fuzzed.send(operation, request))

    run()
