"""Wherever a page boundary lies, the blocks are those of folding everything in one go."""

import random
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

from quarterdeck.transcript.blocks import Block, SpeechBlock, Turn
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent


def seen(transcript: Transcript) -> list[dict[str, Any]]:
    """Everything that may be shown of every block."""
    return [_seen(block) for block in transcript.blocks]


def _seen(block: Block) -> dict[str, Any]:
    skipped = {"id", "revision", "turn", "flow"}
    values: dict[str, Any] = {
        f.name: getattr(block, f.name) for f in fields(block) if f.name not in skipped
    }
    values["type"] = type(block).__name__
    values["turn"] = _turn(block.turn)
    values["state"] = getattr(block, "state", None)
    values["is_open"] = getattr(block, "is_open", None)
    if isinstance(block, SpeechBlock):
        values["text"] = block.text
    return values


def _turn(turn: Turn) -> tuple[Any, ...]:
    return (turn.message_id, turn.started_at, turn.ended_at, turn.stop_reason)


def in_pages(events: Sequence[AgentEvent], cuts: Sequence[int]) -> Transcript:
    bounds = [0, *sorted(cuts), len(events)]
    pages = [events[a:b] for a, b in pairwise(bounds)]
    transcript = Transcript(pages[-1])
    for page in reversed(pages[:-1]):
        transcript.prepend(page)
    return transcript


def story(chat: Any) -> list[AgentEvent]:
    chat.user("do it", "m1").echo("do it").think("hm").think("m")
    chat.say("I wi").say("ll \x1b[3").say("1mrun\x1b[0m it.\n\nNow").plan(("a", "pending"))
    chat.call("t1", title="Run", kind="execute", status="pending", rawInput={"command": "ls"})
    chat.say("mean").told("t1", status="in_progress").say("while").add("odd", x=1).say("!")
    chat.ask("q1", "t2", title="Write").told("t1", status="completed", rawOutput={"exitCode": 3})
    chat.answer("q1", "yes").call("t2", status="in_progress").plan(("a", "completed"))
    chat.told("t2", content=[{"type": "diff", "path": "p", "oldText": "a", "newText": "b"}])
    chat.ask("q2", "t3").end("cancelled").told("t3", status="failed")
    chat.user("again", "m2").told("t2", status="completed").plan(("b", "pending"))
    chat.say("x", "s1").say("y", "s1").say("z", "s2").say("w").call("t4", title="Long")
    chat.user("third", "m3").say("end").told("t4", title="Longer").end("failed", "no key")
    chat.ask("q3", "t5").user("last", "m4").ask("q4", "t6").end("end_turn").ask("q5", "t7")
    return chat.events


def test_every_single_cut(chat: Any) -> None:
    events = story(chat)
    whole = seen(Transcript(events))
    for cut in range(len(events) + 1):
        assert seen(in_pages(events, [cut])) == whole, f"cut before event {cut}"


@pytest.mark.parametrize("seed", range(40))
def test_many_cuts_and_random_stories(chat: Any, seed: int) -> None:
    chosen = random.Random(seed)
    events = story(chat)[:]
    if seed % 2:
        shuffled = [event.model_copy() for event in chosen.sample(events, len(events))]
        for event, original in zip(shuffled, events, strict=True):
            event.timestamp = original.timestamp
        events = shuffled
    cuts = [chosen.randrange(len(events) + 1) for _ in range(chosen.randrange(1, 9))]
    assert seen(in_pages(events, cuts)) == seen(Transcript(events)), (seed, cuts)


@pytest.mark.parametrize("seed", range(20))
def test_going_on_after_older_pages(chat: Any, seed: int) -> None:
    chosen = random.Random(seed)
    events = story(chat)
    a, b = sorted(chosen.sample(range(len(events)), 2))
    transcript = Transcript(events[a:b])
    transcript.prepend(events[:a])
    for event in events[b:]:
        transcript.append(event)
    assert seen(transcript) == seen(Transcript(events))


def test_a_message_cut_in_two_keeps_its_id(chat: Any) -> None:
    chat.user("a").say("one ").say("two").say(" three")
    transcript = Transcript(chat.events[2:])
    kept = transcript.blocks[0].id
    change = transcript.prepend(chat.events[:2])
    assert change.changed == (kept,)
    assert len(change.added) == 1
    assert [block.id for block in transcript.blocks] == [*change.added, kept]
    assert transcript.position(kept) == 1


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_slices_fold_to_the_same(chat: Any, size: int) -> None:
    events = story(chat)
    grown = list(Transcript.in_slices(events, size))
    assert len(grown) == -(-len(events) // size) and len(set(map(id, grown))) == 1
    assert seen(grown[-1]) == seen(Transcript(events))
    assert [len(t.blocks) for t in Transcript.in_slices([])] == [0]


def test_an_empty_page_changes_nothing(chat: Any) -> None:
    transcript = Transcript(story(chat))
    before = seen(transcript)
    change = transcript.prepend([])
    assert (change.added, change.changed, change.removed) == ((), (), ())
    assert seen(transcript) == before
