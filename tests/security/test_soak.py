"""What a soak (`make soak`) calls flat."""

import pytest

from tests.security.soak import ALLOWED, Sample, growths


@pytest.mark.parametrize("each", [0.0, 0.05])
def test_steady_growth_is_found_and_filling_at_the_start_is_not(each: float) -> None:
    samples = [
        Sample(n, *[100 + min(n, 50) + each * n * most for most in (6, 3, 2, 1, 6)])
        for n in range(400)
    ]
    found = growths(samples)
    assert {name: growth > ALLOWED[name] for name, (growth, _) in found.items()} == dict.fromkeys(
        ALLOWED, bool(each)
    )
