"""The latency on the screen is that of now, and noise changes nothing on it."""

import pytest

from quarterdeck.store.connection_monitor import is_news


@pytest.mark.parametrize(
    ("told", "taken"), [(None, 3.0), (19, 4), (4, 19), (2, 8), (40, 70), (200, 120), (300, 20)]
)
def test_a_latency_that_is_another_one_is_told(told: float | None, taken: float) -> None:
    assert is_news(told, taken)


@pytest.mark.parametrize(
    ("told", "taken"), [(2, 2), (2, 4), (4, 1), (19, 22), (40, 50), (200, 170), (300, 350)]
)
def test_noise_is_not(told: float, taken: float) -> None:
    assert not is_news(told, taken)
