"""Tests of hooks: run in a workspace of their own, which then goes (INTERFACE 7)."""

from typing import Literal

from quarterdeck.wire.base import Body, Record
from quarterdeck.wire.environment_hooks import EnvironmentHook
from quarterdeck.wire.stored_text import Text


class HookTest(Record):
    """How a hook ended; `exit_code` is null when it took too long."""

    exit_code: int | None
    output: str
    timed_out: bool


class HookTestAnswer(Record):
    """Answer of `test`."""

    test: HookTest


class SavedHookTest(Record):
    """Answer of `save-test`: the version is in force only when its test succeeded."""

    warm_hook: EnvironmentHook
    test: HookTest


class TestHook(Body):
    """Body of `test`; without content the version in force is tested."""

    __test__ = False  # no test class, whatever its name begins with

    content: Text | None = None


class HookTestEvent(Record):
    """One message of `test/stream`.

    `progress` has a `message`, `output` what the hook printed, `complete` how it ended, `error` a
    `message` that says why it could not be run.
    """

    type: Literal["progress", "output", "complete", "error"]
    message: str | None = None
    output: str | None = None
    exit_code: int | None = None
    timed_out: bool | None = None
