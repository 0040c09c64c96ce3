"""Who is on call and when, by what /manhunt/schedules/preview says: cases worked out by hand, and random schedules compared with
schedule_oracle.py, which works it out in another way. TABELLA_SCHEDULES sets how many schedules, TABELLA_SCHEDULES_SEED repeats a run.
The cases are also put to the oracle, and the oracle to others; `test_schedules.py CasesByOracle Oracle` needs no server."""

import bisect
import functools
import json
import os
import random
import unittest
import zoneinfo
from datetime import UTC, datetime, timedelta

import schedule_oracle
from schedule_oracle import DAY, DAYS, HOUR, MINUTE, SECOND, moment, transitions, wall

SCHEDULES = int(os.environ.get("TABELLA_SCHEDULES", "60"))
SEED = os.environ.get("TABELLA_SCHEDULES_SEED") or str(random.SystemRandom().randrange(10**9))

ZONES = ("Europe/Rome", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Apia",
         "America/Sao_Paulo", "Europe/London", "Asia/Tehran", "Africa/Cairo", "America/Havana", "Antarctica/Troll")


def rotation(contacts, start, unit, every=1, between=None, days=None):
    """`contacts` is a text of names, `between` one such as 22:00-06:00, `days` one of days."""
    window = {}
    if between:
        begin, end = between.split("-")
        window = {"between": {"from": begin, "to": end, **({"days": days.split()} if days else {})}}
    return {"contacts": contacts.split(), "start": start, "unit": unit, "every": every, **window}


def override(contact, begin, end):
    return {"contact": contact, "from": begin, "to": end}


def readable(shifts):
    return [f"{contact} {begin.isoformat()} {end.isoformat()}" for contact, begin, end in shifts]


class Server:
    """What the real binary says."""

    @classmethod
    def setUpClass(cls):
        from manhunt_server import ManhuntServer  # here: the others need none
        cls.server = cls.enterClassContext(ManhuntServer())

    def answer(self, body):
        return self.server.call("POST", "/manhunt/schedules/preview", body)["shifts"]

    def shifts(self, body):
        return [(shift["contact"], moment(shift["from"]), moment(shift["to"])) for shift in self.answer(body)]


