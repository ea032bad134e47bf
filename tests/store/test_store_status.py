"""Who needs the person comes first."""

import pytest

from quarterdeck.store.status import NEEDS_YOU, Attention, attention_of


@pytest.mark.parametrize(
    ("status", "facts", "expected"),
    [
        ("active", {}, Attention.IDLE),
        ("active", {"works": True}, Attention.WORKING),
        ("active", {"works": True, "asks": True}, Attention.ASKS),
        ("active", {"works": True, "plans": True}, Attention.PLAN),
        ("active", {"asks": True, "plans": True}, Attention.ASKS),
        ("active", {"unseen": True, "failed": True, "plans": True}, Attention.PLAN),
        ("sleeping", {"plans": True}, Attention.PLAN),
        ("archived", {"plans": True}, Attention.ARCHIVED),
        ("error", {"plans": True}, Attention.FAILED),
        ("active", {"unseen": True}, Attention.DONE_UNSEEN),
        ("active", {"unseen": True, "failed": True}, Attention.FAILED),
        ("active", {"failed": True}, Attention.FAILED),
        ("active", {"failed": True, "works": True}, Attention.WORKING),
        ("sleeping", {"failed": True}, Attention.SLEEPING),
        ("preparing", {}, Attention.PREPARING),
        ("sleeping", {}, Attention.SLEEPING),
        ("sleeping", {"unseen": True}, Attention.DONE_UNSEEN),
        ("archived", {}, Attention.ARCHIVED),
        ("error", {"asks": True}, Attention.FAILED),
        ("dreaming", {}, Attention.IDLE),
    ],
)
def test_attention(status: str, facts: dict[str, bool], expected: Attention) -> None:
    none = dict.fromkeys(("asks", "plans", "works", "unseen", "failed"), False)
    given = {**none, **facts}
    assert attention_of(status, **given) is expected


def test_the_most_pressing_come_first() -> None:
    pressing = [Attention.ASKS, Attention.PLAN, Attention.FAILED, Attention.DONE_UNSEEN]
    assert sorted(Attention)[:4] == pressing
    assert set(pressing[:3]) == NEEDS_YOU
