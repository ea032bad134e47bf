"""Requests that nobody thought of, against a running service, from its own description.

No answer is a failure of the service, none is 422, none is outside its schema, and none is missing.
The same requests every time. A longer run: `QUARTERDECK_FUZZ=1000 make test ARGS=tests/fuzz`, the
number being that of requests for each group of operations.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fuzz.requests import Operation, requests
from tests.fuzz.service import Fuzzed

EACH = int(os.environ.get("QUARTERDECK_FUZZ", "60"))
"""Requests for each group of operations."""

GROUPS = (
    "agents",
    "api-keys",
    "auth",
    "canvas",
    "chatapp",
    "chats",
    "credentials",
    "environments",
    "events",
    "exec",
    "files",
    "health",
    "history",
    "hooks",
    "messages",
    "previews",
    "replicas",
    "repositories",
    "terminals",
    "users",
    "workspaces",
)


def test_every_group_is_fuzzed(fuzzed: Fuzzed) -> None:
    assert {one.group for one in fuzzed.operations} == set(GROUPS)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_operations(fuzzed: Fuzzed, group: str) -> None:
    chosen = [one for one in fuzzed.operations if one.group == group]

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
        fuzzed.check(operation, request, fuzzed.send(operation, request))

    run()
