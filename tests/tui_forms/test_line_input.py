"""The field of one row."""

import pytest
from textual.app import App, ComposeResult
from textual.events import Paste

from quarterdeck.tui.kit.fields import LineInput
from tests.support.waiting import eventually


class Field(App[None]):
    def __init__(self, password: bool) -> None:
        super().__init__()
        self._password = password

    def compose(self) -> ComposeResult:
        yield LineInput(password=self._password)


@pytest.mark.parametrize(
    ("pasted", "password", "kept"),
    [
        ("  two  blanks ", False, "  two  blanks "),
        ("one\ntwo\n", False, "one two"),
        ("pass  word", True, "pass  word"),
        ("pass  word\n", True, "pass  word"),
    ],
)
async def test_what_is_pasted(pasted: str, password: bool, kept: str) -> None:
    app = Field(password)
    async with app.run_test():
        app.post_message(Paste(pasted))
        await eventually(lambda: app.query_one(LineInput).value == kept)
