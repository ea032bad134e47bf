"""What every test may use."""

import os
import shutil
import signal
from collections.abc import Callable

import pytest

# A shell that starts the suite in the background has it ignored, and every program begun by a test
# would inherit that and not hear of Ctrl+C.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