class Cases:
    """Worked out by hand. What is expected is in UTC, with the local time beside it where that is the point."""

    maxDiff = None

    def check(self, timezone, begin, end, rotations, expected, overrides=()):
        body = {"title": "A case", "timezone": timezone, "rotations": rotations, "overrides": list(overrides), "from": begin, "to": end}
        shifts = [(contact, moment(since), moment(until)) for contact, since, until in expected]
        self.assertEqual(readable(self.shifts(body)), readable(shifts))

    # Rome: 29 March 2026, 02:00 -> 03:00 at 01:00Z; 25 October 2026, 03:00 -> 02:00 at 01:00Z.

    def test_a_weekly_handoff_stays_at_nine_when_the_clock_goes_forward(self):
        # Mondays at nine. The week of 23 March has 167 hours.
        self.check("Europe/Rome", "2026-03-20T00:00:00Z", "2026-04-10T00:00:00Z", [rotation("ann bob", "2026-01-05T09:00:00", "week")], [
            ("ann", "2026-03-20T00:00Z", "2026-03-23T08:00Z"),  # week 10, clipped
            ("bob", "2026-03-23T08:00Z", "2026-03-30T07:00Z"),
            ("ann", "2026-03-30T07:00Z", "2026-04-06T07:00Z"),
            ("bob", "2026-04-06T07:00Z", "2026-04-10T00:00Z")])

    def test_a_weekly_handoff_stays_at_nine_when_the_clock_goes_back(self):
        # The week of 19 October, the 41st, has 169 hours.
        self.check("Europe/Rome", "2026-10-19T07:00:00Z", "2026-11-02T08:00:00Z", [rotation("ann bob", "2026-01-05T09:00:00", "week")], [
            ("bob", "2026-10-19T07:00Z", "2026-10-26T08:00Z"),
            ("ann", "2026-10-26T08:00Z", "2026-11-02T08:00Z")])

    def test_a_rotation_of_every_second_week(self):
        self.check("Europe/Rome", "2026-03-01T00:00:00Z", "2026-04-20T00:00:00Z", [rotation("ann bob cyd", "2026-03-02T09:00:00", "week", every=2)], [
            ("ann", "2026-03-02T08:00Z", "2026-03-16T08:00Z"),
            ("bob", "2026-03-16T08:00Z", "2026-03-30T07:00Z"),
            ("cyd", "2026-03-30T07:00Z", "2026-04-13T07:00Z"),
            ("ann", "2026-04-13T07:00Z", "2026-04-20T00:00Z")])

    def test_twelve_hours_are_twelve_hours_when_the_clock_changes(self):
        # 08:00 and 20:00 by the clock become 09:00 and 21:00, and then again 08:00 and 20:00.
        rotations = [rotation("ann bob", "2026-03-28T08:00:00", "hour", every=12)]
        self.check("Europe/Rome", "2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z", rotations, [
            ("ann", "2026-03-28T07:00Z", "2026-03-28T19:00Z"),
            ("bob", "2026-03-28T19:00Z", "2026-03-29T07:00Z"),
            ("ann", "2026-03-29T07:00Z", "2026-03-29T19:00Z"),
            ("bob", "2026-03-29T19:00Z", "2026-03-30T00:00Z")])
        self.check("Europe/Rome", "2026-10-24T12:00:00Z", "2026-10-25T20:00:00Z", rotations, [
            ("ann", "2026-10-24T12:00Z", "2026-10-24T19:00Z"),  # 21:00
            ("bob", "2026-10-24T19:00Z", "2026-10-25T07:00Z"),  # 08:00
            ("ann", "2026-10-25T07:00Z", "2026-10-25T19:00Z"),
            ("bob", "2026-10-25T19:00Z", "2026-10-25T20:00Z")])

    def test_a_handoff_that_is_skipped_is_when_the_clock_goes_forward(self):
        self.check("Europe/Rome", "2026-03-26T00:00:00Z", "2026-03-31T00:30:00Z", [rotation("ann bob cyd", "2026-03-27T02:30:00", "day")], [
            ("ann", "2026-03-27T01:30Z", "2026-03-28T01:30Z"),
            ("bob", "2026-03-28T01:30Z", "2026-03-29T01:00Z"),  # not 01:30Z, which is 03:30
            ("cyd", "2026-03-29T01:00Z", "2026-03-30T00:30Z"),  # again 02:30
            ("ann", "2026-03-30T00:30Z", "2026-03-31T00:30Z")])

    def test_the_first_and_the_last_that_are_skipped(self):
        # 02:00 is the first that was skipped, 03:00 the first that was not: the same instant. 01:59:59 is a second before.
        for start, handoff in (("01:59:59", "00:59:59"), ("02:00:00", "01:00:00"), ("02:59:59", "01:00:00"), ("03:00:00", "01:00:00"), ("03:00:01", "01:00:01")):
            with self.subTest(start):
                self.check("Europe/Rome", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", [rotation("ann bob", f"2026-03-28T{start}", "day")], [
                    ("ann", "2026-03-29T00:00Z", f"2026-03-29T{handoff}Z"),
                    ("bob", f"2026-03-29T{handoff}Z", "2026-03-29T12:00Z")])

    def test_a_handoff_that_is_twice_is_the_first(self):
        self.check("Europe/Rome", "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z", [rotation("ann bob cyd", "2026-10-24T02:30:00", "day")], [
            ("ann", "2026-10-24T00:30Z", "2026-10-25T00:30Z"),
            ("bob", "2026-10-25T00:30Z", "2026-10-26T01:30Z"),  # 25 hours
            ("cyd", "2026-10-26T01:30Z", "2026-10-27T00:00Z")])

    def test_the_first_and_the_last_that_are_twice(self):
        # 02:00 to 02:59:59 are twice; 03:00 is once, after the second pass.
        for start, handoff in (("01:59:59", "2026-10-24T23:59:59"), ("02:00:00", "2026-10-25T00:00:00"), ("02:59:59", "2026-10-25T00:59:59"), ("03:00:00", "2026-10-25T02:00:00")):
            with self.subTest(start):
                self.check("Europe/Rome", "2026-10-24T22:00:00Z", "2026-10-25T12:00:00Z", [rotation("ann bob", f"2026-10-24T{start}", "day")], [
                    ("ann", "2026-10-24T22:00Z", f"{handoff}Z"),
                    ("bob", f"{handoff}Z", "2026-10-25T12:00Z")])

    def test_a_start_that_is_skipped_or_twice(self):
        self.check("Europe/Rome", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", [rotation("ann bob", "2026-03-29T02:30:00", "hour", every=6)], [
            ("ann", "2026-03-29T01:00Z", "2026-03-29T07:00Z"),
            ("bob", "2026-03-29T07:00Z", "2026-03-29T12:00Z")])
        self.check("Europe/Rome", "2026-10-25T00:00:00Z", "2026-10-25T12:00:00Z", [rotation("ann bob", "2026-10-25T02:30:00", "hour", every=6)], [
            ("ann", "2026-10-25T00:30Z", "2026-10-25T06:30Z"),
            ("bob", "2026-10-25T06:30Z", "2026-10-25T12:00Z")])

    def test_before_the_start_there_is_nobody(self):
        rotations = [rotation("ann", "2026-06-01T09:00:00", "day")]
        self.check("Europe/Rome", "2026-05-01T00:00:00Z", "2026-06-01T07:00:00Z", rotations, [])
        self.check("Europe/Rome", "2026-05-01T00:00:00Z", "2026-06-01T07:00:01Z", rotations, [("ann", "2026-06-01T07:00:00Z", "2026-06-01T07:00:01Z")])

    # Windows.

    def test_office_hours(self):
        # Friday 27 March to Tuesday 31 March: on Monday the clock is an hour ahead.
        self.check("Europe/Rome", "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z",
                   [rotation("ann bob", "2026-03-23T09:00:00", "week", between="09:00-17:00", days="mon tue wed thu fri")], [
            ("ann", "2026-03-27T08:00Z", "2026-03-27T16:00Z"),
            ("bob", "2026-03-30T07:00Z", "2026-03-30T15:00Z"),
            ("bob", "2026-03-31T07:00Z", "2026-03-31T15:00Z")])

    def test_a_night_is_an_hour_longer_when_the_clock_goes_back(self):
        rotations = [rotation("ann", "2026-01-01T00:00:00", "day", between="22:00-06:00", days="sat")]
        self.check("Europe/Rome", "2026-10-23T00:00:00Z", "2026-10-27T00:00:00Z", rotations, [("ann", "2026-10-24T20:00Z", "2026-10-25T05:00Z")])
        self.check("Europe/Rome", "2026-03-27T00:00:00Z", "2026-03-31T00:00:00Z", rotations, [("ann", "2026-03-28T21:00Z", "2026-03-29T04:00Z")])

    def test_a_handoff_within_a_night(self):
        # At midnight; the night belongs to the day on which it began, whoever is on call.
        self.check("Europe/Rome", "2026-06-05T00:00:00Z", "2026-06-09T00:00:00Z",
                   [rotation("ann bob", "2026-06-01T00:00:00", "day", between="22:00-06:00", days="fri sun")], [
            ("ann", "2026-06-05T20:00Z", "2026-06-05T22:00Z"),  # Friday, day 4
            ("bob", "2026-06-05T22:00Z", "2026-06-06T04:00Z"),
            ("ann", "2026-06-07T20:00Z", "2026-06-07T22:00Z"),  # Sunday, day 6
            ("bob", "2026-06-07T22:00Z", "2026-06-08T04:00Z")])

    def test_the_edge_of_a_window_that_is_twice(self):
        # The clock shows 02:30 to 03:00, then 02:00 to 03:00 again: a window from 02:30 opens twice, one until 02:30 closes twice.
        begin, end = "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"
        self.check("Europe/Rome", begin, end, [rotation("ann", "2026-01-01T00:00:00", "day", between="02:30-06:00")], [
            ("ann", "2026-10-25T00:30Z", "2026-10-25T01:00Z"),
            ("ann", "2026-10-25T01:30Z", "2026-10-25T05:00Z")])
        self.check("Europe/Rome", begin, end, [rotation("ann", "2026-01-01T00:00:00", "day", between="22:00-02:30", days="sat")], [
            ("ann", "2026-10-24T20:00Z", "2026-10-25T00:30Z"),
            ("ann", "2026-10-25T01:00Z", "2026-10-25T01:30Z")])

    def test_the_edge_of_a_window_that_is_skipped(self):
        begin, end = "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"
        for between, expected in (("02:30-06:00", [("ann", "2026-03-29T01:00Z", "2026-03-29T04:00Z")]),
                                  ("22:00-02:30", [("ann", "2026-03-28T21:00Z", "2026-03-29T01:00Z")]),
                                  ("02:10-02:50", []),
                                  ("02:50-02:10", [("ann", begin, end)])):
            with self.subTest(between):
                self.check("Europe/Rome", begin, end, [rotation("ann", "2026-01-01T00:00:00", "day", between=between)], expected)

    def test_the_whole_day(self):
        # Sundays from midnight to midnight, whichever time is named twice: 25 hours.
        for between in ("00:00-00:00", "09:00-09:00"):
            with self.subTest(between):
                self.check("Europe/Rome", "2026-10-23T00:00:00Z", "2026-10-28T00:00:00Z", [rotation("ann", "2026-01-01T00:00:00", "week", between=between, days="sun")],
                           [("ann", "2026-10-24T22:00Z", "2026-10-25T23:00Z")])

    def test_a_window_until_midnight(self):
        self.check("Europe/Rome", "2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z", [rotation("ann", "2026-01-01T00:00:00", "week", between="18:00-00:00", days="wed")],
                   [("ann", "2026-06-03T16:00Z", "2026-06-03T22:00Z")])

    def test_a_window_opens_at_the_start_at_the_earliest(self):
        # From noon on, within 09:00 to 17:00; the handoff is at noon, too.
        self.check("Asia/Kolkata", "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z", [rotation("ann bob", "2026-06-01T12:00:00", "day", between="09:00-17:00")], [
            ("ann", "2026-06-01T06:30Z", "2026-06-01T11:30Z"),
            ("ann", "2026-06-02T03:30Z", "2026-06-02T06:30Z"),
            ("bob", "2026-06-02T06:30Z", "2026-06-02T11:30Z")])

    def test_hours_are_counted_outside_the_window_too(self):
        # Three hours each from midnight (22:00Z): 09:00 is where the fourth shift begins.
        self.check("Europe/Rome", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", [rotation("ann bob cyd", "2026-06-01T00:00:00", "hour", every=3, between="10:00-17:00")], [
            ("ann", "2026-06-01T08:00Z", "2026-06-01T10:00Z"),
            ("bob", "2026-06-01T10:00Z", "2026-06-01T13:00Z"),
            ("cyd", "2026-06-01T13:00Z", "2026-06-01T15:00Z")])

    # Other zones.

    def test_lord_howe_changes_by_half_an_hour(self):
        # 5 April 2026, 02:00 -> 01:30 at 15:00Z the day before; 4 October 2026, 02:00 -> 02:30 at 15:30Z the day before.
        self.check("Australia/Lord_Howe", "2026-04-02T00:00:00Z", "2026-04-06T00:00:00Z", [rotation("ann bob", "2026-04-03T01:45:00", "day")], [
            ("ann", "2026-04-02T14:45Z", "2026-04-03T14:45Z"),
            ("bob", "2026-04-03T14:45Z", "2026-04-04T14:45Z"),
            ("ann", "2026-04-04T14:45Z", "2026-04-05T15:15Z"),  # 24 hours and a half
            ("bob", "2026-04-05T15:15Z", "2026-04-06T00:00Z")])
        self.check("Australia/Lord_Howe", "2026-10-02T00:00:00Z", "2026-10-05T00:00:00Z", [rotation("ann bob", "2026-10-03T02:15:00", "day")], [
            ("ann", "2026-10-02T15:45Z", "2026-10-03T15:30Z"),
            ("bob", "2026-10-03T15:30Z", "2026-10-04T15:15Z"),
            ("ann", "2026-10-04T15:15Z", "2026-10-05T00:00Z")])
        # The clock shows 01:45 to 02:00, then 01:30 to 02:00 again.
        self.check("Australia/Lord_Howe", "2026-04-04T12:00:00Z", "2026-04-04T18:00:00Z", [rotation("ann", "2026-04-03T00:00:00", "day", between="01:45-02:15")], [
            ("ann", "2026-04-04T14:45Z", "2026-04-04T15:00Z"),
            ("ann", "2026-04-04T15:15Z", "2026-04-04T15:45Z")])

    # Apia: 29 December 2011, 24:00 (-10) -> 31 December, 00:00 (+14), at 10:00Z on the 30th, which was to be a Friday.

    def test_the_shift_of_the_day_that_apia_skipped(self):
        self.check("Pacific/Apia", "2011-12-28T00:00:00Z", "2012-01-01T00:00:00Z", [rotation("ann bob cyd dan", "2011-12-28T09:00:00", "day")], [
            ("ann", "2011-12-28T19:00Z", "2011-12-29T19:00Z"),
            ("bob", "2011-12-29T19:00Z", "2011-12-30T10:00Z"),
            ("cyd", "2011-12-30T10:00Z", "2011-12-30T19:00Z"),  # from midnight to nine on the 31st
            ("dan", "2011-12-30T19:00Z", "2011-12-31T19:00Z"),
            ("ann", "2011-12-31T19:00Z", "2012-01-01T00:00Z")])

    def test_two_handoffs_at_once_in_apia(self):
        # Midnight of the 30th and of the 31st are one instant: cyd's shift has no length.
        self.check("Pacific/Apia", "2011-12-28T00:00:00Z", "2012-01-01T00:00:00Z", [rotation("ann bob cyd dan", "2011-12-28T00:00:00", "day")], [
            ("ann", "2011-12-28T10:00Z", "2011-12-29T10:00Z"),
            ("bob", "2011-12-29T10:00Z", "2011-12-30T10:00Z"),
            ("dan", "2011-12-30T10:00Z", "2011-12-31T10:00Z"),
            ("ann", "2011-12-31T10:00Z", "2012-01-01T00:00Z")])

    def test_apia_had_no_office_hours_that_friday(self):
        self.check("Pacific/Apia", "2011-12-28T00:00:00Z", "2012-01-08T00:00:00Z", [rotation("ann", "2011-12-01T00:00:00", "day", between="09:00-17:00", days="thu fri")], [
            ("ann", "2011-12-29T19:00Z", "2011-12-30T03:00Z"),
            ("ann", "2012-01-04T19:00Z", "2012-01-05T03:00Z"),
            ("ann", "2012-01-05T19:00Z", "2012-01-06T03:00Z")])

    def test_twenty_four_hours_in_apia(self):
        # By elapsed time nothing happens.
        self.check("Pacific/Apia", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z", [rotation("ann bob", "2011-12-28T14:00:00", "hour", every=24)], [
            ("ann", "2011-12-29T00:00Z", "2011-12-30T00:00Z"),
            ("bob", "2011-12-30T00:00Z", "2011-12-31T00:00Z"),
            ("ann", "2011-12-31T00:00Z", "2012-01-01T00:00Z")])

    def test_midnight_in_sao_paulo(self):
        # 4 November 2018, 00:00 -> 01:00 at 03:00Z; 17 February 2019, 00:00 -> 23:00 of the 16th at 02:00Z.
        self.check("America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-05T12:00:00Z", [rotation("ann bob cyd", "2018-11-03T00:30:00", "day")], [
            ("ann", "2018-11-03T12:00Z", "2018-11-04T03:00Z"),
            ("bob", "2018-11-04T03:00Z", "2018-11-05T02:30Z"),
            ("cyd", "2018-11-05T02:30Z", "2018-11-05T12:00Z")])
        # 24:00 is not shown at 02:00Z: it is 23:00 again.
        self.check("America/Sao_Paulo", "2019-02-16T12:00:00Z", "2019-02-17T12:00:00Z", [rotation("ann bob", "2019-02-16T00:00:00", "day")], [
            ("ann", "2019-02-16T12:00Z", "2019-02-17T03:00Z"),
            ("bob", "2019-02-17T03:00Z", "2019-02-17T12:00Z")])
        # A Saturday of 25 hours.
        self.check("America/Sao_Paulo", "2019-02-15T00:00:00Z", "2019-02-19T00:00:00Z", [rotation("ann", "2019-01-01T00:00:00", "day", between="00:00-00:00", days="sat")],
                   [("ann", "2019-02-16T02:00Z", "2019-02-17T03:00Z")])
        # A Saturday's night that begins twice.
        self.check("America/Sao_Paulo", "2019-02-15T00:00:00Z", "2019-02-19T00:00:00Z", [rotation("ann", "2019-01-01T00:00:00", "day", between="23:30-06:00", days="sat")], [
            ("ann", "2019-02-17T01:30Z", "2019-02-17T02:00Z"),
            ("ann", "2019-02-17T02:30Z", "2019-02-17T09:00Z")])

    def test_a_minute_past_midnight_in_st_johns(self):
        # 13 March 2011, 00:01 -> 01:01 at 03:31Z.
        self.check("America/St_Johns", "2011-03-12T12:00:00Z", "2011-03-13T12:00:00Z", [rotation("ann bob", "2011-03-12T00:30:00", "day")], [
            ("ann", "2011-03-12T12:00Z", "2011-03-13T03:31Z"),
            ("bob", "2011-03-13T03:31Z", "2011-03-13T12:00Z")])

    def test_cairo_took_summer_time_up_again(self):
        # 28 April 2023, a Friday, 00:00 -> 01:00 at 22:00Z the day before; none since 2014.
        self.check("Africa/Cairo", "2022-04-28T21:00:00Z", "2022-04-29T21:00:00Z", [rotation("ann bob", "2022-04-28T00:30:00", "day")], [
            ("ann", "2022-04-28T21:00Z", "2022-04-28T22:30Z"),
            ("bob", "2022-04-28T22:30Z", "2022-04-29T21:00Z")])
        self.check("Africa/Cairo", "2023-04-27T12:00:00Z", "2023-04-29T12:00:00Z", [rotation("ann bob", "2023-04-27T00:30:00", "day")], [
            ("ann", "2023-04-27T12:00Z", "2023-04-27T22:00Z"),
            ("bob", "2023-04-27T22:00Z", "2023-04-28T21:30Z"),
            ("ann", "2023-04-28T21:30Z", "2023-04-29T12:00Z")])

    # Several rotations and overrides.

    def test_the_last_rotation_that_has_somebody_wins(self):
        # Ann always, by day bob, on Wednesday from noon on cyd.
        self.check("Europe/London", "2026-06-02T00:00:00Z", "2026-06-04T00:00:00Z", [
            rotation("ann", "2026-01-01T00:00:00", "week"),
            rotation("bob", "2026-01-01T00:00:00", "week", between="09:00-17:00"),
            rotation("cyd", "2026-01-01T00:00:00", "week", between="12:00-13:00", days="wed")], [
            ("ann", "2026-06-02T00:00Z", "2026-06-02T08:00Z"),
            ("bob", "2026-06-02T08:00Z", "2026-06-02T16:00Z"),
            ("ann", "2026-06-02T16:00Z", "2026-06-03T08:00Z"),
            ("bob", "2026-06-03T08:00Z", "2026-06-03T11:00Z"),
            ("cyd", "2026-06-03T11:00Z", "2026-06-03T12:00Z"),
            ("bob", "2026-06-03T12:00Z", "2026-06-03T16:00Z"),
            ("ann", "2026-06-03T16:00Z", "2026-06-04T00:00Z")])

    def test_neighbouring_shifts_of_one_are_one(self):
        begin, end = "2026-06-02T00:00:00Z", "2026-06-06T00:00:00Z"
        self.check("Europe/London", begin, end, [rotation("ann", "2026-01-01T09:00:00", "day")], [("ann", begin, end)])
        self.check("Europe/London", begin, end, [rotation("ann", "2026-01-01T09:00:00", "day"), rotation("ann", "2026-01-01T00:00:00", "hour", between="09:00-17:00")],
                   [("ann", begin, end)], [override("ann", "2026-06-03T10:00:00Z", "2026-06-03T11:00:00Z")])
        self.check("Europe/London", begin, end, [rotation("ann ann bob", "2026-06-02T09:00:00", "day")], [
            ("ann", "2026-06-02T08:00Z", "2026-06-04T08:00Z"),
            ("bob", "2026-06-04T08:00Z", "2026-06-05T08:00Z"),
            ("ann", "2026-06-05T08:00Z", end)])

    def test_an_override_across_a_handoff(self):
        self.check("Europe/Rome", "2026-06-01T00:00:00Z", "2026-06-04T00:00:00Z", [rotation("ann bob", "2026-06-01T09:00:00", "day")], [
            ("ann", "2026-06-01T07:00Z", "2026-06-02T05:00Z"),
            ("eve", "2026-06-02T05:00Z", "2026-06-02T12:00Z"),
            ("bob", "2026-06-02T12:00Z", "2026-06-03T07:00Z"),
            ("ann", "2026-06-03T07:00Z", "2026-06-04T00:00Z")],
            [override("eve", "2026-06-02T07:00:00+02:00", "2026-06-02T14:00:00+02:00")])

    def test_an_override_by_the_next_one_is_joined_to_the_shift(self):
        self.check("Europe/Rome", "2026-06-01T00:00:00Z", "2026-06-03T07:00:00Z", [rotation("ann bob", "2026-06-01T09:00:00", "day")], [
            ("ann", "2026-06-01T07:00Z", "2026-06-02T05:00Z"),
            ("bob", "2026-06-02T05:00Z", "2026-06-03T07:00Z")],
            [override("bob", "2026-06-02T05:00:00Z", "2026-06-02T12:00:00Z")])

    def test_nobody_by_an_override(self):
        self.check("Europe/Rome", "2026-06-01T07:00:00Z", "2026-06-03T00:00:00Z", [rotation("ann bob", "2026-06-01T09:00:00", "day")], [
            ("ann", "2026-06-01T07:00Z", "2026-06-02T05:00Z"),
            ("bob", "2026-06-02T12:00Z", "2026-06-03T00:00Z")],
            [override("", "2026-06-02T05:00:00Z", "2026-06-02T12:00:00Z")])

    def test_of_overrides_the_one_added_last_wins(self):
        rotations = [rotation("ann", "2026-06-01T00:00:00", "day")]
        long, short, nobody = (override("bob", "2026-06-02T00:00:00Z", "2026-06-02T12:00:00Z"), override("cyd", "2026-06-02T04:00:00Z", "2026-06-02T08:00:00Z"),
                               override("", "2026-06-02T06:00:00Z", "2026-06-02T14:00:00Z"))
        begin, end = "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z"
        self.check("UTC", begin, end, rotations, [
            ("ann", begin, "2026-06-02T00:00Z"),
            ("bob", "2026-06-02T00:00Z", "2026-06-02T04:00Z"),
            ("cyd", "2026-06-02T04:00Z", "2026-06-02T06:00Z"),
            ("ann", "2026-06-02T14:00Z", end)], [long, short, nobody])
        self.check("UTC", begin, end, rotations, [
            ("ann", begin, "2026-06-02T00:00Z"),
            ("bob", "2026-06-02T00:00Z", "2026-06-02T12:00Z"),
            ("ann", "2026-06-02T14:00Z", end)], [short, nobody, long])

    def test_an_override_before_the_start_and_outside_a_window(self):
        self.check("UTC", "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z", [rotation("ann", "2026-06-02T00:00:00", "day", between="09:00-17:00")], [
            ("bob", "2026-06-01T10:00Z", "2026-06-01T11:00Z"),
            ("bob", "2026-06-02T08:00Z", "2026-06-02T10:00Z"),
            ("ann", "2026-06-02T10:00Z", "2026-06-02T17:00Z")],
            [override("bob", "2026-06-01T10:00:00Z", "2026-06-01T11:00:00Z"), override("bob", "2026-06-02T08:00:00Z", "2026-06-02T10:00:00Z")])

    def test_overrides_are_exact_to_the_millisecond(self):
        self.check("UTC", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", [rotation("ann", "2026-06-01T00:00:00", "day")], [
            ("ann", "2026-06-01T00:00Z", "2026-06-01T10:00:00.250Z"),
            ("bob", "2026-06-01T10:00:00.250Z", "2026-06-01T10:00:00.750Z"),
            ("ann", "2026-06-01T10:00:00.750Z", "2026-06-02T00:00Z")],
            [override("bob", "2026-06-01T10:00:00.250Z", "2026-06-01T10:00:00.750Z")])


