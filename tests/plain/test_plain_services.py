"""Several services in lines: one list, each replica worked with where it is."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Installation, new_installation, serving
from tests.plain.conftest import NEW, Shop

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, open_shop: Shop) -> Iterator[Installation]:
    """Another service, whose profile the first one's configuration file shows."""
    made = new_installation(tmp_path_factory.mktemp("work") / "home")
    agents = (open_shop.home / "config.toml").read_text()
    made.home.mkdir()
    (made.home / "config.toml").write_text(agents)
    with serving(made):
        try:
            key = (made.home / "service/key").read_text().strip()
            profile = f'[profiles.work]\nsocket = "{made.home}/service/qd.sock"\nkey = "{key}"\nshown = true\n'
            (open_shop.home / "config.toml").write_text(f"{agents}\n{profile}")
            yield made
        finally:
            (open_shop.home / "config.toml").write_text(agents)
            made.qd("stop")


@pytest.mark.long
def test_replicas_of_two_services_are_worked_with_in_one_list(
    shop: Shop, work: Installation
) -> None:
    for one in (shop, work):
        made = one.qd(
            "replica",
            "create",
            "--name",
            "alpha",
            "--agent",
            "scripted",
            "--env",
            "global",
            "--wait",
        )
        assert made.code == 0, made.err
    with shop.plain() as talk:
        connecting = talk.until("Type help")
        assert connecting[0] == "Connecting to local, work."
        assert "2 replicas, none needs you." in connecting
        talk.type("list")
        assert {talk.until("1. ")[-1].split()[1], talk.until("2. ")[-1].split()[1]} == {
            "alpha",
            "work/alpha",
        }
        talk.type("list service:work")
        assert talk.until("1. ")[-1] == "1. work/alpha is idle."
        talk.type("open 1", "hello there", "wait")
        said = talk.until("Scripted: You said: hello there.")
        assert "Opened work/alpha, Scripted." in said
        assert work.qd("replica", "history", "alpha").out.count("hello there")
        assert "hello there" not in shop.qd("replica", "history", "alpha").out

        talk.type("open alpha", "new", "work", "-", "scripted", "beta", "hi", ".", "wait")
        assert "Opened alpha, Scripted." in talk.until("Opened alpha")
        asked = talk.until("Scripted: You said: hi.")
        assert "Service, by number or name (Enter for local):" in asked
        assert "Opened work/beta, Scripted." in asked
        assert talk.finish() == 0
        # A list is read before the connection is measured, so this may come after the first words.
        assert {"local: Connected.", "work: Connected."} <= set(talk.lines)
    assert len(work.qd("replica", "ls", "--json").json["replicas"]) == 2
    assert len(shop.qd("replica", "ls", "--json").json["replicas"]) == 1
    ids = [record["id"] for record in work.qd("replica", "ls", "--json").json["replicas"]]
    assert work.qd("replica", "rm", "--yes", *ids).code == 0


def test_one_that_does_not_answer_is_said_and_the_other_works(
    shop: Shop, work: Installation
) -> None:
    config = shop.home / "config.toml"
    before = config.read_text()
    config.write_text(before.replace("qd.sock", "none.sock"))
    try:
        with shop.plain() as talk:
            connecting = talk.until("Type help")
            assert any(line.startswith("work: Not connected: ") for line in connecting)
            talk.type("new", "", *NEW[1:], "here", ".")
            talk.until("Opened here, Scripted.")
            assert talk.finish() == 0
    finally:
        config.write_text(before)
