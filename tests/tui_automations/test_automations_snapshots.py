"""How the automations look in states and sizes that the walk through every screen leaves out."""

from collections.abc import Iterator
from typing import Any

import pytest
from textual.pilot import Pilot

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.store.creation import CreationChoices
from quarterdeck.tui.automations import form, run_screen, screen
from quarterdeck.tui.automations.form import AutomationForm, WebhookScreen
from quarterdeck.wire.automation_runs import Execution
from tests.tui_automations.sample import add, check, fill, moment, offered, run
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.test_shell_snapshots import press

NARROW = (50, 20)
each_size = pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), (200, 60), NARROW], ids=["80x24", "120x40", "200x60", "50x20"]
)


class Nobody:
    """The client of a service that never answers."""

    def __getattr__(self, resource: str) -> object:
        raise NotConnectedError("No service answers.")


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch, frozen: FrozenCockpit) -> Iterator[None]:
    """The same present and the same choices in every picture."""

    async def found(client: object) -> CreationChoices:
        return offered()

    async def models(client: object, agent: str) -> list[str]:
        return []

    for module in (screen, form):
        monkeypatch.setattr(module, "utc_now", moment)
        monkeypatch.setattr(module, "choices", found)
    monkeypatch.setattr(form, "models_of", models)
    monkeypatch.setattr(type(frozen.app_state), "client", Nobody())
    yield
    assert not frozen.failures.path.exists(), frozen.failures.path.read_text()


def test_every_standing_in_a_narrow_window(snap_compare: Any, frozen: FrozenCockpit) -> None:
    fill(frozen)
    wait = press("a", until="old-idea")
    assert snap_compare(frozen, terminal_size=NARROW, run_before=wait)


def test_runs_in_a_narrow_window(snap_compare: Any, frozen: FrozenCockpit) -> None:
    fill(frozen)
    wait = press("a", *"jjj", "enter", until="no space left")
    assert snap_compare(frozen, terminal_size=NARROW, run_before=wait)


@pytest.mark.parametrize("size", [(80, 24), NARROW], ids=["80x24", "50x20"])
def test_first_start(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    frozen.app_state.automations.listed = frozen.app_state.changes.live = True
    wait = press("a", until="No automations yet")
    assert snap_compare(frozen, terminal_size=size, run_before=wait)


def test_service_down(
    snap_compare: Any, frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    wait = press("a", until="still starting")
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=wait)


@each_size
def test_one_run(
    snap_compare: Any,
    frozen: FrozenCockpit,
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def prompt(client: object, of: Execution) -> str:
        return "Run the tests and say what fails.\n\n## Trigger\n\n- type: cron\n- time: now\n"

    monkeypatch.setattr(run_screen, "composed_prompt", prompt)
    replica = frozen.add("nightly-4fde5d73")
    told = run(
        1,
        "failed",
        5,
        workspace_id=replica.id,
        error="Its turn failed.\n\x1b]52;c;aGk=\x07The model said: \u202eno",
        trigger_payload={"ref": "refs/heads/main", "commits": [{"id": "4fde5d7"}]},
        check=check("failure", "2 tests fail"),
    )
    add(frozen, "nightly", told)
    keys = ("a", "enter", "enter")
    assert snap_compare(frozen, terminal_size=size, run_before=press(*keys, until="A run of"))


def test_run_dialog_with_an_error(snap_compare: Any, frozen: FrozenCockpit) -> None:
    fill(frozen)
    keys = ("a", "r", "{", "ctrl+s")
    wait = press(*keys, until="Not valid JSON")
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=wait)


def test_deletion_names_what_goes(snap_compare: Any, frozen: FrozenCockpit) -> None:
    fill(frozen)
    wait = press("a", *"jjj", "d", until="Delete nightly?")
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=wait)


@each_size
def test_form_with_coming_runs(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    fill(frozen)

    async def wait(pilot: Pilot[Any]) -> None:
        await press("a", *"jjj", "e", until="Codex")(pilot)
        await press(*["tab"] * 5, "end")(pilot)

    assert snap_compare(frozen, terminal_size=size, run_before=wait)


@pytest.mark.long
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_new_with_errors(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    fill(frozen)
    keys = ("a", "n", *["tab"] * 5, *"0 25 * * *", "ctrl+s")
    wait = press(*keys, until="Required.")
    assert snap_compare(frozen, terminal_size=size, run_before=wait)


async def test_a_new_one_gets_the_usual_agent(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(120, 40)) as pilot:
        await press("a", "n", until="Codex")(pilot)
        screen = frozen.screen
        assert isinstance(screen, AutomationForm)
        assert screen.form.value("agent_provider") == "codex"
        assert not screen.form.dirty


def test_a_new_webhook(snap_compare: Any, frozen: FrozenCockpit) -> None:
    class Made(FrozenCockpit):
        def _start_up(self) -> None:
            call = "https://deck.example/v1/automations/webhook/t0ken"
            self.push_screen(WebhookScreen("deploy-note", call))

    app = Made(frozen.failures.path.parent)
    wait = press(until="The webhook of")
    assert snap_compare(app, terminal_size=(80, 24), run_before=wait)
