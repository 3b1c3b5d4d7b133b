"""Judges what became of moto's tests: each has to pass, but for those in a list, each of which has a reason.

    moto_verdict.py LIST OUTCOMES

A line of the list is a reason, a tab and a test; the reasons are explained at its head, in lines that begin with #. Status 1 where a test
fails that is not in the list, and where one in the list passes.
"""
import collections
import sys


def read_list(path):
    reasons, unmet = {}, {}
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("#:"):
            name, _, about = line[2:].strip().partition(" ")
            reasons[name] = about
        elif line and not line.startswith("#"):
            reason, test = line.split("\t")
            unmet[test] = reason
    unknown = {reason for reason in unmet.values() if reason not in reasons}
    if unknown:
        sys.exit(f"{path}: these reasons are not explained at its head: {', '.join(sorted(unknown))}")
    return reasons, unmet


def main():
    reasons, unmet = read_list(sys.argv[1])
    outcomes = {}
    for line in open(sys.argv[2], encoding="utf-8"):
        test, outcome, why = line.rstrip("\n").split("\t")
        # A test whose end fails has failed.
        if outcomes.get(test, ("passed",))[0] == "passed":
            outcomes[test] = (outcome, why)
    failed = {test: why for test, (outcome, why) in outcomes.items() if outcome == "failed"}
    passed = {test for test, (outcome, _) in outcomes.items() if outcome == "passed"}
    print(f"{len(passed)} of {len(outcomes)} of moto's tests pass, {len(failed)} do not, "
          f"{len(outcomes) - len(passed) - len(failed)} skip themselves")
    for reason, count in collections.Counter(unmet[test] for test in failed if test in unmet).most_common():
        print(f"  {count:4} {reason}: {reasons[reason]}")
    new = {test: why for test, why in failed.items() if test not in unmet}
    for test, why in sorted(new.items()):
        print(f"fails, and is not in {sys.argv[1]}: {test}: {why}", file=sys.stderr)
    stale = [test for test in unmet if test in passed or test not in outcomes]
    for test in stale:
        print(f"is in {sys.argv[1]}, and passes or is not run: {test}", file=sys.stderr)
    sys.exit(1 if new or stale else 0)


main()
