#!/usr/bin/env python3
"""The six schemes of the ACC paper (sections IV to VI) from its text alone: an oracle for coordinator/spot.

    schemes.py                      outcomes over generated prices, as outcomes.txt has them
    schemes.py RECORD.csv BID ...   means over one job a day of a record, as `dormouse advise bid --json`

Times are seconds, prices nanodollars an hour. What the text leaves open is as the page of the paper says.
"""

import sys
from bisect import bisect_right
from datetime import datetime
from fractions import Fraction

HOUR, DAY = 3600, 86400
SCHEMES = ["none", "opt", "hour", "edge", "adapt", "acc"]


class Market:
    """Prices of one instance type, each from its time on, until the record ends."""

    def __init__(self, changes, end):
        self.changes, self.end = changes, end
        self.times = [at for at, _ in changes]

    def price(self, t):
        return self.changes[bisect_right(self.times, t) - 1][1]

    def stays(self, bid):
        """Periods in which the price is not above the bid."""
        periods = []
        for (at, p), (to, _) in zip(self.changes, self.changes[1:] + [(self.end, None)]):
            to = min(to, self.end)
            if p <= bid and at < to:
                if periods and periods[-1][1] == at:
                    periods[-1] = (periods[-1][0], to)
                else:
                    periods.append((at, to))
        return periods

    def rises(self):
        return [at for (_, old), (at, new) in zip(self.changes, self.changes[1:]) if new > old]


