"""A setting is written into the file, and all else stays as it is."""

import stat
import tomllib
from pathlib import Path

import pytest

from quarterdeck.cli.cockpit import read_cockpit_file
from quarterdeck.cli.config_file import change_config, with_value
from quarterdeck.cli.errors import ConfigError


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[cockpit]\ntheme = "ansi"\n'),
        ("default = 'a' # x\n", "default = 'a' # x\n\n[cockpit]\ntheme = \"ansi\"\n"),
        ("[cockpit]\nmouse = true\n", '[cockpit]\nmouse = true\ntheme = "ansi"\n'),
        ("[ cockpit ] # c\ntheme='dark'  # d\n", '[ cockpit ] # c\ntheme="ansi"  # d\n'),
        (
            "[a]\ntheme = 'x'\n[cockpit]\n[b]\n",
            "[a]\ntheme = 'x'\n[cockpit]\ntheme = \"ansi\"\n[b]\n",
        ),
        ("cockpit = { mouse = true }\n", 'cockpit = { mouse = true, theme = "ansi"}\n'),
        ('cockpit.theme = "dark"\n', 'cockpit.theme = "ansi"\n'),
    ],
)
def test_one_value_is_written(before: str, after: str) -> None:
    assert with_value(before, ("cockpit", "theme"), "ansi") == after


def test_the_file_is_made_private_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"
    change_config(path, ("cockpit", "mouse"), False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    change_config(path, ("cockpit", "theme"), "light")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert tomllib.loads(path.read_text())["cockpit"] == {"theme": "light", "mouse": False}
    assert read_cockpit_file(path).theme == "light"


@pytest.mark.parametrize("text", ["x =", "cockpit = 1\n"])
def test_what_cannot_be_changed_is_left_and_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        change_config(path, ("cockpit", "theme"), "light")
    assert path.read_text() == text
