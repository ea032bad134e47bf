"""Moments of schedules, on the days when clocks are changed and on all others."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.schedules import coming_fires, last_fire, next_fire
from quarterdeck.service.automations.scheduler import check_schedule
from quarterdeck.service.errors import ApiError

# The clock goes forward at the first moment and back at the second, by the hours named.
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
    (
        "Australia/Lord_Howe",  # by half an hour
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
        datetime(2026, 4, 4, 15, tzinfo=UTC),
    ),
]


def fires(expression: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    moment = next_fire(expression, zone, begin)
    while moment is not None and moment < end:
        found.append(moment)
        moment = next_fire(expression, zone, moment)
    return found


@pytest.mark.parametrize(("zone", "forward", "back"), CHANGES)
def test_a_time_of_day_comes_once_a_day_whatever_the_clock_does(
    zone: str, forward: datetime, back: datetime
) -> None:
    for change in (forward, back):
        begin = change - timedelta(days=3)
        for hour in range(24):
            for minute in (0, 15, 45):
                came = fires(f"{minute} {hour} * * *", zone, begin, begin + timedelta(days=7))
                days = [moment.astimezone(ZoneInfo(zone)).date() for moment in came]
                assert len(set(days)) == len(days) >= 6, (hour, minute, came)


@pytest.mark.parametrize(
    ("expression", "plain"),
    [
        ("0 9-9/2 * * *", "0 9 * * *"),
        ("0 09-9/2 * * *", "0 9 * * *"),
        ("5-5/7,20 9 * * *", "5,20 9 * * *"),
        ("0 9 * * mon-MON/2", "0 9 * * 1"),
        ("0 9 * * sun-0/3", "0 9 * * 0"),
        ("0 9 1-1/10 jan-1/2 *", "0 9 1 1 *"),
        ("0 9-12/2 * * *", "0 9,11 * * *"),
        ("0 20/2 * * *", "0 20,22 * * *"),
    ],
)
def test_a_stepped_range_of_one_value_is_that_value(expression: str, plain: str) -> None:
    begin = datetime(2026, 11, 20, tzinfo=UTC)
    assert coming_fires(expression, "UTC", begin, 20) == coming_fires(plain, "UTC", begin, 20)


@pytest.mark.parametrize("field", ["9-9/0", "9-9/", "9-9/2/3", "25-25/2", "9-9/-2", "x-x/2"])
def test_a_wrong_stepped_range_stays_wrong(field: str) -> None:
    with pytest.raises(ApiError):
        check_schedule(f"0 {field} * * *", "UTC", "config")


@pytest.mark.parametrize(("zone", "forward", "back"), CHANGES)
def test_a_time_that_the_clock_jumps_over_comes_right_after_the_jump(
    zone: str, forward: datetime, back: datetime
) -> None:
    skipped = (forward - timedelta(minutes=1)).astimezone(ZoneInfo(zone)) + timedelta(minutes=16)
    [came] = fires(
        f"{skipped.minute} {skipped.hour} * * *",
        zone,
        forward - timedelta(hours=2),
        forward + timedelta(hours=20),
    )
    assert came == forward


@pytest.mark.parametrize(("zone", "forward", "back"), CHANGES)
def test_a_rhythm_of_minutes_goes_on_evenly(zone: str, forward: datetime, back: datetime) -> None:
    for change in (forward, back):
        begin = change - timedelta(hours=5)
        came = fires("*/10 * * * *", zone, begin, begin + timedelta(hours=10))
        steps = {after - before for before, after in pairwise(came)}
        assert steps == {timedelta(minutes=10)}


@settings(max_examples=60, deadline=None)
@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from([zone for zone, _, _ in CHANGES] + ["UTC", "Asia/Kathmandu"]),
)
def test_the_next_moment_is_later_and_within_a_day(
    after: datetime, minute: int, hour: int, zone: str
) -> None:
    moment = next_fire(f"{minute} {hour} * * *", zone, after)
    assert moment is not None and after < moment <= after + timedelta(hours=26)
    assert moment.second == moment.microsecond == 0 and moment.tzinfo is UTC


def test_the_newest_of_missed_moments() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert last_fire("0 * * * *", "UTC", begin, begin + timedelta(hours=5, minutes=10)) == (
        begin + timedelta(hours=5)
    )
    assert last_fire("0 9 * * *", "UTC", begin, begin + timedelta(hours=8)) is None


@pytest.mark.parametrize(
    ("schedule", "zone", "names"),
    [
        ("", "UTC", "schedule"),
        ("* * * *", "UTC", "schedule"),
        ("* * * * * *", "UTC", "schedule"),
        ("@daily", "UTC", "schedule"),
        ("60 * * * *", "UTC", "schedule"),
        ("* 24 * * *", "UTC", "schedule"),
        ("* * 0 * *", "UTC", "schedule"),
        ("* * * 13 *", "UTC", "schedule"),
        ("* * * * 8", "UTC", "schedule"),
        ("0 0 31 2 *", "UTC", "schedule"),
        ("*/0 * * * *", "UTC", "schedule"),
        ("x * * * *", "UTC", "schedule"),
        ("* * * * *", "Mars/Olympus", "timezone"),
        ("* * * * *", "../etc/passwd", "timezone"),
        ("* * * * *", "/etc/localtime", "timezone"),
        ("* * * * *", "", "timezone"),
        ("* * * * *", "localtime", "timezone"),
        ("* * * * *", "posixrules", "timezone"),
        ("* * * * *", "Factory", "timezone"),
        ("* * * * *", "posix/Europe/Paris", "timezone"),
        ("* * * * *", "right/UTC", "timezone"),
        ("* * * * *", "a" + "/a" * 3_000, "timezone"),
    ],
)
def test_what_is_no_schedule_is_refused_by_name(schedule: str, zone: str, names: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_schedule(schedule, zone, "triggers.0.config")
    assert refused.value.details is not None
    assert refused.value.details.startswith(f"triggers.0.config.{names}: ")


def test_the_coming_moments_in_their_order() -> None:
    friday = datetime(2026, 3, 27, 8, 0, tzinfo=UTC)  # the clock goes forward on Sunday
    assert coming_fires("0 9 * * 1-5", "Europe/Berlin", friday, 3) == [
        datetime(2026, 3, 30, 7, 0, tzinfo=UTC),
        datetime(2026, 3, 31, 7, 0, tzinfo=UTC),
        datetime(2026, 4, 1, 7, 0, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    "schedule", ["0 9 * * 1-5", "*/5 8-18 * * MON-FRI", "0 0 29 2 *", "0 0 L * *"]
)
def test_what_is_a_schedule_is_taken(schedule: str) -> None:
    check_schedule(schedule, "Europe/Berlin", "config")
