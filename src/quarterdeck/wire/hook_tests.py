"""Tests of hooks: run in a workspace of their own, which then goes (docs/interface.md 7)."""

from typing import Literal

from quarterdeck.wire.base import Body, Record, Text
from quarterdeck.wire.environment_parts import EnvironmentHook


class HookTest(Record):
    """How a hook ended; `exit_code` is null when it took too long."""

    exit_code: int | None
    """Exit code; null when it timed out."""
    output: str
    """What it printed."""
    timed_out: bool
    """Whether it was stopped because it took too long."""


class HookTestAnswer(Record):
    """Answer of `test`."""

    test: HookTest
    """How the test ended."""


class SavedHookTest(Record):
    """Answer of `save-test`: the version is in force only when its test succeeded."""

    warm_hook: EnvironmentHook
    """The saved version."""
    test: HookTest
    """How the test ended."""


class TestHook(Body):
    """Body of `test`; without content the version in force is tested."""

    __test__ = False  # not a test class, despite its name

    content: Text | None = None
    """Shell script to test; the active version when it is left out."""


class HookTestEvent(Record):
    """One message of `test/stream`.

    `progress` has a `message`, `output` what the hook printed, `complete` how it ended, `error` a
    `message` that says why it could not be run.
    """

    type: Literal["progress", "output", "complete", "error"]
    """What happened."""
    message: str | None = None
    """Message for a person; with `progress` and `error`."""
    output: str | None = None
    """What the hook printed; with `output` and `complete`."""
    exit_code: int | None = None
    """Exit code, with `complete`; null when it timed out."""
    timed_out: bool | None = None
    """Whether it took too long; with `complete`."""