class CasesByServer(Server, Cases, unittest.TestCase):
    def test_moments_are_in_utc_with_milliseconds(self):
        body = {"title": "", "timezone": "Asia/Kolkata", "rotations": [rotation("ann", "2026-06-01T00:00:00", "day")], "from": "2026-06-01T00:00:00+05:30", "to": "2026-06-02T00:00:00+05:30"}
        self.assertEqual(self.answer(body), [{"contact": "ann", "from": "2026-05-31T18:30:00.000Z", "to": "2026-06-01T18:30:00.000Z"}])

    def test_handoffs_of_every_hour_over_four_hundred_days(self):
        # Most of them fall together with an edge of the other rotation's window.
        body = {"title": "", "timezone": "America/Sao_Paulo", "from": "2030-02-20T20:00:00Z", "to": "2031-03-27T20:00:00Z", "rotations": [
            rotation("dan cyd ann bob", "2018-02-16T01:00:00", "hour", between="23:30-00:00"),
            rotation("cyd", "2018-11-04T00:59:59", "day", every=5, between="23:59-00:15", days="sat thu mon sun")]}
        self.assertEqual(readable(self.shifts(body)), readable(schedule_oracle.shifts(body)))

    def test_more_handoffs_than_can_be_told_are_refused(self):
        body = {"title": "", "timezone": "UTC", "from": "2026-01-01T00:00:00Z", "to": "2027-01-01T00:00:00Z",
                "rotations": [rotation("ann bob", f"2026-01-01T00:{minute:02}:00", "hour") for minute in range(20)]}
        refused = self.server.call("POST", "/manhunt/schedules/preview", body, expect=400)
        self.assertIn("ask for a shorter time", json.dumps(refused))
        self.assertTrue(self.shifts({**body, "to": "2026-01-15T00:00:00Z"}))


