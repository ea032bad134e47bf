"""What there is to say of one run, as lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.store.automation_states import knows_payload
from quarterdeck.transcript.clean import clean
from quarterdeck.tui.automations.pieces import Line
from quarterdeck.tui.automations.words import run_mark, run_trigger, took, verdict_mark
from quarterdeck.wire.automations import Execution

READING = "Reading …"


@dataclass(frozen=True)
class RunStory:
    """A run with what was read of it. `prompt` is None while it is not known; `said` then says why."""

    run: Execution
    replica: str
    prompt: str | None = None
    said: str = READING


def story_lines(story: RunStory) -> Iterator[Line]:
    """All of it: how it went, error, check, payload, prompt."""
    run, mark = story.run, run_mark(story.run)
    yield Line(f"{mark.sign} {mark.word}", mark.color, "status", bold=True)
    yield Line(f"{run.triggered_at.astimezone():%a %d %b %Y %H:%M:%S %Z}", label="began")
    if run.completed_at is not None:
        yield Line(took(run), label="took")
    yield Line(run_trigger(run), label="trigger")
    yield Line(story.replica, label="replica")
    if run.retry_of is not None:
        yield Line(f"of {str(run.retry_of)[:8]}", label="retry")
    if run.error:
        yield from _section("Error")
        yield from (Line(line, "error") for line in clean(run.error).splitlines())
    yield from _check(run)
    yield from _section("Payload")
    yield from _payload(run)
    yield from _section("Prompt")
    if story.prompt is None:
        yield Line(story.said, "muted")
    else:
        yield from (Line(line, hard=True) for line in clean(story.prompt).splitlines())


def payload_text(run: Execution) -> str:
    """The payload as JSON; empty when there is none."""
    if run.trigger_payload is None:
        return ""
    return json.dumps(run.trigger_payload, indent=2, ensure_ascii=False)


def _section(title: str) -> Iterator[Line]:
    yield Line()
    yield Line(title, "primary", bold=True)


def _check(run: Execution) -> Iterator[Line]:
    verdict, check = verdict_mark(run), run.check
    if verdict is None or check is None:
        return
    yield from _section("Check")
    yield Line(f"{verdict.sign} {verdict.word}", verdict.color, "verdict")
    of = f" of {check.repository}" if check.repository else ""
    yield Line(check.name + of, label="check")
    if check.title:
        yield Line(check.title, label="title")
    for line in clean(check.summary or "").splitlines():
        yield Line(line)


def _payload(run: Execution) -> Iterator[Line]:
    if not knows_payload(run):
        yield Line(READING, "muted")
        return
    text = payload_text(run)
    if not text:
        yield Line("None.", "muted")
    yield from (Line(line, hard=True) for line in clean(text).splitlines())
