"""One figure of each paper, reckoned from what runs left behind and from nothing of ours.

Each check runs the command, reads its raw output (a row a task, a VM, a job or a sample, or the log), reckons a
figure of the paper's page with the arithmetic of the text, and compares it with what the program says: with the
results that docs/papers/results keep, or with the table.csv of a small reproduction. Nothing is approximated: two
numbers have to be equal up to the last digit that was written, or to 1e-9 of their size.

    python3 tests/papers/by_hand.py DORMOUSE [--whole]

--whole also reckons a claim of MEASY from twenty runs of 20,000 jobs (about a minute).
"""

import csv
import itertools
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "papers" / "results"


class Checker:
    """Runs commands into folders of their own, and compares."""

    def __init__(self, dormouse, work):
        self.dormouse, self.work = dormouse, Path(work)
        self.failed = False
        self.folders = itertools.count()

    def make(self, *words):
        """The folder that a command left."""
        out = self.work / str(next(self.folders))
        subprocess.run([self.dormouse, *words, "--quiet", "--out", out], check=True, stdout=subprocess.DEVNULL)
        return out

    def compare(self, what, by_hand, by_program, tolerance):
        same = abs(by_hand - by_program) <= tolerance
        self.failed = self.failed or not same
        word = "equal" if same else "DIFFERENT"
        print(f"  {word}: {what}: {by_hand!r} by hand, {by_program!r} by the program")


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def kept_claim(paper, says):
    """Our figure of a claim in the results that the paper's page shows."""
    claims = json.loads((RESULTS / f"{paper}.json").read_text())["claims"]
    found = [claim["ours"] for claim in claims if claim["says"] == says]
    if len(found) != 1:
        sys.exit(f"docs/papers/results/{paper}.json has {len(found)} claims that say: {says}")
    return found[0]


def table_figure(folder, case, metric):
    found = [row for row in rows(folder / "table.csv") if (row["case"], row["metric"]) == (case, metric)]
    if len(found) != 1:
        sys.exit(f"{folder}/table.csv has {len(found)} rows of {case}, {metric}")
    return float(found[0]["ours_mean"])


def mean(numbers):
    numbers = list(numbers)
    return math.fsum(numbers) / len(numbers)


# table.csv has six digits behind the point.
SIX_DIGITS = 0.500001e-6


def burst_hads(checker):
    """Table IV, J60: makespans and bills of 30 runs under each scheduler, and their ratios.

    The makespan is the end of the last task. A VM is charged from its launch to its end, at the price of its market;
    nothing hibernates. A VM's bill is rounded down to a billionth of a dollar."""
    makespans, bills = {}, {}
    for scheduler in ("burst-hads", "hads"):
        ends, costs = [], []
        for seed in range(1, 31):
            out = checker.make("run", "j60", "--scheduler", scheduler, "--seed", str(seed))
            ends.append(max(float(task["finished_s"]) for task in rows(out / "tasks.csv")))
            with open(out / "events.jsonl") as log:
                types = json.loads(next(log))["experiment"]["setup"]["catalogue"]["types"]
            cost = 0
            for vm in rows(out / "vms.csv"):
                market = {"spot": "spot", "on-demand": "on_demand"}[vm["market"]]
                price = types[vm["type"]][market]
                micros = round((float(vm["ended_s"]) - float(vm["launched_s"])) * 1e6)
                cost += price * micros // 3_600_000_000
            costs.append(cost / 1e9)
        makespans[scheduler], bills[scheduler] = mean(ends), mean(costs)
    below = 100 * (1 - makespans["burst-hads"] / makespans["hads"])
    above = 100 * (bills["burst-hads"] / bills["hads"] - 1)
    says = "j60, no hibernation: Burst-HADS's makespan is below HADS's by, %"
    checker.compare(says, below, kept_claim("burst-hads", says), 1e-9)
    says = "j60, no hibernation: Burst-HADS costs more than HADS by, %"
    checker.compare(says, above, kept_claim("burst-hads", says), 1e-9)


