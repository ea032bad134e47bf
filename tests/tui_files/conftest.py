"""The shop, and cockpits."""

from collections.abc import Iterator

import pytest

from tests.tui_files.shop import running_shop
from tests.tui_shell.conftest import fixed_clock_zone, frozen, live
from tests.tui_shell.live import Installation

__all__ = ["fixed_clock_zone", "frozen", "live"]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One service for the tests of a module."""
    with running_shop(tmp_path_factory.mktemp("work")) as made:
        yield made
