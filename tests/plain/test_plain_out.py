"""Getting work out and ending replicas in lines: files, branches, names, and what is asked first."""

import pytest

from tests.plain.conftest import Shop, Talk, create
from tests.support.git import git
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(240)


def mend(talk: Talk) -> None:
    """Have the agent change the README of the open replica."""
    talk.type("mend now", "wait", "1", "wait")
    talk.until("It sells apples.")


def is_measured(shop: Shop, name: str) -> bool:
    """Whether the record of a replica says that one file is not committed."""
    record = shop.qd("replica", "show", name, "--json").json["replica"]
    left = [status["uncommitted"] for status in record["repository_statuses"]]
    return [one["files"] for one in left if one] == [1]


def test_work_is_applied_and_merged_into_the_checkout(shop: Shop) -> None:
    readme = shop.repository / "README"
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "fix")
        mend(talk)
        talk.type("apply", "apply")
        applied = talk.until("Nothing to apply: your checkout already has all changes.")
        assert f"Applied to {shop.repository}, 1 file:" in applied
        assert applied[applied.index(f"Applied to {shop.repository}, 1 file:") + 1] == "README"
        assert readme.read_text() == "A better shop.\n"

        git(shop.repository, "checkout", "-q", "README")
        talk.type("merge")
        nothing = talk.until("Already up to date with qd/fix.")
        assert nothing[-1].endswith(
            "1 file stays uncommitted in the replica; commit takes them along."
        )
        talk.type("commit", "A better shop", "merge")
        merged = talk.until("Merged qd/fix into main, ")
        assert any(line.endswith(" in shop: A better shop") for line in merged)
        talk.type("merge it all", "wait", "pr", "pr squash")  # the first is a message
        talk.until("Scripted: You said: merge it all.")
        talk.until("The source is a directory: fetch or merge, then push from there.")
        talk.until("The source is a directory: fetch or merge, then push from there.")
        assert talk.finish() == 0
    assert git(shop.repository, "log", "--format=%s", "-1", "main").strip() == "A better shop"
    assert readme.read_text() == "A better shop.\n"


@pytest.mark.long
def test_a_branch_that_has_diverged_here_is_overwritten_when_the_person_says_so(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "apart")
        mend(talk)
        talk.type("commit", "Theirs", "fetch")
        talk.until("Fetched qd/apart, ")
        mine = git(shop.repository, "commit-tree", "-m", "Mine", "main^{tree}").strip()
        git(shop.repository, "update-ref", "refs/heads/qd/apart", mine)
        talk.type("fetch", "no", "fetch", "yes")
        asked = talk.until("Fetched qd/apart, ")
        assert sum("has diverged" in line and "Overwrite it?" in line for line in asked) == 2
        assert "Canceled." in asked
        assert talk.finish() == 0
    assert git(shop.repository, "log", "--format=%s", "-1", "qd/apart").strip() == "Theirs"


@pytest.mark.long
def test_a_replica_is_renamed_put_to_rest_and_deleted(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "old")
        mend(talk)
        talk.type("rename", "The mended shop", "chats")
        renamed = talk.until("1. ")
        assert "Renamed to The mended shop." in renamed
        assert renamed[-1] == "1. The mended shop (Scripted) is idle."

        until(lambda: is_measured(shop, "old"))
        talk.type("wait a while")
        talk.until("Scripted: Waiting.")
        talk.type("sleep", "no", "status", "sleep", "yes")
        asleep = talk.until("old is asleep.")
        assert asleep.count("Stops the running turn of old.") == 2
        assert asleep.index("Canceled.") < asleep.index("old is working.")

        talk.type("archive", "yes")
        archived = talk.until("old is archived.")
        assert "old: 1 file not committed. Archiving keeps it; to push, wake it first." in archived

        talk.type("delete", "ol", "delete the file", "delete", "old")
        gone = talk.until("old was deleted.")
        assert sum("This permanently deletes the sandbox, files" in line for line in gone) == 2
        assert gone.count("Type old to delete it:") == 2
        assert "Canceled." in gone
        talk.type("status")
        talk.until("No replica is open.")
        assert talk.finish() == 0
    assert shop.qd("replica", "ls", "--json").json["replicas"] == []
