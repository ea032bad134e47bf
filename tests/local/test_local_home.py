"""Where an installation lies."""

from pathlib import Path

from quarterdeck.local.home import Home, find_home


def test_the_variable_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "x"))
    assert find_home() == Home(tmp_path / "x")


def test_a_relative_or_short_name_becomes_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUARTERDECK_HOME", "there")
    assert find_home().root == tmp_path / "there"
    monkeypatch.setenv("QUARTERDECK_HOME", "~/deck")
    assert find_home().root == tmp_path / "deck"


def test_else_the_platforms_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("QUARTERDECK_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert find_home().root == tmp_path / "data/quarterdeck"


def test_every_place_lies_within():
    home = Home(Path("/h"))
    places = [home.service, home.socket, home.lock, home.key, home.database, home.log]
    assert all(place.is_relative_to("/h/service") for place in places)
    assert all(place.parent == Path("/h") for place in (home.workspaces, home.mirrors, home.client))
