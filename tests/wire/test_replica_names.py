"""Names that a person may give to replicas."""

import pytest

from quarterdeck.wire.replicas import as_replica_name, is_replica_name

OTHER_MEANINGS = [
    "a/../b", "a//b", "/a", "a/", ".", "..", "./a", "*", "x;y", "a?", "[a]", "a&b", "a|b", "<a>",
    "a'b", 'a"b', "a`b", "a\\b", "a b", "deadbeef", "0123456789ab", "DEADBEEF",
    "7d1f6e0a-9a3b-4c5d-8e7f-001122334455",
]  # fmt: skip


@pytest.mark.parametrize("name", OTHER_MEANINGS)
def test_names_with_another_meaning_are_refused(name: str) -> None:
    assert not is_replica_name(name)
    assert is_replica_name(as_replica_name(name))


@pytest.mark.parametrize("name", ["fix/login", "v1.2", "...", "deadbee", "issue-12345678", "日本"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert is_replica_name(name)
    assert as_replica_name(name) == name
