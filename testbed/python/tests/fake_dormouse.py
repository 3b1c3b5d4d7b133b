#!/usr/bin/env python3
"""Stands for the command `dormouse`: plays a fixed run to the scheduler that it is given.

It leaves its arguments and the scheduler's answers in summary.json. The experiment "missing" is not
there; "silent" ends with status 3 and says nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HELLO = {
    "hello": {
        "protocol": {"least": 1, "most": 1},
        "dormouse": "0.1.0",
        "experiment": "two-jobs",
        "mode": "virtual",
        "seed": 1,
        "work": "jobs",
        "catalogue": {"types": {}, "boot": 0, "hibernation": 0},
        "machine": {"kind": "processors", "processors": 4},
        "preemption_notice": 0,
        "parameters": {},
    }
}
ASKS = [
    {"now": 0, "notices": [{"notice": "begin"}]},
    {"now": 5, "notices": [{"notice": "vm-ready", "vm": 0}]},
]


def main(words: list[str]) -> int:
    options = list(zip(words, words[1:]))
    out = Path(dict(options)["--out"])
    if words[1] == "missing":
        print("a warning\ndormouse: missing: no such file", file=sys.stderr)
        return 2
    if words[1] == "silent":
        return 3
    out.mkdir(parents=True)
    answers: list[Any] = []
    if "--scheduler" in words:
        command = [dict(options)["--scheduler"]]
        for option, value in options:
            if option == "--set" and value.startswith("scheduler.command="):
                command = json.loads(value.partition("=")[2])
        answers, status = play(command, out)
        if status != 0:
            print(f"dormouse: the scheduler ended with status {status}", file=sys.stderr)
            return 1
    (out / "summary.json").write_text(json.dumps({"arguments": words, "answers": answers}))
    (out / "table.csv").write_text("case,mean\n")
    return 0


def play(command: list[str], out: Path) -> tuple[list[Any], int]:
    """Speaks the protocol with a scheduler; returns its answers and its exit status."""
    with open(out / "scheduler-stderr.txt", "wb") as errors, subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
    ) as scheduler:
        assert scheduler.stdin is not None and scheduler.stdout is not None
        answers = []
        for line in [HELLO, *ASKS]:
            scheduler.stdin.write(json.dumps(line).encode() + b"\n")
            scheduler.stdin.flush()
            answer = scheduler.stdout.readline()
            if not answer:
                break
            answers.append(json.loads(answer))
        scheduler.stdin.close()
        return answers, scheduler.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
