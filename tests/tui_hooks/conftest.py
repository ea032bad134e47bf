"""The shop, whose repository has hooks, and cockpits."""

from collections.abc import Iterator

import pytest

from tests.tui_files.shop import running_shop
from tests.tui_shell.conftest import fixed_clock_zone, frozen, live
from tests.tui_shell.live import Installation

# A cockpit shows what a hook prints from when it follows it: this one prints again.
WAIT = """mkdir -p ~/gate; n=0
while [ -d ~/gate ]; do [ $((n % 50)) -gt 0 ] || echo first step; n=$((n + 1)); sleep 0.02; done
"""
HOOKS = {
    "README": "A shop with hooks.\n",
    ".quarterdeck/hooks/warm.sh": "echo warming up; seq 3\n",
    ".quarterdeck/hooks/start.sh": f"{WAIT}echo 'last step'\nexit $(cat ~/code)\n",
}
"""The start hook waits until its gate is taken away, and ends with the code that is written there."""

__all__ = ["fixed_clock_zone", "frozen", "live"]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One service for the tests of a module."""
    with running_shop(tmp_path_factory.mktemp("work"), HOOKS) as made:
        yield made