class Kept(Server, unittest.TestCase):
    """A schedule that is kept: who is on call by it, whom a search asks, and its calendar."""

    def test_a_schedule_says_who_is_asked_and_has_a_calendar(self):
        from manhunt_server import Domain
        domain = Domain(self.server, "kept")
        ann, bob, cyd = (domain.contact(name, ("phone", "+390611111111")) for name in ("Ann; of Rome, Italy", "Bob", "Cyd"))
        body = {"title": "Primary", "timezone": "Europe/Rome", "rotations": [{"contacts": [ann["id"], bob["id"]], "start": "2026-01-05T09:00:00", "unit": "week", "every": 1}]}
        domain.call("PUT", "/schedules/primary", body)
        kept = domain.call("GET", "/schedules/primary")
        self.assertEqual((kept["timezone"], kept["rotations"]), (body["timezone"], body["rotations"]))
        begin, end = "2026-03-15T00:00:00Z", "2026-11-15T00:00:00Z"
        shifts = lambda: [(shift["contact"], moment(shift["from"]), moment(shift["to"])) for shift in domain.call("GET", f"/schedules/primary/shifts?from={begin}&to={end}")["shifts"]]
        self.assertEqual(readable(shifts()), readable(schedule_oracle.shifts({**body, "from": begin, "to": end})))
        on_call = lambda at: domain.call("GET", f"/schedules/primary/on-call?at={at}")
        self.assertEqual(on_call("2026-03-16T07:59:59Z")["contact"], bob["id"])
        found = on_call("2026-03-16T08:00:00Z")
        self.assertEqual((found["contact"], moment(found["since"]), moment(found["until"])), (ann["id"], moment("2026-03-16T08:00:00Z"), moment("2026-03-23T08:00:00Z")))
        self.assertIsNone(on_call("2026-01-05T07:59:59Z")["contact"])

        # Whoever it is by the rotation, an override has it now.
        now = datetime.now(UTC).replace(microsecond=0)
        over = {"contact": cyd["id"], "from": (now - HOUR).isoformat(), "to": (now + HOUR).isoformat()}
        made = domain.call("POST", "/schedules/primary/overrides", over, 201)
        self.assertEqual(domain.call("GET", "/schedules/primary/on-call")["contact"], cyd["id"])
        domain.policy("shop", ("1h", {"schedule": "primary"}))
        self.assertEqual([phone["contact"] for phone in domain.ring(domain.search(policy="shop"))], [cyd["id"]])

        url = domain.call("POST", "/schedules/primary/calendar")["url"]
        path = url[url.index("/manhunt/calendar/"):]
        response, content = self.server.request("GET", path)
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, "text/calendar; charset=utf-8"))
        today = now.replace(hour=0, minute=0, second=0)
        wanted = domain.call("GET", f"/schedules/primary/shifts?from={(today - 30 * DAY).strftime('%Y-%m-%dT%H:%M:%SZ')}&to={(today + 180 * DAY).strftime('%Y-%m-%dT%H:%M:%SZ')}")["shifts"]
        names = {ann["id"]: "Ann; of Rome, Italy (Primary)", bob["id"]: "Bob (Primary)", cyd["id"]: "Cyd (Primary)"}
        self.assertEqual(events_of(content.decode()), [(names[shift["contact"]], moment(shift["from"]), moment(shift["to"])) for shift in wanted])
        self.assertEqual(content, self.server.request("GET", path)[1])
        domain.call("DELETE", f"/schedules/primary/overrides/{made['id']}", expect=204)
        self.assertNotIn(b"Cyd", self.server.request("GET", path)[1])
        domain.call("POST", "/secret", {"anew": True})
        self.assertEqual(self.server.request("GET", path)[0].status, 404)
        self.assertNotEqual(domain.call("POST", "/schedules/primary/calendar")["url"], url)


