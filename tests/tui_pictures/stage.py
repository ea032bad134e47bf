"""A frozen cockpit of which every screen has something to show, and whoever walks through it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from textual.pilot import Pilot

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.store.creation import CreationChoices
from quarterdeck.tui.automations import form, run_screen, screen
from quarterdeck.tui.forms import create
from quarterdeck.tui.options import Options
from quarterdeck.tui.widgets import replica_list
from quarterdeck.tui.widgets.replica_list import ReplicaListView
from quarterdeck.wire.automation_runs import Execution
from quarterdeck.wire.replicas import ReplicaDetail
from tests.support.waiting import eventually
from tests.tui_automations.sample import fill, moment, offered
from tests.tui_changes.material import EVERYTHING, take
from tests.tui_exec.test_exec_snapshots import outcomes
from tests.tui_info.known import known_replica
from tests.tui_pictures.answers import client
from tests.tui_shell.frozen import FrozenCockpit, every_block, queued, said, screen_text, shows


@contextmanager
def stage(drafts: Path, options: Options) -> Iterator[FrozenCockpit]:
    """The cockpit; nothing in it asks a service."""

    async def found(asked: object) -> CreationChoices:
        return offered()

    async def models(asked: object, agent: str) -> list[str]:
        return ["gpt-x"]

    async def prompt(asked: object, of: Execution) -> str:
        return "Run the tests and say what fails.\n"

    async def record(of: UUID) -> ReplicaDetail:
        raise NotConnectedError("It stays as it is.")

    app = FrozenCockpit(drafts, options=options)
    with pytest.MonkeyPatch.context() as patched:
        answering = client()
        answering.replicas = SimpleNamespace(get=record)
        patched.setattr(type(app.app_state), "client", answering)
        for module in (screen, form):
            patched.setattr(module, "utc_now", moment)
            patched.setattr(module, "choices", found)
        patched.setattr(create, "choices", found)
        patched.setattr(replica_list, "utc_now", moment)
        patched.setattr(create, "models_of", models)
        patched.setattr(form, "models_of", models)
        patched.setattr(run_screen, "composed_prompt", prompt)
        _fill(app)
        yield app
    assert not app.failures.path.exists(), app.failures.path.read_text()


def _fill(app: FrozenCockpit) -> None:
    state = known_replica(app)
    assert state.first_chat is not None
    state.first_chat.record.awaiting_input = True
    said(state, every_block())
    queued(state, "Then write a test")
    review = app.app_state.reviews.of(state.id)
    take(review, EVERYTHING, branch="qd/fix-login")
    review.settle()
    outcomes(app, state)
    app.add("broken", "error", error="The engine did not start: no space left on device.")
    app.add("flaky-tests", processing=True)
    app.add("old-idea", "sleeping")
    fill(app)


class Walker:
    """Types, and waits for what is to be seen."""

    def __init__(self, app: FrozenCockpit, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def see(self, *texts: str) -> None:
        try:
            await eventually(lambda: shows(self.app, texts))
        except AssertionError:
            raise AssertionError(f"not seen: {texts}\n{screen_text(self.app)}") from None
        await self.pilot.pause()

    async def home(self) -> None:
        """Back to the first line of the list, whatever is open."""
        for _ in range(8):
            if isinstance(self.app.focused, ReplicaListView):
                break
            await self.press("escape")
        await self.press("escape", "home")
        assert isinstance(self.app.focused, ReplicaListView), screen_text(self.app)
