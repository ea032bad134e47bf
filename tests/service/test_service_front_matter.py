"""What a `SKILL.md` says of its skill."""

import pytest

from quarterdeck.service.environments.skill_registries import front_matter


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("no matter", {}),
        ("---\nname: A b\n---\nname: other", {"name": "A b"}),
        ("\ufeff---\r\nName: 'A'\r\n---", {"name": "A"}),
        ('---\ndescription: >\n  one\n  two\nname: "x"\n', {"description": "one two", "name": "x"}),
        ("---\nname: a\n  b\n---", {"name": "a b"}),
        ("---\nname: \x1b[31mred\n---", {"name": "[31mred"}),
        ("---\n- list\n---", {}),
    ],
)
def test_reading_front_matter(text: str, found: dict[str, str]) -> None:
    assert front_matter(text.encode()) == found
