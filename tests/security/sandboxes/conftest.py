"""The driver with a stand-in engine that runs commands inside, as the tests of sandboxes have it."""

from tests.sandboxes.conftest import (
    bare,
    bench,
    checkout,
    engine,
    few_programs,
    git,
    home,
    walled,
)

__all__ = ["bare", "bench", "checkout", "engine", "few_programs", "git", "home", "walled"]
