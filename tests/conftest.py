"""What every test may use."""

import os
import shutil
from collections.abc import Callable

import pytest


@pytest.fixture
def require_tool() -> Callable[[str], str]:
    """Finds a program that a test needs; without it the test is skipped, or fails under CI."""

    def require(name: str) -> str:
        found = shutil.which(name)
        if found:
            return found
        message = f"{name} is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)

    return require
