"""How single commands look, at the sizes people have."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from textual.pilot import Pilot

from quarterdeck.store.exec_runs import ExecRun
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.terminals import ExecResponse
from tests.tui_shell.frozen import START, FrozenCockpit

each_size = pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"]
)

TESTS = "tests/test_login.py \x1b[32m.......\x1b[0m\x1b[31mF\x1b[0m\n\x1b[1;31m1 failed\x1b[0m, 7 passed\n"


def answered(output: str, code: int | None, *, truncated: bool = False) -> ExecResponse:
    return ExecResponse(output=output, exit_code=code, timed_out=code is None, truncated=truncated)


def runs(app: FrozenCockpit) -> None:
    """A replica with one run of every outcome."""
    outcomes(app, app.add("fix-login"))


def outcomes(app: FrozenCockpit, state: ReplicaState) -> None:
    """One run of every outcome."""
    known = app.app_state.exec_runs
    told: list[tuple[str, ExecResponse | None]] = [
        ("git status --short", answered(" M shop/login.py\n?? notes.txt\n", 0)),
        ("pytest -q", answered(TESTS, 1, truncated=True)),
        ("make everything", answered("compiling ...\n", None)),
        ("ls", None),
    ]
    for number, (command, response) in enumerate(told):
        began = START + timedelta(minutes=number)
        run = ExecRun(
            f"k{number}", state.id, command, began, began + timedelta(seconds=1.5), response
        )
        run.problem = "" if response else "The engine cannot be reached. Retry in a few seconds."
        known.keep(run)
    known.keep(ExecRun("k9", state.id, "npm test", START + timedelta(minutes=5)))


def looking(*keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def run(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        await pilot.press("7")
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()

    return run


@each_size
def test_runs(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    runs(frozen)
    assert snap_compare(frozen, terminal_size=size, run_before=looking(*"git"))


def test_looking_back(snap_compare: Any, frozen: FrozenCockpit) -> None:
    runs(frozen)
    keys = ("tab", "left_square_bracket", "left_square_bracket", "space")
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=looking(*keys))


def test_nothing_was_run_yet(snap_compare: Any, frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=looking())
