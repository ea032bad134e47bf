"""A short kill storm; a long one is `make storm`."""

from collections.abc import Callable

import pytest

from tests.security.storm import storm

pytestmark = pytest.mark.long


@pytest.mark.timeout(600)
def test_sixty_kills(require_tool: Callable[[str], str]) -> None:
    for tool in ("bwrap", "git"):
        require_tool(tool)
    print(storm(60, 16))
