"""How much a JSON text holds is counted exactly, before it is read."""

import pytest

from quarterdeck.wire.json_size import (
    VALUES_LIMIT,
    has_too_many_values,
    with_bounded_integers,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"[[],[],{}]", 6),
        (b'["a","[,{","\\"[,"]', 6),
        (b'{"a":1,"b":[2]}', 5),
        (b'["never ended', 2),
    ],
)
def test_strings_commas_and_brackets_are_counted(text: bytes, count: int) -> None:
    assert not has_too_many_values(text, count)
    assert has_too_many_values(text, count - 1)


def test_the_limit_itself_is_allowed() -> None:
    assert not has_too_many_values(b"[" * VALUES_LIMIT + b" " * 9)
    assert has_too_many_values(b"[" * (VALUES_LIMIT + 1))


@pytest.mark.parametrize("digits", [f"{2**63 - 1}", f"{2**63}", "1" + "0" * 19, "9" * 4_000])
def test_an_integer_has_at_most_64_bits(digits: str) -> None:
    bounded = with_bounded_integers(f'{{"n": {digits}, "m": [-{digits}]}}'.encode())
    assert bounded.decode() == f'{{"n": {2**63 - 1}, "m": [-{2**63 - 1}]}}'
