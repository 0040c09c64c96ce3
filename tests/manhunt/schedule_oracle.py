"""Who is on call, worked out the long way round: the oracle by which /manhunt/schedules/preview is judged.

It shares no thought with the server. Handoffs are walked one after another from the start of a rotation, as a person with a
wall calendar would; a window is judged by what the clock on the wall shows; and shifts are found by cutting time at every moment
at which anything could change (far too many of them), asking who is on call in each piece, and joining the pieces.
`shifts_by_steps` does without even the cuts: it asks at every step of the way.

What local times mean:
- One that exists twice (the clock was put back) means the first; one that does not exist means the moment at which the clock was
  put forward. Both are the first moment at which the clock on the wall shows that time or a later one, hence handoffs never
  come out of order; two may fall together (Pacific/Apia had no 30 December 2011), and the later one counts.
- A window (`between`) is open while the clock on the wall shows a time within it: if the clock is put back, both passes count, and
  an edge that was skipped takes effect when the clock is put forward. One that wraps over midnight belongs to the day by the
  calendar before, even one that never was. from == to: from midnight to midnight of the days named.

Instants are datetimes in UTC, wall times are naive ones. A schedule is the body that the server gets.
"""

from bisect import bisect_right
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def moment(text):
    """An instant by its RFC 3339 text."""
    return datetime.fromisoformat(text).astimezone(UTC)


def wall(instant, zone):
    """What the clock on the wall shows."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def instant_of(local, zone):
    """The instant that a wall time means."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall(instant, zone) == local:
        return instant
    # It was skipped. From more than a day before, as one zone once skipped a whole day.
    instant = instant.replace(second=0, microsecond=0) - timedelta(hours=25)
    while wall(instant, zone) < local:
        instant += MINUTE
    assert wall(instant - SECOND, zone) < local, "a clock that was put forward within a minute"
    return instant


def transitions(zone, begin, end, step=HOUR):
    """The instants from begin on to end or a step later from which the zone's offset is another one."""
    found = []
    before = begin.replace(microsecond=0)
    while before < end:
        after = before + step
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            low, high = before, after
            while high - low > SECOND:
                middle = (low + (high - low) // 2).replace(microsecond=0)
                if middle.astimezone(zone).utcoffset() == before.astimezone(zone).utcoffset():
                    low = middle
                else:
                    high = middle
            found.append(high)
        before = after
    return found


class Window:
    """The times of a `between`; without one, all."""

    def __init__(self, between):
        self.always = between is None
        if not self.always:
            self.opens, self.closes = time.fromisoformat(between["from"]), time.fromisoformat(between["to"])
            self.days = {DAYS.index(day) for day in between.get("days") or DAYS}

    def open_at(self, local):
        if self.always:
            return True
        today, yesterday = local.weekday() in self.days, (local.date() - DAY).weekday() in self.days
        if self.opens == self.closes:
            return today
        if self.opens < self.closes:
            return today and self.opens <= local.time() < self.closes
        return today and local.time() >= self.opens or yesterday and local.time() < self.closes

    def edges(self, zone, begin, end):
        """Every instant at which it could open or close, and others."""
        if self.always:
            return
        day = wall(begin, zone).date() - 2 * DAY
        while day <= wall(end, zone).date() + 2 * DAY:
            for clock in (time(0), self.opens, self.closes):
                for fold in (0, 1):
                    yield datetime.combine(day, clock, zone).replace(fold=fold).astimezone(UTC)
            day += DAY


class Rotation:
    """One rotation, walked from its start to `end`."""

    def __init__(self, body, zone, end):
        self.contacts, self.zone, self.window = body["contacts"], zone, Window(body.get("between"))
        every = body.get("every", 1)
        self.handoffs = []
        start = datetime.fromisoformat(body["start"])
        if body["unit"] == "hour":
            handoff = instant_of(start, zone)
            while handoff < end:
                self.handoffs.append(handoff)
                handoff += every * HOUR
        else:
            days = {"day": 1, "week": 7}[body["unit"]] * every * DAY
            while (handoff := instant_of(start, zone)) < end:
                self.handoffs.append(handoff)
                start += days
        assert self.handoffs == sorted(self.handoffs)
        self.turns, turn = [], 0
        for _ in self.handoffs:
            self.turns.append(turn)
            turn = turn + 1 if turn + 1 < len(self.contacts) else 0

    def who(self, instant):
        shift = bisect_right(self.handoffs, instant) - 1
        if shift < 0 or not self.window.open_at(wall(instant, self.zone)):
            return None
        return self.contacts[self.turns[shift]]


class Schedule:
    """A schedule with its overrides, known up to `end`."""

    def __init__(self, body, end):
        self.zone, self.end = ZoneInfo(body["timezone"]), end
        self.rotations = [Rotation(rotation, self.zone, end) for rotation in body["rotations"]]
        self.overrides = [(override["contact"], moment(override["from"]), moment(override["to"])) for override in body.get("overrides", [])]

    def who(self, instant):
        """Who is on call, or None."""
        assert instant < self.end
        for contact, begin, end in reversed(self.overrides):
            if begin <= instant < end:
                return contact or None
        for rotation in reversed(self.rotations):
            if contact := rotation.who(instant):
                return contact
        return None

    def cuts(self, begin, end):
        """All instants at which somebody else could be on call, and many others."""
        cuts = {begin, *transitions(self.zone, begin, end)}
        for rotation in self.rotations:
            cuts.update(rotation.handoffs)
            cuts.update(rotation.window.edges(self.zone, begin, end))
        for _, since, until in self.overrides:
            cuts.update((since, until))
        return sorted(cut for cut in cuts if begin <= cut < end)


def join(pieces, end):
    """Pieces (who, since), each until the next, as shifts (who, since, until): without those of nobody, neighbours of one as one."""
    shifts = []
    for number, (who, since) in enumerate(pieces):
        until = pieces[number + 1][1] if number + 1 < len(pieces) else end
        if shifts and shifts[-1][0] == who and shifts[-1][2] == since:
            shifts[-1] = (who, shifts[-1][1], until)
        elif who and since < until:
            shifts.append((who, since, until))
    return shifts


def shifts(body):
    """The shifts that a preview of this body has: [(contact, from, to)]."""
    begin, end = moment(body["from"]), moment(body["to"])
    schedule = Schedule(body, end)
    return join([(schedule.who(cut), cut) for cut in schedule.cuts(begin, end)], end)


def shifts_by_steps(body, step=MINUTE):
    """The same by asking at every step: right where all that a schedule names falls on whole steps."""
    begin, end = moment(body["from"]), moment(body["to"])
    schedule, pieces = Schedule(body, end), []
    while begin < end:
        pieces.append((schedule.who(begin), begin))
        begin += step
    return join(pieces, end)
