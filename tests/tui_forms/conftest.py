"""Forms over models of the wire, in an app of their own."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel
from textual.app import App
from textual.pilot import Pilot

from quarterdeck.tui.forms.kit import FormScreen, ModelForm
from tests.tui_shell.frozen import screen_text


class Desk:
    """A dialog, what was saved by it, and what it was closed with."""

    form: ModelForm

    def __init__(
        self,
        make: Callable[[], ModelForm],
        refuse: Callable[[Any], Awaitable[Any]] | None = None,
    ) -> None:
        """`make` is called inside the app; `refuse` raises what the service would."""
        self._make = make
        self.saved: list[BaseModel] = []
        self.closed: list[Any] = []
        self._refuse = refuse
        self.app: App[Any] = App()
        self.pilot: Pilot[Any]

    async def save(self, body: BaseModel) -> BaseModel:
        if self._refuse is not None:
            await self._refuse(body)
        self.saved.append(body)
        return body

    async def open(self, pilot: Pilot[Any]) -> "Desk":
        self.pilot = pilot
        self.form = self._make()
        self.app.push_screen(FormScreen("Form", self.form, self.save), self.closed.append)
        await pilot.pause()
        return self

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def text(self) -> str:
        return screen_text(self.app)


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