def events_of(calendar):
    """(summary, begin, end) of the events of an iCalendar, in order."""
    unfolded = calendar.replace("\r\n ", "")
    assert unfolded.startswith("BEGIN:VCALENDAR\r\n") and unfolded.endswith("END:VCALENDAR\r\n") and all(len(line.encode()) <= 75 for line in calendar.split("\r\n"))
    stamp = lambda text: datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    plain = lambda text: text.replace("\\,", ",").replace("\\;", ";").replace("\\\\", "\\")
    events = []
    for event in unfolded.split("BEGIN:VEVENT\r\n")[1:]:
        fields = dict(line.split(":", 1) for line in event.split("\r\n") if ":" in line)
        events.append((plain(fields["SUMMARY"]), stamp(fields["DTSTART"]), stamp(fields["DTEND"])))
    return events


class CasesByOracle(Cases, unittest.TestCase):
    def shifts(self, body):
        return schedule_oracle.shifts(body)


# Random schedules.

FIRST, LAST = datetime(2016, 1, 1, tzinfo=UTC), datetime(2036, 12, 31, tzinfo=UTC)
EARLIEST = datetime(2010, 1, 1, tzinfo=UTC)
changes_of = {}


def changes(name):
    """The moments at which the clocks of a zone are changed, from 2010 on."""
    if name not in changes_of:
        changes_of[name] = transitions(zoneinfo.ZoneInfo(name), EARLIEST, LAST, DAY)
    return changes_of[name]


