"""The protocol: lines in, lines out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import dormouse
from dormouse import Burstable, Decision, Hello, Job, ProtocolError, ResumeError, Scheduler, WorkError
from dormouse.protocol import heard_by, serve

PACKAGES = Path(dormouse.__file__).parents[1]
"""The folder in which the package that is tested was found."""

TYPE = {
    "name": "small",
    "vcpus": 2,
    "memory": 1000,
    "mflops": 10,
    "on_demand": 100,
    "spot": None,
    "limits": {"spot": 3, "on_demand": 4},
    "burstable": {"baseline": 200000, "earned_per_hour": 5, "initial": 0, "cap": 9},
}


def hello(**changes: Any) -> dict[str, Any]:
    """A hello for a bag of two tasks, with these changes."""
    task = {"name": "a", "memory": 7, "runtime": {"small": 50}}
    said = {
        "protocol": {"least": 1, "most": 1},
        "dormouse": "0.1.0",
        "experiment": "two-tasks",
        "mode": "virtual",
        "seed": 5,
        "work": "bag",
        "catalogue": {"types": {"small": TYPE}, "boot": 3, "hibernation": 4},
        "bag": {"tasks": [task, {**task, "name": "b", "submitted": 9, "after": [0]}], "deadline": 1000},
        "preemption_notice": 2,
        "parameters": {"x": 1},
    }
    return {"hello": {**said, **changes}}


def ask(now: int, *notices: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"now": now, "notices": list(notices), **more}


def play(scheduler: type[Scheduler], *lines: Mapping[str, Any]) -> list[Any]:
    """The answers of a scheduler to these lines."""
    out = io.BytesIO()
    serve(scheduler, io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Everything(Scheduler):
    """Hears every kind of notice, and notes down each call of a method."""

    calls: list[tuple[Any, ...]] = []


def _noting(name: str) -> Callable[..., None]:
    return lambda self, *values: Everything.calls.append((name, *values))


for _name in (
    "begin price submitted vm_ready launch_refused available host_joined vm_hibernating vm_hibernated vm_resumed "
    "vm_preempting vm_rebalance vm_lost task_due task_started task_finished task_failed task_stopped "
    "checkpointed credits woken rejected instant_over"
).split():
    setattr(Everything, _name, _noting(_name))


class Notices(unittest.TestCase):
    def setUp(self) -> None:
        Everything.calls.clear()

    def test_each_notice_comes_to_its_method(self) -> None:
        job: dict[str, Any] = {"id": 1, "number": 8, "processes": 2}
        job.update(estimate=60, usage={"uniform": 500000})
        decision = {"decision": "terminate", "vm": 9}
        cases: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
            ({"notice": "begin"}, ("begin", 7)),
            ({"notice": "price", "kind": "small", "price": 3}, ("price", 7, "small", 3)),
            ({"notice": "submitted", **job}, ("submitted", 7, Job(**job))),
            ({"notice": "vm-ready", "vm": 0}, ("vm_ready", 7, 0)),
            ({"notice": "launch-refused", "vm": 0, "why": "no"}, ("launch_refused", 7, 0, "no")),
            ({"notice": "available", "kind": "small"}, ("available", 7, "small")),
            ({"notice": "host-joined"}, ("host_joined", 7)),
            ({"notice": "vm-hibernating", "vm": 0}, ("vm_hibernating", 7, 0)),
            ({"notice": "vm-hibernated", "vm": 0}, ("vm_hibernated", 7, 0)),
            ({"notice": "vm-resumed", "vm": 0}, ("vm_resumed", 7, 0)),
            ({"notice": "vm-preempting", "vm": 0, "at": 9}, ("vm_preempting", 7, 0, 9)),
            ({"notice": "vm-rebalance", "vm": 0}, ("vm_rebalance", 7, 0)),
            ({"notice": "vm-lost", "vm": 0}, ("vm_lost", 7, 0)),
            ({"notice": "task-due", "task": 4}, ("task_due", 7, 4)),
            (
                {"notice": "task-started", "task": 4, "vm": 0, "done": 1, "since": 2},
                ("task_started", 7, 4, 0, 1, 2),
            ),
            ({"notice": "task-finished", "task": 4, "vm": 0}, ("task_finished", 7, 4, 0)),
            (
                {"notice": "task-failed", "task": 4, "vm": 0, "why": "no"},
                ("task_failed", 7, 4, 0, "no"),
            ),
            (
                {"notice": "task-stopped", "task": 4, "vm": 0, "done": 1},
                ("task_stopped", 7, 4, 0, 1),
            ),
            (
                {"notice": "checkpointed", "task": 4, "vm": 0, "done": 1},
                ("checkpointed", 7, 4, 0, 1),
            ),
            ({"notice": "credits", "vm": 0, "balance": 6}, ("credits", 7, 0, 6)),
            ({"notice": "wake", "token": 5}, ("woken", 7, 5)),
            (
                {"notice": "rejected", "decision": decision, "why": "no"},
                ("rejected", 7, decision, "no"),
            ),
        ]
        answers = play(Everything, hello(), ask(7, *(sent for sent, _ in cases)))
        self.assertEqual(Everything.calls, [*(call for _, call in cases), ("instant_over", 7)])
        self.assertEqual(answers[0]["hello"]["hears"], [sent["notice"] for sent, _ in cases])

    def test_a_scheduler_hears_what_it_overrides(self) -> None:
        class Some(Scheduler):
            def vm_ready(self, now: int, vm: int) -> None:
                pass

            def woken(self, now: int, token: int) -> None:
                pass

        class More(Some):
            def begin(self, now: int) -> None:
                pass

        self.assertEqual(heard_by(Scheduler), ["rejected"])
        self.assertEqual(heard_by(More), ["begin", "vm-ready", "wake", "rejected"])

    def test_what_a_newer_dormouse_adds_is_passed_over(self) -> None:
        new = ask(1, {"notice": "unheard-of"}, {"notice": "begin", "colour": "red"})
        self.assertEqual(play(Everything, hello(), new)[1], {"decisions": []})
        self.assertEqual(Everything.calls, [("begin", 1), ("instant_over", 1)])


class Decisions(unittest.TestCase):
    def test_decisions_are_written_as_the_protocol_has_them(self) -> None:
        class Decides(Scheduler):
            def begin(self, now: int) -> None:
                first = self.launch("small", "spot")
                second = self.launch("small", "on-demand", bid=70)
                self.start(3, first)
                self.start(4, second, range(2), tier="background", mode="baseline", reason="stolen")
                self.stop(3, first, keep=True)
                self.checkpoint(4, second)
                self.fall_back(3, 250_000)
                self.promote(4, second)
                self.promote(4, second, "kill", [1, 0])
                self.set_mode(3, first, "burst")
                self.terminate(first)
                self.wake(9)
                self.wake(9, token=7)
                self.wake(10)

        answers = play(Decides, hello(), ask(0, {"notice": "begin"}), ask(1))
        self.assertEqual(
            answers[1]["decisions"],
            [
                {"decision": "launch", "vm": 0, "kind": "small", "market": "spot"},
                {"decision": "launch", "vm": 1, "kind": "small", "market": "on-demand", "bid": 70},
                {"decision": "start", "task": 3, "vm": 0},
                {
                    "decision": "start",
                    "task": 4,
                    "vm": 1,
                    "cpus": [0, 1],
                    "tier": "background",
                    "mode": "baseline",
                    "reason": "stolen",
                },
                {"decision": "stop", "task": 3, "vm": 0, "keep": True},
                {"decision": "checkpoint", "task": 4, "vm": 1},
                {"decision": "fall-back", "task": 3, "done": 250_000},
                {"decision": "promote", "task": 4, "vm": 1, "by": "swap"},
                {"decision": "promote", "task": 4, "vm": 1, "by": {"kill": {"on": [1, 0]}}},
                {"decision": "set-mode", "task": 3, "vm": 0, "mode": "burst"},
                {"decision": "terminate", "vm": 0},
                {"decision": "wake", "at": 9, "token": 0},
                {"decision": "wake", "at": 9, "token": 7},
                {"decision": "wake", "at": 10, "token": 8},
            ],
        )
        self.assertEqual(answers[2], {"decisions": []})


class Hellos(unittest.TestCase):
    def test_the_hello_has_types(self) -> None:
        seen = Hello.from_json(hello()["hello"])
        small = seen.catalogue.types["small"]
        self.assertEqual((small.price("on-demand"), small.limit("on-demand")), (100, 4))
        self.assertEqual((small.price("spot"), small.limit("spot"), small.disk), (None, 0, 0))
        self.assertEqual(small.burstable, Burstable(200000, 5, 0, 9))
        self.assertEqual([task.submitted for task in seen.bag.tasks], [0, 9])
        self.assertEqual([task.id for task in seen.bag.tasks], [0, 1])
        self.assertEqual([task.after for task in seen.bag.tasks], [(), (0,)])
        self.assertEqual((seen.bag.deadline, seen.parameters, seen.seed), (1000, {"x": 1}, 5))
        with self.assertRaisesRegex(WorkError, "two-tasks has no parallel jobs: its work is bag"):
            seen.machine

    def test_another_protocol_is_refused_in_a_sentence(self) -> None:
        with self.assertRaisesRegex(ProtocolError, r"dormouse 0\.1\.0 speaks versions 2 to 3"):
            play(Scheduler, hello(protocol={"least": 2, "most": 3}))

    def test_what_is_no_hello_is_quoted(self) -> None:
        with self.assertRaisesRegex(ProtocolError, "no.* hello of dormouse: '{\"now\": 1"):
            play(Scheduler, ask(1))


class Launches(Scheduler):
    """Launches a VM at each ready one."""

    def vm_ready(self, now: int, vm: int) -> None:
        self.start(vm, self.launch("small", "spot"))


class Follows(Launches):
    """The same, but keeps to what the log says."""

    told: list[Sequence[Decision]] = []

    def decided(self, decisions: Sequence[Decision]) -> None:
        Follows.told.append(decisions)


class Resumes(unittest.TestCase):
    launch = {"decision": "launch", "vm": 0, "kind": "small", "market": "spot"}
    start = {"decision": "start", "task": 6, "vm": 0, "mode": "burst", "reason": "planned"}
    ready = {"notice": "vm-ready", "vm": 6}

    def test_the_same_decisions_are_the_same_however_much_the_log_says(self) -> None:
        lines = [hello(), ask(1, self.ready, decided=[self.launch, self.start])]
        ours = play(Launches, *lines)[1]["decisions"]
        self.assertEqual(ours, [self.launch, {"decision": "start", "task": 6, "vm": 0}])

    def test_other_decisions_are_an_error_that_shows_both(self) -> None:
        others: list[list[dict[str, Any]]] = [
            [],
            [self.launch],
            [{**self.launch, "bid": 3}, self.start],
            [self.launch, {**self.start, "mode": "baseline"}],
            [self.launch, {**self.start, "tier": "background"}],
            [self.launch, {**self.start, "task": 5}],
        ]
        for other in others:
            sentence = "at 1 .*; now: .*; in the log: "
            with self.subTest(other), self.assertRaisesRegex(ResumeError, sentence):
                play(Launches, hello(), ask(1, self.ready, decided=other))

    def test_who_overrides_decided_is_told_and_goes_on_from_the_log(self) -> None:
        logged = [self.launch, {**self.launch, "vm": 1}]
        again = ask(2, self.ready)
        answers = play(Follows, hello(), ask(1, self.ready, decided=logged), again)
        self.assertEqual(Follows.told, [logged])
        self.assertEqual(answers[1]["decisions"], logged)
        self.assertEqual(answers[2]["decisions"][0]["vm"], 2)


class Programs(unittest.TestCase):
    """A scheduler as a process."""

    def start(self, body: str, *lines: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        program = f"import os\nfrom dormouse import Scheduler\n{body}\nMine.main()\n"
        return subprocess.run(
            [sys.executable, "-c", program],
            input="".join(json.dumps(line) + "\n" for line in lines),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES)},
            capture_output=True,
            text=True,
        )

    def test_prints_do_not_get_between_the_lines(self) -> None:
        ended = self.start(
            "print('early')\n"
            "class Mine(Scheduler):\n"
            "    def begin(self, now):\n"
            "        print('inside'); os.system('echo child')\n"
            "        assert os.read(0, 1) == b''",
            hello(),
            ask(0, {"notice": "begin"}),
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        hears = '{"hello":{"protocol":1,"hears":["begin","rejected"]}}'
        self.assertEqual(ended.stdout, f'{hears}\n{{"decisions":[]}}\n')
        self.assertEqual(sorted(ended.stderr.split()), ["child", "early", "inside"])

    def test_an_error_leaves_its_traceback_and_a_status(self) -> None:
        ended = self.start(
            "class Mine(Scheduler):\n    def begin(self, now): raise KeyError('gone')",
            hello(),
            ask(0, {"notice": "begin"}),
        )
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Traceback", ended.stderr)
        self.assertEqual(ended.stderr.splitlines()[-1], "KeyError: 'gone'")

    def test_a_rejected_decision_is_said(self) -> None:
        notice = {"notice": "rejected", "decision": {"decision": "wake"}, "why": "it is past"}
        ended = self.start("class Mine(Scheduler): pass", hello(), ask(4, notice))
        self.assertEqual(ended.returncode, 0)
        self.assertIn("rejected at 4: {'decision': 'wake'}: it is past", ended.stderr)


if __name__ == "__main__":
    unittest.main()
