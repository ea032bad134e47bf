"""The driver with a stand-in engine that runs commands inside, as the tests of sandboxes have it."""

from collections.abc import AsyncGenerator

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from tests.sandboxes.conftest import (
    ENGINE,
    Bench,
    bare,
    checkout,
    engine,
    few_programs,
    git,
    home,
    walled,
)

__all__ = ["bare", "bench", "checkout", "engine", "few_programs", "git", "home", "walled"]


@pytest.fixture(params=["forked", pytest.param("launched", marks=pytest.mark.long)])
async def bench(home: Home, request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    """A bench whose engines are forks, or are started one by one as where forks cannot join sandboxes."""
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
    if request.param == "forked":
        async with bench.driver.kept_ready():
            yield bench
            await bench.close()
    else:
        yield bench
        await bench.close()
