"""A service is added to the configuration file, and all else stays as it is."""

import stat
from pathlib import Path

import pytest

from quarterdeck.cli.cockpit import add_profile
from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.schema import read_config
from quarterdeck.cli.target import read_stored_key, stored_key_path
from quarterdeck.local.home import Home


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return stored_key_path(Home(tmp_path), "work")


def test_a_service_is_added_behind_what_is_there(file: Path, kept: Path) -> None:
    before = '# mine\ndefault = "home"\n\n[profiles.home]\nsocket = "/run/qd.sock"  # so\n'
    file.write_text(before)
    add_profile(file, "work", "https://service.example:8443/x", None, kept)
    assert file.read_text().startswith(before)
    found = read_config(file).profiles
    assert list(found) == ["home", "work"]
    assert found["work"].url == "https://service.example:8443/x"
    assert read_stored_key(kept) is None


def test_a_socket_and_a_key_that_the_file_does_not_hold(file: Path, kept: Path) -> None:
    add_profile(file, "work", 'unix:/run/a "b"\\c.sock', "sk_secret", kept)
    assert read_config(file).profiles["work"].socket == '/run/a "b"\\c.sock'
    assert "sk_secret" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_stored_key(kept) == "sk_secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_key_of_an_earlier_service_is_not_shown_to_another(file: Path, kept: Path) -> None:
    add_profile(file, "work", "https://one.example", "sk_one", kept)
    file.unlink()
    add_profile(file, "work", "https://two.example", None, kept)
    assert read_stored_key(kept) is None


def test_a_service_is_added_to_tables_in_one_line(file: Path, kept: Path) -> None:
    file.write_text("profiles = { a = { url = 'https://a' } }  # short\n")
    add_profile(file, "work", "https://service.example", None, kept)
    assert list(read_config(file).profiles) == ["a", "work"]
    assert file.read_text().endswith("# short\n")


@pytest.mark.parametrize("text", ["x =", "profiles = 1"])
def test_what_cannot_be_changed_is_left_and_said(file: Path, kept: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError):
        add_profile(file, "work", "https://service.example", "sk_secret", kept)
    assert file.read_text() == text
    assert not kept.exists()


@pytest.mark.parametrize("address", ["http://a:b", "http://:80", "https://a\nb"])
def test_what_is_no_address(file: Path, kept: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid URL"):
        add_profile(file, "work", address, None, kept)
    assert not file.exists()
