"""A running service with a workspace in each of two states, and its description."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz.service import Fuzzed
from tests.system.conftest import installed


@pytest.fixture(scope="session")
def fuzzed(require_tool: Callable[[str], str]) -> Iterator[Fuzzed]:
    for tool in ("bwrap", "git"):
        require_tool(tool)
    with installed() as made:
        made.start()
        with Fuzzed.over(made) as opened:
            yield opened


@pytest.fixture(autouse=True)
def _lives(fuzzed: Fuzzed) -> Iterator[None]:
    """Whatever a test sends, the service is the same process and answers after it."""
    before = fuzzed.installation.pid
    yield
    assert fuzzed.installation.pid == before
    assert fuzzed.installation.get("/v1/health")["status"] == "ok"
    log = Path(fuzzed.installation.log).read_text()
    assert "Traceback" not in log, log[-3000:]
