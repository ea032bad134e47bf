"""What a `.env` file says, and what pasting it would change."""

from uuid import UUID

import pytest

from quarterdeck.store.environment_paste import Effect, Line, counts_text, parse, plan
from quarterdeck.store.environments import InheritedPart, merged
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.environment_parts import EnvironmentVariable
from quarterdeck.wire.environments import Environment

NOW = utc_now()
ORGANIZATION = UUID(int=1)


def environment(name: str) -> Environment:
    return Environment(
        id=UUID(int=hash(name) % 1000),
        organization_id=ORGANIZATION,
        name=name,
        created_at=NOW,
        updated_at=NOW,
    )


def variable(key: str, value: str, *, free: bool = False) -> EnvironmentVariable:
    return EnvironmentVariable(
        id=UUID(int=len(key) * 1000 + len(value)),
        organization_id=ORGANIZATION,
        environment_id=ORGANIZATION,
        key=key,
        value=value,
        personal_override_allowed=free,
        created_at=NOW,
        updated_at=NOW,
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=1", "1"),
        ("A = 1 ", "1"),
        ("export A=1", "1"),
        ("A=", ""),
        ("A=# nothing", ""),
        ("A=1 # said", "1"),
        ("A=1#2", "1#2"),
        ("A='1 # 2'", "1 # 2"),
        ("A='a\\n'", "a\\n"),
        ('A="a\\nb" # said', "a\nb"),
        ('A="say \\"hi\\" \\$HOME \\x"', 'say "hi" $HOME \\x'),
        ('A="a\nb"', "a\nb"),
        ("A=a=b", "a=b"),
        ("A=$HOME/x", "$HOME/x"),
        ("\ufeffA=1\r\n", "1"),
        ("A=it's", "it's"),
        ('A="\\`"', "`"),
    ],
)
def test_an_assignment(text: str, value: str) -> None:
    assert parse(text) == [Line(1, "A", value)]


def test_comments_are_left_out_and_lines_are_counted_as_they_stand() -> None:
    lines = parse('# first\n\nA="1\n2"\nB\n C=3\nD=\'open\nE=5\n')
    assert [(line.number, line.key, line.value) for line in lines if not line.problem] == [
        (3, "A", "1\n2"),
        (6, "C", "3"),
        (8, "E", "5"),
    ]
    assert [(line.number, line.problem) for line in lines if line.problem] == [
        (5, "Not NAME=value."),
        (7, "Unclosed quote."),
    ]


def test_a_paste_is_planned_against_what_is_there() -> None:
    below = environment("base")
    entries = merged(
        [
            (below, [variable("LOCKED", "x"), variable("FREE", "x", free=True)]),
            (environment("own"), [variable("SAME", "1"), variable("OLD", "1")]),
        ],
        lambda one: one.key,
    )
    text = "SAME=1\nOLD=0\nOLD=2\nNEW=3\nLOCKED=4\nFREE=5\nHOME=/\n1X=2\nbad\nBIG=" + "x" * 70_000
    changes = plan(parse(text), entries, bound=True)
    assert [(one.effect.value, one.key) for one in changes] == [
        ("same", "SAME"),
        ("change", "OLD"),
        ("add", "NEW"),
        ("wrong", "LOCKED"),
        ("add", "FREE"),
        ("wrong", "HOME"),
        ("wrong", "line 8"),
        ("wrong", "line 9"),
        ("wrong", "BIG"),
    ]
    assert changes[1].value == "2" and changes[1].id == variable("OLD", "1").id
    assert "base" in changes[3].note and "base" in changes[4].note
    assert counts_text(changes) == "2 added, 1 changed, 1 unchanged, 5 invalid"
    free = plan(parse("LOCKED=4"), entries, bound=False)
    assert free[0].effect is Effect.ADD


def test_no_value_is_in_what_is_printed_of_a_plan() -> None:
    changes = plan(parse("A=hunter2\nB='hunter2"), [], bound=False)
    assert "hunter2" not in repr(changes) and "hunter2" not in repr(parse("A=hunter2"))


def test_the_upper_layer_counts_and_what_it_stands_over_is_told() -> None:
    low, high = environment("global"), environment("shop")
    found = merged([(low, ["a", "b"]), (high, ["b", "c"])], lambda one: one)
    assert found == [
        InheritedPart("a", low, own=False),
        InheritedPart("b", high, own=True, over="global"),
        InheritedPart("c", high, own=True),
    ]
