"""Hooks of an environment: read, saved, and tried out with what they print."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from quarterdeck.client.errors import NotFound
from quarterdeck.store.environments import HasClient
from quarterdeck.transcript.clean import clean_output, one_line
from quarterdeck.wire.environment_hooks import EnvironmentHook
from quarterdeck.wire.hook_tests import HookTestEvent
from quarterdeck.wire.setup import HookKind

if TYPE_CHECKING:
    from quarterdeck.wire.environments import Environment

KEPT_LINES = 20_000
"""Lines of a test's output that are kept: the last ones."""


class Ending(StrEnum):
    """How far a test is."""

    RUNS = "runs"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class HookPair:
    """The hooks in force, each None when there is none."""

    warm: EnvironmentHook | None
    start: EnvironmentHook | None

    def of(self, kind: HookKind) -> EnvironmentHook | None:
        """The one of a kind."""
        return self.warm if kind is HookKind.WARM else self.start


class HookRun:
    """One test of a hook: what it said, harmless to show, and how it ended."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ending = Ending.RUNS
        self.end = "It runs."
        self._open = ""
        self._partial = False

    def note(self, text: str) -> None:
        """Something about the test itself."""
        self._close_line()
        self._add([f"· {one_line(text)}"])

    def output(self, text: str) -> None:
        """A piece of what the hook printed; a line may come in pieces."""
        *whole, rest = (self._open + text).split("\n")
        if self._partial:
            self.lines.pop()
        self._add([clean_output(line) for line in whole])
        self._open, self._partial = rest, bool(rest)
        if rest:
            self._add([clean_output(rest)])

    def finish(self, ending: Ending, words: str) -> None:
        """It is over."""
        self._close_line()
        self.ending, self.end = ending, one_line(words)

    def _close_line(self) -> None:
        self._open, self._partial = "", False

    def _add(self, lines: list[str]) -> None:
        self.lines += lines
        del self.lines[:-KEPT_LINES]

    def take(self, event: HookTestEvent) -> None:
        """What the service tells of the test."""
        match event.type:
            case "progress":
                self.note(event.message or "")
            case "output":
                self.output(event.output or "")
            case "error":
                self.finish(Ending.FAILED, event.message or "It could not be run.")
            case "complete":
                self.complete(event.exit_code, bool(event.timed_out))

    def complete(self, exit_code: int | None, timed_out: bool) -> None:
        """The hook itself ended."""
        if timed_out:
            self.finish(Ending.FAILED, "It took too long and was stopped.")
        elif exit_code == 0:
            self.finish(Ending.PASSED, "It ended well (exit code 0).")
        else:
            self.finish(Ending.FAILED, f"It failed with exit code {exit_code}.")


class HookShelf:
    """Reads, saves and tests hooks. Every call raises the client's errors."""

    def __init__(self, owner: HasClient) -> None:
        self._owner = owner

    async def read(self, environment: "Environment") -> HookPair:
        """The hooks in force."""
        hooks = self._owner.client.environment_hooks
        state = await hooks.warm(environment.id)
        return HookPair(state.warm_hook, await hooks.start(environment.id))

    async def save(
        self, environment: "Environment", kind: HookKind, content: str
    ) -> EnvironmentHook | None:
        """Puts a new version in force, without a test; an empty start hook leaves none in force."""
        hooks = self._owner.client.environment_hooks
        if kind is HookKind.WARM:
            return await hooks.save_warm(environment.id, content)
        return await hooks.save_start(environment.id, content)

    async def test(
        self,
        environment: "Environment",
        kind: HookKind,
        content: str,
        told: Callable[[HookRun], None],
    ) -> HookRun:
        """Runs a hook in a workspace of its own, telling of each thing that it says.

        It is told of while it runs; a warm one when it has ended, where the service streams none.
        """
        run = HookRun()
        tests = self._owner.client.hook_tests
        try:
            stream = tests.stream_warm if kind is HookKind.WARM else tests.stream_start
            async with aclosing(stream(environment.id, content)) as events:
                async for event in events:
                    run.take(event)
                    told(run)
        except NotFound:
            if kind is not HookKind.WARM:
                raise
            run.note("A workspace is being made. What the hook prints comes when it has ended.")
            told(run)
            result = await tests.warm(environment.id, content)
            run.output(result.output)
            run.complete(result.exit_code, result.timed_out)
            told(run)
        if run.ending is Ending.RUNS:
            run.finish(Ending.STOPPED, "The line to the service broke: how it ended is not known.")
        return run
