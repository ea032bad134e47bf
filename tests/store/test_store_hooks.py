"""Hooks as their events tell them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quarterdeck.store.hooks import HookWatch, runs_of
from quarterdeck.wire.events import HooksChanged
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT, HookLogs

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Told:
    """A watch that is told events, a number of seconds after the start."""

    def __init__(self) -> None:
        self.watch = HookWatch()

    def take(self, type: str, seconds: float, **payload: Any) -> HookWatch:
        at = START + timedelta(seconds=seconds)
        self.watch.take(f"hooks.{type}", HooksChanged.model_validate(payload), at)
        return self.watch


def log(name: str, seconds: float, **more: Any) -> dict[str, Any]:
    at = START + timedelta(seconds=seconds)
    base = {"hookType": "start", "hookName": name, "output": "", "outputTruncated": False}
    ends = {"outputTotalChars": 0, "exitCode": 0, "timedOut": False, "executedAt": at}
    return base | ends | more


def logs(*start: dict[str, Any]) -> HookLogs:
    return HookLogs.model_validate({"warm_hooks": {"logs": []}, "start_hooks": {"logs": start}})


def test_hooks_that_follow_one_another_each_have_their_time() -> None:
    told = Told()
    told.take("started", 0, running=["one"])
    watch = told.take("progress", 1, hookName="one", output="a")
    assert watch.running is not None and watch.running.pieces == ["a"]
    assert told.take("status", 3, hookName="one").running is None
    told.take("progress", 4, hookName="two", output="b")
    told.take("status", 8, hookName="two")
    told.take("status", 9, hookName="silent")
    watch = told.take("completed", 9)
    assert watch.ended == 3
    found = runs_of(logs(log("one", 0.1), log("two", 3.1), log("silent", 8.1)), watch)
    assert [(run.name, run.seconds) for run in found] == [("silent", 1), ("two", 5), ("one", 3)]


def test_one_that_began_unseen_is_followed_without_a_time() -> None:
    told = Told()
    watch = told.take("progress", 10, hookName="one", output="late")
    assert watch.running is not None and not watch.running.whole
    watch = told.take("status", 12, hookName="one")
    (run,) = runs_of(logs(log("one", 9.5)), watch)
    assert run.seconds is None


def test_what_the_log_says_of_its_time_comes_first() -> None:
    (run,) = runs_of(logs(log("one", 0, durationMs=2_500)), HookWatch())
    assert run.seconds == 2.5


def test_a_failure_stays_until_the_next_start() -> None:
    told = Told()
    told.take("started", 0, running=["one"])
    watch = told.take("failed", 1, hookName="one", error="It ended with code 4.")
    assert (watch.failure, watch.running) == ("It ended with code 4.", None)
    assert told.take("started", 5, running=["one"]).failure == ""


def test_an_endless_output_is_kept_to_its_limit() -> None:
    told = Told()
    for number in range(12):
        watch = told.take("progress", number, hookName="one", output="x" * 10_000)
    assert watch.running is not None and watch.running.cut
    assert sum(len(piece) for piece in watch.running.pieces) == HOOK_OUTPUT_LIMIT


def test_what_another_server_tells_of_running_hooks_never_fails() -> None:
    told = Told()
    for running in (None, [], {"a": 1}, "x", 3):
        watch = told.take("started", 0, running=running)
        assert watch.running is not None and watch.running.name == ""


def test_a_run_tells_whose_it_was_and_what_its_log_left_out() -> None:
    cut = {"output": "end", "outputTruncated": True, "outputTotalChars": 1_003, "exitCode": None}
    (run,) = runs_of(logs(log("repository:shop", 0, timedOut=True, **cut)), HookWatch())
    assert (run.repository, run.left_out, run.failed) == ("shop", 1_000, True)
