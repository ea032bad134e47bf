"""The vault: what it seals opens only where it was sealed."""

from pathlib import Path

import pytest

from quarterdeck.service.errors import HomeUnusableError, StorageError
from quarterdeck.service.vault import Vault


async def test_a_text_opens_in_its_row_only_and_is_not_in_what_is_stored(tmp_path: Path) -> None:
    vault = await Vault.open(tmp_path / "master.key")
    sealed = vault.seal("row", "a secret, ümläut")
    assert "secret" not in sealed
    assert vault.unseal("row", sealed) == "a secret, ümläut"
    assert vault.seal("row", "a secret, ümläut") != sealed
    with pytest.raises(StorageError, match="cannot be opened"):
        vault.unseal("another row", sealed)


async def test_the_key_is_the_owners_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    sealed = (await Vault.open(path)).seal("row", "text")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await Vault.open(path)).unseal("row", sealed) == "text"


async def test_another_key_opens_nothing(tmp_path: Path) -> None:
    sealed = (await Vault.open(tmp_path / "one")).seal("row", "text")
    with pytest.raises(StorageError, match="bring back the key file"):
        (await Vault.open(tmp_path / "two")).unseal("row", sealed)


@pytest.mark.parametrize("damaged", ["", "v1:", "v1:AAAA", "not sealed at all", "v1:é"])
async def test_what_was_damaged_is_refused(tmp_path: Path, damaged: str) -> None:
    with pytest.raises(StorageError):
        (await Vault.open(tmp_path / "key")).unseal("row", damaged)


@pytest.mark.parametrize("content", ["", "short", "bm90IGVub3VnaA=="])
async def test_a_file_that_holds_no_key_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(HomeUnusableError, match="holds no key"):
        await Vault.open(path)
    assert path.read_text() == content


async def test_uses_have_keys_of_their_own(tmp_path: Path) -> None:
    vault = await Vault.open(tmp_path / "key")
    assert len(vault.derived("tokens")) == 32
    assert vault.derived("tokens") != vault.derived("webhooks")
    assert vault.derived("tokens") == (await Vault.open(tmp_path / "key")).derived("tokens")
