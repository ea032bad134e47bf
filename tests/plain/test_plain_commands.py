"""Which line is a command, and which answer a text means."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from quarterdeck.plain.commands import ALIASES, COMMANDS, chosen_option
from quarterdeck.plain.replica_lines import summary_line
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import Attention
from quarterdeck.transcript.fold import Transcript
from tests.transcript.conftest import Chat

DOCS = Path(__file__).parents[2] / "docs" / "accessibility.md"


def test_every_command_is_documented() -> None:
    first = {span.split()[0] for span in re.findall(r"`([^`\n]+)`", DOCS.read_text("utf-8"))}
    assert set(COMMANDS) - first == set()
    assert set(ALIASES.values()) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("attentions", "words"),
    [
        ({}, "No replicas yet. Type new to create one."),
        ({"a": Attention.IDLE}, "1 replica, none needs you."),
        ({"a": Attention.DONE_UNSEEN}, "1 replica, none needs you. Done: a."),
        (
            {"a": Attention.FAILED, "b": Attention.ASKS, "c": Attention.DONE_UNSEEN},
            "3 replicas, 2 need you: a, b. Done: c.",
        ),
    ],
)
def test_who_is_done_does_not_need_you(attentions: dict[str, Attention], words: str) -> None:
    states = [
        SimpleNamespace(full_name=name, attention=state) for name, state in attentions.items()
    ]
    assert summary_line(cast("list[ReplicaState]", states)) == words


@pytest.mark.parametrize(
    ("line", "is_command"),
    [
        ("list", True),
        ("list is:asking", True),
        ("list the open issues", False),
        ("open shop", True),
        ("open the file", False),
        ("changes", True),
        ("changes 2", True),
        ("changes look good", False),
        ("next", True),
        ("next step", False),
        ("answer it with care", True),
        ("say list", True),
        ("merge", True),
        ("merge the branch", False),
        ("delete the file", False),
        ("rename it", False),
        ("pr", True),
        ("pr squash", True),
        ("pr looks good", False),
        ("fork", True),
        ("fork it", False),
        ("rewind", True),
        ("rewind the counter", False),
        ("permissions", True),
        ("permissions edits", True),
        ("permissions allow", True),
        ("permissions allow it", False),
        ("permissions of the files", False),
        ("chat 2", True),
        ("chat new", True),
        ("chat with me", False),
        ("queue", True),
        ("queue edit", True),
        ("queue it", False),
        ("search", True),
        ("search the logs", False),
        ("automations run", True),
        ("automations run nightly", True),
        ("automations run every night", False),
        ("automations are fine", False),
    ],
)
def test_what_fits_a_command(line: str, *, is_command: bool) -> None:
    word, _, rest = line.partition(" ")
    assert COMMANDS[word].fits(rest) is is_command


@pytest.mark.parametrize(
    ("typed", "option"),
    [
        ("1", "yes"),
        ("2", "no"),
        ("a", "yes"),
        ("B", "no"),
        ("reject", "no"),
        ("ALLOW", "yes"),
        ("0", None),
        ("3", None),
        ("c", None),
        ("r", None),
        ("rej", None),
        ("", None),
        ("\u0661", "yes"),
    ],
)
def test_an_answer_is_a_number_a_letter_or_a_name(typed: str, option: str | None) -> None:
    chat = Chat().user("go").ask("r", "t", title="rm")
    (question,) = Transcript(chat.events).open_questions
    assert chosen_option(question, typed) == option
