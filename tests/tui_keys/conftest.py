"""A cockpit over a store that stands still, with keys of a person's own."""

from collections.abc import Iterator

import pytest

from quarterdeck.tui.actions.model import use_keys


@pytest.fixture(autouse=True)
def table_keys() -> Iterator[None]:
    """A process has one keymap: no test leaves its own to the next."""
    use_keys({})
    yield
    use_keys({})
