"""The shop, whose repository has hooks, and cockpits."""

from collections.abc import Iterator

import pytest

from tests.tui_files.shop import running_shop
from tests.tui_shell.conftest import fixed_clock_zone, frozen, live
from tests.tui_shell.live import Installation

WAIT = "mkdir -p ~/gate\nwhile [ -d ~/gate ]; do sleep 0.02; done\n"
HOOKS = {
    "README": "A shop with hooks.\n",
    ".quarterdeck/hooks/warm.sh": "echo warming up; seq 3\n",
    ".quarterdeck/hooks/start.sh": f"echo first step\n{WAIT}echo 'last step'\nexit $(cat ~/code)\n",
}
"""The start hook waits until its gate is taken away, and ends with the code that is written there."""

__all__ = ["fixed_clock_zone", "frozen", "live"]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One service for the tests of a module."""
    with running_shop(tmp_path_factory.mktemp("work"), HOOKS) as made:
        yield made