class Job:
    def __init__(self, market, bid, scheme, start, work=30000, t_c=300, t_r=300, t_w=60, period=600):
        self.market, self.bid, self.scheme, self.start, self.work = market, bid, scheme, start, work
        self.t_c, self.t_r, self.t_w, self.period = t_c, t_r, t_w, period
        self.stays, self.rises = market.stays(bid), market.rises()
        self.saved = 0
        self.cost = self.hours = self.instances = self.checkpoints = self.lost = self.unkept = 0

    def outcome(self):
        """The seconds that the job takes, its cost in nanodollars, hours paid, further instances, checkpoints, seconds
        of work lost, and instances ended with work unsaved; None where it is never done."""
        t, done = self.start, None
        while done is None:
            stay = next((s for s in self.stays if s[1] > t), None)
            if stay is None:
                return None
            launch = max(stay[0], t)
            begin = launch + (self.t_r if self.instances else 0)
            self.instances += 1
            run = self.own if self.scheme == "acc" else self.bidder
            done, t = run(launch, begin, stay[1])
            if done is None and t >= self.market.end:
                return None
        if done > self.market.end:
            return None
        instances = (self.hours, self.instances - 1)
        return (done - self.start, self.cost, *instances, self.checkpoints, self.lost, self.unkept)

    def pay(self, launch, hours):
        self.hours += hours
        self.cost += sum(self.market.price(launch + HOUR * n) for n in range(hours))

    def finish(self, launch, t):
        self.pay(launch, max(1, -(-(t - launch) // HOUR)))
        return t, None

    def bidder(self, launch, t, taken):
        """Run on an instance that the provider takes when the price passes the bid; a part of an hour is free then."""
        unsaved = 0
        while t < taken:
            end = t + self.work - self.saved
            save = self.next_save(launch, t, taken, end)
            if save is None or save > taken:
                if end <= taken:
                    return self.finish(launch, end)
                unsaved = taken - t
                break
            if end <= save:
                return self.finish(launch, end)
            if save + self.t_c > taken:
                unsaved = save - t
                break
            self.saved += save - t
            self.checkpoints += 1
            t = save + self.t_c
        self.lost += unsaved
        self.pay(launch, (taken - launch) // HOUR)
        return None, taken

    def next_save(self, launch, t, taken, end):
        """When the next checkpoint begins, after t, since which work is unsaved."""
        if self.scheme == "opt":
            return taken - self.t_c if end > taken and taken - self.t_c > t else None
        if self.scheme == "hour":
            n = 1
            while launch + n * HOUR - self.t_c <= t:
                n += 1
            return launch + n * HOUR - self.t_c
        if self.scheme == "edge":
            return next((at for at in self.rises if at > t), None)
        if self.scheme == "adapt":
            at = launch
            while at < end:
                if at > t and self.is_worth(at - t, at - launch, at):
                    return at
                at += self.period
        return None

    def is_worth(self, unsaved, age, now):
        """Whether what is expected to be lost is more than a checkpoint takes."""
        known = [b - a for a, b in self.stays if b <= now and b < self.market.end]
        older = [u for u in known if u > age]
        end = [u for u in older if age + self.t_c < u <= age + self.t_c + self.period]
        return bool(older) and Fraction(len(end), len(older)) * unsaved > self.t_c

    def own(self, launch, t, _):
        """Run on an instance that its user ends, who looks at the price before each hour ends (Eq. 3 and 4)."""
        unsaved, n = 0, 0
        while True:
            n += 1
            t_td = launch + n * HOUR - self.t_w
            t_cd = t_td - self.t_c
            end = t + self.work - self.saved - unsaved
            if end <= t_cd or t_td >= self.market.end:
                return self.finish(launch, end)
            if self.market.price(t_cd) > self.bid and t_cd >= t:
                self.saved += unsaved + t_cd - t
                self.checkpoints += 1
                unsaved, t = 0, t_td
                end = t + self.work - self.saved
            if end <= t_td:
                return self.finish(launch, end)
            if self.market.price(t_td) > self.bid:
                left = unsaved + max(0, t_td - t)
                self.lost += left
                self.unkept += left > 0
                self.pay(launch, n)
                return None, t_td


def generated():
    """Prices of forty days and jobs over them, by a congruential generator with Numerical Recipes' constants."""
    state = 1

    def below(n):
        nonlocal state
        state = (1664525 * state + 1013904223) % 2**32
        return state * n // 2**32

    changes, t = [], 0
    while t < 40 * DAY:
        changes.append((t, (300 + 5 * below(9)) * 10**6))
        t += 60 + below(4 * HOUR)
    jobs = [(below(38 * DAY), (310 + 5 * below(7)) * 10**6, 3600 + below(10 * HOUR)) for _ in range(60)]
    return Market([c for n, c in enumerate(changes) if n == 0 or c[1] != changes[n - 1][1]], 40 * DAY), jobs


def read(path):
    """A record of rows `YYYY-MM-DD HH:MM:SS,price`; of several at one time the last holds."""
    rows = []
    for line in open(path):
        when, price = line.strip().split(",")
        rows.append((int(datetime.fromisoformat(when + "+00:00").timestamp()), round(Fraction(price) * 10**9)))
    rows.sort(key=lambda row: row[0])
    last = dict(rows)
    first = rows[0][0]
    return Market([(at - first, price) for at, price in last.items()], rows[-1][0] - first)


def main():
    if len(sys.argv) > 2:
        market = read(sys.argv[1])
        for bid in sys.argv[2:]:
            nanos = round(Fraction(bid) * 10**9)
            jobs = [[Job(market, nanos, s, day).outcome() for s in SCHEMES] for day in range(0, market.end, DAY)]
            jobs = [job for job in jobs if all(job[n] for n in (1, 2, 4, 5))]
            for n, scheme in enumerate(SCHEMES):
                done = [job[n] for job in jobs if job[n]]
                mean = [sum(of[k] for of in done) / max(1, len(done)) for k in (0, 1)]
                print(f"{bid} {scheme} {len(done)} of {len(jobs)} {mean[0] / 60!r} min ${mean[1] / 1e9!r}")
        return
    market, jobs = generated()
    for start, bid, work in jobs:
        for scheme in SCHEMES:
            of = Job(market, bid, scheme, start, work).outcome()
            print(start, bid, work, scheme, "never" if of is None else " ".join(map(str, of)))


if __name__ == "__main__":
    main()