def measy(checker, whole):
    """Figure 6 with 300 jobs: the mean response of the jobs after the first tenth, as the mean of 20 batches in the
    order of submission, and of three seeds."""
    small = checker.make(
        "reproduce", "measy/figure-6", "--jobs", "300", "--seeds", "3", "--no-causes")
    for scheduler, load in (("easy", "0.7"), ("measy", "0.9")):
        of_seeds = []
        for seed in (1, 2, 3):
            out = checker.make(
                "run", "fw-like", "--scheduler", scheduler, "--seed", str(seed),
                "--set", "workload.jobs=300", "--set", f"workload.load={load}")
            jobs = sorted(rows(out / "jobs.csv"), key=lambda job: int(job["job_id"]))
            took = [float(job["finish_time"]) - float(job["submission_time"]) for job in jobs]
            batches = [[] for _ in range(20)]
            for place, response in enumerate(took[30:]):
                batches[place * 20 // 270].append(response)
            of_seeds.append(mean(map(mean, batches)))
        case = f"fw-like/standard/load-{load}/{scheduler}"
        checker.compare(f"{case}, response, s", mean(of_seeds), table_figure(small, case, "response_s"), SIX_DIGITS)
    if not whole:
        return
    # Figure 8's lowest load: migrations a job after the warm-up over ten seeds, those of jw-like over those of fw-like.
    migrations = {}
    for workload in ("fw-like", "jw-like"):
        counts = []
        for seed in range(1, 11):
            out = checker.make(
                "run", workload, "--scheduler", "measy", "--seed", str(seed),
                "--set", "workload.jobs=20000", "--set", "workload.load=0.3")
            moved = 0
            with open(out / "events.jsonl") as log:
                for line in log:
                    for decision in json.loads(line).get("decisions", []):
                        # A promotion is a swap or a migration, which names the processors that it goes to.
                        is_migration = isinstance(decision.get("by"), dict) and "migrate" in decision["by"]
                        # Jobs have numbers in the order of submission; the first tenth is the warm-up.
                        moved += is_migration and decision["task"] >= 2_000
            counts.append(moved)
        migrations[workload] = mean(counts)
    says = "migrations a job at the lowest load, jw-like's over fw-like's: below 1"
    ratio = migrations["jw-like"] / migrations["fw-like"]
    checker.compare(says, ratio, kept_claim("measy", says), 1e-9)


# The host tables of OPIE's section 4.4, typed from the text: minutes that each VM has run, and its size in vCPUs.
# A host has 8 vCPUs; memory and disk go with them. Each is (normal VMs, preemptible VMs), and then the request.
M, S, L = 2, 1, 4
HOST_TABLES = {
    "same-sizes-1": ([
        ([(272, M), (172, M)], [(96, M), (207, M)]),
        ([(136, M), (200, M)], [(71, M), (91, M)]),
        ([(97, M), (275, M)], [(210, M), (215, M)]),
        ([(16, M)], [(85, M), (199, M), (152, M)]),
    ], M),
    "same-sizes-2": ([
        ([], [(247, M), (463, M), (403, M), (410, M)]),
        ([(388, M), (103, M)], [(344, M), (476, M)]),
        ([(481, M), (177, M)], [(181, M), (160, M)]),
        ([(173, M)], [(384, M), (168, M), (232, M)]),
    ], M),
    "several-sizes-1": ([
        ([], [(298, L), (278, M), (190, S), (187, S)]),
        ([(494, L)], [(178, L)]),
        ([], [(297, L), (296, M), (296, S)]),
        ([(176, M), (200, M), (116, L)], []),
    ], L),
    "several-sizes-2": ([
        ([(234, L), (122, M)], [(172, M)]),
        ([], [(272, L), (212, M), (380, S)]),
        ([(182, S), (120, M), (116, L)], []),
        ([], [(232, L), (213, S), (324, M), (314, S)]),
    ], M),
}


def opie(checker):
    """The host tables: of all sets of preemptible VMs of one host that make room, the one with the lowest cost, which
    is the minutes into the charged hours of its VMs. Every set is looked at."""
    small = checker.make("reproduce", "opie/tables", "--seeds", "2")
    for table, (hosts, wanted) in HOST_TABLES.items():
        best = (math.inf, 0)
        for normal, preemptible in hosts:
            free = 8 - sum(size for _, size in normal + preemptible)
            for count in range(len(preemptible) + 1):
                for chosen in itertools.combinations(preemptible, count):
                    if free + sum(size for _, size in chosen) >= wanted:
                        best = min(best, (sum(minutes % 60 for minutes, _ in chosen), count))
        cost, count = best
        case = f"{table}/victim-cost"
        checker.compare(f"{case}, cost, min", cost, table_figure(small, case, "cost_min"), 0)
        checker.compare(f"{case}, VMs", count, table_figure(small, case, "terminated"), 0)


def acc(checker):
    """The bill of a run by the text's rule (an hour costs the price at its beginning, and the user pays for the last
    one whole), and ACC's cost over OPT's on generated prices from the samples of ten seeds."""
    out = checker.make("run", "acc-live")
    with open(out / "events.jsonl") as log:
        prices = json.loads(next(log))["experiment"]["setup"]["terms"]["prices"]["small"]

    def price_at(micros):
        return [price for since, price in prices if since <= micros][-1]

    bill = 0
    for vm in rows(out / "vms.csv"):
        hour, end = round(float(vm["launched_s"]) * 1e6), round(float(vm["ended_s"]) * 1e6)
        hour += round((float(vm["ready_s"]) - float(vm["launched_s"])) * 1e6)
        while hour < end:
            bill += price_at(hour)
            hour += 3_600_000_000
    said = json.loads((out / "summary.json").read_text())["cost_usd"]
    checker.compare("acc-live, bill of three VMs, $", bill / 1e9, said, 1e-12)

    small = checker.make("reproduce", "acc/generated", "--seeds", "10")
    costs = {}
    for line in (small / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        figures = sample["sample"]["figures"]
        costs.setdefault(sample["case"], []).append((figures["acc/cost_usd"], figures["opt/cost_usd"]))
    above = [
        100 * (mean(acc for acc, _ in pairs) / mean(opt for _, opt in pairs) - 1)
        for pairs in costs.values()
    ]
    by_program = table_figure(small, "generated", "acc_over_opt_cost_pct")
    checker.compare("generated prices, ACC costs more than OPT by, %", mean(above), by_program, SIX_DIGITS)


def bathtub(checker):
    """Figure 4: how much longer a job of ten hours takes (Eq. 7), under uniform lifetimes in closed form, and under
    the law that the authors' n1-highcpu-16 VMs have by Simpson's rule on its density."""
    hours = 10
    says = "With uniform preemptions it takes 2 h longer"
    # F(t) = t / 24: the integral of t f(t) from 0 to T.
    checker.compare(says, hours**2 / 48, kept_claim("bathtub", says), 1e-9)

    a, b, tau1, tau2 = 0.4227, 24.453, 1.060, 0.784

    def lost_before(t):
        density = a * (math.exp(-t / tau1) / tau1 + math.exp((t - b) / tau2) / tau2)
        return t * density

    steps = 20_000
    width = hours / steps
    inner = math.fsum((4 if n % 2 else 2) * lost_before(n * width) for n in range(1, steps))
    longer = (lost_before(0.0) + inner + lost_before(hours)) * width / 3
    says = "A job of ten hours takes 5 % longer: 30 minutes"
    checker.compare(says, 100 * longer / hours, kept_claim("bathtub", says), 1e-9)


def main():
    whole = "--whole" in sys.argv[1:]
    words = [word for word in sys.argv[1:] if word != "--whole"]
    if len(words) != 1:
        sys.exit("usage: by_hand.py DORMOUSE [--whole]")
    with tempfile.TemporaryDirectory() as work:
        checker = Checker(words[0], work)
        for name, check in (
            ("Burst-HADS", burst_hads),
            ("MEASY", lambda checker: measy(checker, whole)),
            ("OPIE", opie),
            ("ACC", acc),
            ("Bathtub", bathtub),
        ):
            print(name, flush=True)
            check(checker)
    if checker.failed:
        sys.exit("a figure by hand is not what the program says")


main()
