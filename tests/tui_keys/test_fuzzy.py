"""A few letters find what was meant."""

from quarterdeck.tui.fuzzy import fit, ranked


def best(query: str, *texts: str) -> list[str]:
    return [text for text, _ in ranked(query, texts, str)]


def test_letters_must_all_be_there_in_order() -> None:
    assert fit("dlt", "Delete (asks first)") is not None
    assert fit("tld", "old") is None
    assert fit("dx", "delete") is None


def test_beginnings_of_words_count_most() -> None:
    assert best("fl", "careful", "flaky-tests", "fix-login") == [
        "flaky-tests",
        "fix-login",
        "careful",
    ]


def test_words_of_the_query_fit_in_any_order() -> None:
    assert best("terminal open", "Open the terminal", "Open the chat") == ["Open the terminal"]


def test_an_empty_query_keeps_the_order() -> None:
    assert best("  ", "b", "a") == ["b", "a"]


def test_the_places_found_are_told() -> None:
    found = fit("log", "fix-login")
    assert found is not None
    assert found.places == (4, 5, 6)
