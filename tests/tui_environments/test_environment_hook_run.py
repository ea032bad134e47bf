"""What a test of a hook said, as it is kept for the screen."""

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from quarterdeck.client.errors import NotFoundError
from quarterdeck.store.environments import KEPT_LINES, Ending, HookEditor, HookTestRun
from quarterdeck.wire.environment_parts import HookTest, HookTestEvent
from quarterdeck.wire.setup import HookKind


def test_lines_come_in_pieces_and_do_no_harm() -> None:
    run = HookTestRun()
    for piece in ("on", "e\ntw", "o\x1b]52;c;", "aGk=\x07\n 10%\r100%\nthr", "ee"):
        run.output(piece)
    assert run.lines == ["one", "two", "100%", "three"]
    run.note("Hooks\nbegin\x1b[31m")
    run.output("four\n")
    assert run.lines[3:] == ["three", "· Hooks begin", "four"]


def test_no_more_is_kept_than_a_person_reads() -> None:
    run = HookTestRun()
    run.output("x\n" * (KEPT_LINES + 10) + "last")
    assert len(run.lines) == KEPT_LINES and run.lines[-1] == "last"


def test_how_a_test_ends() -> None:
    def ended(**fields: object) -> HookTestRun:
        run = HookTestRun()
        run.take(HookTestEvent.model_validate({"type": "complete", **fields}))
        return run

    assert ended(exit_code=0, timed_out=False).ending is Ending.PASSED
    failed = ended(exit_code=7, timed_out=False)
    assert failed.ending is Ending.FAILED and "7" in failed.end
    assert "Timed out" in ended(exit_code=None, timed_out=True).end
    broken = HookTestRun()
    broken.take(HookTestEvent(type="error", message="No\nspace\x07."))
    assert (broken.ending, broken.end) == (Ending.FAILED, "No space.")


class Older:
    """Tests of a service that streams none of warm hooks."""

    async def stream_warm(self, environment: UUID, content: str) -> AsyncGenerator[HookTestEvent]:
        raise NotFoundError("There is no such path.", status=404)
        yield HookTestEvent(type="progress")

    async def warm(self, environment: UUID, content: str) -> HookTest:
        return HookTest(exit_code=3, output="made\n", timed_out=False)


async def test_a_warm_hook_is_told_of_at_its_end_where_none_is_streamed() -> None:
    owner: Any = SimpleNamespace(client=SimpleNamespace(hook_tests=Older()))
    environment: Any = SimpleNamespace(id=UUID(int=1))
    told: list[list[str]] = []
    run = await HookEditor(owner).test(
        environment, HookKind.WARM, "make", lambda run: told.append(list(run.lines))
    )
    assert (run.ending, run.lines[1:]) == (Ending.FAILED, ["made"])
    assert told[0][0].startswith("· Creating a replica.")