class Maker:
    """Makes schedules, and ranges in which something happens. With `whole_minutes` nothing falls between them."""

    def __init__(self, seed, whole_minutes=False):
        self.random, self.unit = random.Random(seed), MINUTE if whole_minutes else SECOND
        others = [name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))]
        self.timezone = self.random.choice(ZONES if self.random.random() < 0.85 else sorted(others))
        self.zone, self.changes = zoneinfo.ZoneInfo(self.timezone), changes(self.timezone)

    def chance(self, share):
        return self.random.random() < share

    def between(self, begin, end):
        """A moment in [begin, end], more often than not a round one."""
        step = max(self.unit, self.random.choice((SECOND, MINUTE, 15 * MINUTE, HOUR)))
        return begin + self.random.randint(0, (end - begin) // step) * step

    def change(self):
        """A moment at which the clock is changed, mostly since 2016; None in zones without."""
        recent = [change for change in self.changes if change >= FIRST]
        among = recent if recent and self.chance(0.9) else self.changes
        return self.random.choice(among) if among else None

    def disturbed(self, change):
        """A wall time that is skipped or twice at that change, or next to those."""
        before, after = wall(change - SECOND, self.zone) + SECOND, wall(change, self.zone)
        low, high = min(before, after), max(before, after)
        return self.random.choice((low, high, low - self.unit, high - self.unit, low + (high - low) / 2, self.between(low, high)))

    def start(self, unit, every):
        change = self.change()
        if change and self.chance(0.6):
            # A handoff that falls on the change.
            back = self.random.choice((0, 1, self.random.randint(0, 60))) * every * {"hour": HOUR, "day": DAY, "week": 7 * DAY}[unit]
            return self.disturbed(change) - back
        return wall(self.between(EARLIEST, FIRST + 4 * 365 * DAY if self.chance(0.8) else LAST), self.zone)

    def clock(self):
        change = self.change()
        if change and self.chance(0.4):
            return self.disturbed(change).strftime("%H:%M")
        return f"{self.random.randrange(24):02}:{self.random.choice((0, 0, 30, 15, self.random.randrange(60))):02}"

    def window(self):
        window = {"from": self.clock(), "to": self.clock()}
        if self.chance(0.1):
            window["to"] = window["from"]
        if self.chance(0.6):
            window["days"] = self.random.sample(DAYS, self.random.randint(1, 7))
        return window

    def rotation(self, names):
        unit = self.random.choice(("hour", "day", "day", "week", "week"))
        every = self.random.choice({"hour": (1, 2, 4, 6, 8, 12, 12, 24, 36, 100, 168), "day": (1, 1, 1, 2, 3, 5, 7, 10), "week": (1, 1, 1, 2, 3, 4)}[unit])
        made = {"contacts": [self.random.choice(names) for _ in range(self.random.randint(1, 5))] if self.chance(0.2) else self.random.sample(names, self.random.randint(1, len(names))),
                "start": self.start(unit, every).isoformat(timespec="seconds"), "unit": unit, "every": every}
        if self.chance(0.55):
            made["between"] = self.window()
        return made

    def ranges(self, rotations):
        """Around changes of the clock, around a start, and anywhere; up to 400 days."""
        made = []
        for _ in range(2):
            if change := self.change():
                begin = self.between(change - 4 * DAY, change)
                made.append((begin, self.between(change + self.unit, change + 4 * DAY)))
        start = schedule_oracle.instant_of(datetime.fromisoformat(self.random.choice(rotations)["start"]), self.zone)
        made.append((self.between(start - 3 * DAY, start), self.between(start + self.unit, start + 20 * DAY)))
        for longest in (30 * DAY, 400 * DAY):
            begin = self.between(FIRST, LAST - longest)
            made.append((begin, self.between(begin + self.unit, begin + longest) if self.chance(0.8) else begin + longest))
        return made

    def override(self, names, begin, end):
        """One that covers something of the range, or nearly so."""
        length = self.random.choice((HOUR, 12 * HOUR, 3 * DAY, 20 * DAY))
        since = self.between(begin - length, end)
        change = self.change()
        if change and begin < change < end and self.chance(0.4):
            since = change - self.between(begin, begin + 2 * HOUR) + begin
        until = self.between(since + self.unit, since + length)
        return {"contact": self.random.choice([*names, ""]), "from": self.text(since), "to": self.text(until)}

    def text(self, instant):
        if self.chance(0.3):
            # The same moment as somebody in that zone, or elsewhere, writes it.
            instant = instant.astimezone(self.random.choice((self.zone, zoneinfo.ZoneInfo("Asia/Kolkata"))))
        return instant.isoformat(timespec="seconds").replace("+00:00", "Z")

    def bodies(self):
        """A schedule, once for each of its ranges."""
        names = ["ann", "bob", "cyd", "dan"]
        rotations = [self.rotation(names) for _ in range(self.random.choice((1, 1, 2, 3, 4)))]
        for begin, end in self.ranges(rotations):
            overrides = [self.override([*names, "eve"], begin, end) for _ in range(self.random.choice((0, 0, 1, 2, 3, 8)))]
            yield {"title": "At random", "timezone": self.timezone, "rotations": rotations, "overrides": overrides, "from": self.text(begin), "to": self.text(end)}


def difference(body, expected, got):
    """What is needed to look into it."""
    expected, got = readable(expected), readable(got)
    at = next((number for number, (one, other) in enumerate(zip(expected, got)) if one != other), min(len(expected), len(got)))
    return (f"shift {at} of {len(expected)} expected and {len(got)} given:\nexpected {expected[max(at - 1, 0):at + 3]}\ngiven    {got[max(at - 1, 0):at + 3]}\n"
            f"TABELLA_SCHEDULES_SEED={SEED}, or by itself:\n{json.dumps(body)}")


class RandomSchedules(Server, unittest.TestCase):
    def test_the_server_and_the_oracle_agree(self):
        for number in range(SCHEDULES):
            for body in Maker(f"{SEED} {number}").bodies():
                expected = schedule_oracle.shifts(body)
                try:
                    got = self.shifts(body)
                except AssertionError as refused:
                    self.fail(f"{refused}\nTABELLA_SCHEDULES_SEED={SEED}, or by itself:\n{json.dumps(body)}")
                if got != expected:
                    self.fail(difference(body, expected, got))


class Oracle(unittest.TestCase):
    """Is the oracle right? It is compared with asking at every minute and every second, and with dateutil, which reads the zones by itself."""

    def test_cuts_are_where_anything_happens(self):
        for number in range(12):
            for body in Maker(f"{SEED} minutes {number}", whole_minutes=True).bodies():
                begin = moment(body["from"])
                body["to"] = min(moment(body["to"]), begin + 8 * DAY).isoformat()
                expected, got = schedule_oracle.shifts_by_steps(body), schedule_oracle.shifts(body)
                self.assertEqual(got, expected, difference(body, expected, got) if got != expected else None)

    def test_cuts_are_where_anything_happens_to_the_second(self):
        for number in range(8):
            maker = Maker(f"{SEED} seconds {number}")
            for body in maker.bodies():
                begin = moment(body["from"])
                change = next((change for change in maker.changes if begin < change < moment(body["to"])), begin + 3 * HOUR)
                body["from"], body["to"] = (change - 3 * HOUR).isoformat(), (change + 3 * HOUR).isoformat()
                expected, got = schedule_oracle.shifts_by_steps(body, SECOND), schedule_oracle.shifts(body)
                self.assertEqual(got, expected, difference(body, expected, got) if got != expected else None)

    def test_a_local_time_is_when_the_clock_first_shows_it_or_a_later_one(self):
        for name in ZONES:
            zone, maker = zoneinfo.ZoneInfo(name), Maker(f"{SEED} {name}", whole_minutes=True)
            for change in changes(name):
                before, after = wall(change - SECOND, zone) + SECOND, wall(change, zone)
                for local in (before, after, before - MINUTE, after - MINUTE, after + MINUTE, maker.between(min(before, after), max(before, after))):
                    instant = change - abs(after - before) - 5 * MINUTE
                    self.assertLess(wall(instant, zone), local)
                    while wall(instant, zone) < local:
                        instant += MINUTE
                    self.assertEqual(schedule_oracle.instant_of(local, zone), instant, f"{name} {local}")

    def test_dateutil_agrees(self):
        try:
            import dateutil  # noqa: F401
        except ImportError:
            self.skipTest("python3-dateutil is not installed")
        questions = 0
        for number in range(20):
            maker = Maker(f"{SEED} dateutil {number}", whole_minutes=True)
            for body in maker.bodies():
                begin, end = moment(body["from"]), moment(body["to"])
                schedule, other = schedule_oracle.Schedule(body, end), ByDateutil(body, end)
                near = [change + minutes * MINUTE for change in maker.changes if begin < change < end for minutes in (-61, -31, -30, -1, 0, 1, 29, 30, 31, 59, 60, 61)]
                for instant in [*near[:60], *(maker.between(begin, end - MINUTE) for _ in range(20))]:
                    instant = instant.replace(second=0)
                    if begin <= instant < end:
                        questions += 1
                        self.assertEqual(schedule.who(instant), other.who(instant), f"at {instant}, TABELLA_SCHEDULES_SEED={SEED}, {json.dumps(body)}")
        self.assertGreater(questions, 1000)


class ByDateutil:
    """Who is on call, by dateutil and in another way: a handoff has been when the clock on the wall has ever shown its time or a later
    one, hours are divided, and windows are spans from one wall time to another. Good for whole minutes."""

    def __init__(self, body, end):
        from dateutil import parser, tz
        self.body, self.parse, self.zone = body, parser.isoparse, tz.gettz(body["timezone"])
        self.overrides = [(self.parse(override["from"]), self.parse(override["to"]), override["contact"]) for override in body["overrides"]]
        self.handoffs = [self.handoffs_of(rotation, end) for rotation in body["rotations"]]

    def wall(self, instant):
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def handoffs_of(self, rotation, end):
        from dateutil import rrule, tz
        start = self.parse(rotation["start"])
        if rotation["unit"] != "hour":
            frequency = {"day": rrule.DAILY, "week": rrule.WEEKLY}[rotation["unit"]]
            return list(rrule.rrule(frequency, dtstart=start, interval=rotation["every"], until=self.wall(end) + 2 * DAY))
        first = start.replace(tzinfo=self.zone)
        if not tz.datetime_exists(first):
            # dateutil goes on from there as far as was skipped; we go back to where the clock was put forward.
            first = tz.resolve_imaginary(first).astimezone(UTC)
            while self.wall(first - MINUTE) >= start:
                first -= MINUTE
        return first.astimezone(UTC)

    def passed(self, rotation, handoffs, instant):
        """How many handoffs there have been."""
        if rotation["unit"] == "hour":
            return max((instant - handoffs) // (rotation["every"] * HOUR) + 1, 0)
        return bisect.bisect_right(handoffs, self.furthest(instant))

    @functools.cache
    def furthest(self, instant):
        """The latest that the clock has shown. No zone put it back by more than three hours since 2010."""
        return max(self.wall(instant - minutes * MINUTE) for minutes in range(200))

    def open_at(self, between, local):
        if not between:
            return True
        midnight = local.replace(hour=0, minute=0)
        for day in (midnight, midnight - DAY):
            begin, end = (day + timedelta(hours=int(clock[:2]), minutes=int(clock[3:])) for clock in (between["from"], between["to"]))
            if begin == end:
                begin, end = day, day + DAY
            elif begin > end:
                end += DAY
            if begin <= local < end and day.strftime("%a").lower() in between.get("days", DAYS):
                return True
        return False

    def who(self, instant):
        who = None
        for rotation, handoffs in zip(self.body["rotations"], self.handoffs):
            passed = self.passed(rotation, handoffs, instant)
            if passed and self.open_at(rotation.get("between"), self.wall(instant)):
                who = rotation["contacts"][(passed - 1) % len(rotation["contacts"])]
        for begin, end, contact in self.overrides:
            if begin <= instant < end:
                who = contact
        return who or None


if __name__ == "__main__":
    unittest.main()
