"""Who needs the person comes first."""

import pytest

from quarterdeck.store.attention import Attention, attention_of


@pytest.mark.parametrize(
    ("status", "facts", "expected"),
    [
        ("active", {}, Attention.IDLE),
        ("active", {"works": True}, Attention.WORKING),
        ("active", {"works": True, "asks": True}, Attention.ASKS),
        ("active", {"unseen": True}, Attention.DONE_UNSEEN),
        ("active", {"unseen": True, "failed": True}, Attention.FAILED),
        ("active", {"failed": True}, Attention.IDLE),
        ("preparing", {}, Attention.PREPARING),
        ("sleeping", {}, Attention.SLEEPING),
        ("sleeping", {"unseen": True}, Attention.DONE_UNSEEN),
        ("archived", {}, Attention.ARCHIVED),
        ("error", {"asks": True}, Attention.FAILED),
        ("dreaming", {}, Attention.IDLE),
    ],
)
def test_attention(status: str, facts: dict[str, bool], expected: Attention) -> None:
    given = {"asks": False, "works": False, "unseen": False, "failed": False, **facts}
    assert attention_of(status, **given) is expected
