"""The base class of schedulers: one method for each notice, one for each decision."""

from __future__ import annotations

import sys
from typing import Any, Mapping, NamedTuple, NoReturn, Sequence

from .hello import Hello

Decision = Mapping[str, Any]
"""A decision as it is on the wire and in `events.jsonl`."""


class Job(NamedTuple):
    """A parallel job, as its scheduler may know it."""

    id: int
    """Number by which notices and decisions name the job; later submissions have higher numbers."""
    number: int
    """The job's number in the trace, for people."""
    processes: int
    """Number of processes, each of which wants a vCPU."""
    estimate: int
    """Run time that the job's user expects, in microseconds."""
    usage: Mapping[str, Any]
    """CPU usage in millionths: `{"uniform": n}`, or `{"each": [n, ...]}` with one for each process."""


class Scheduler:
    """A scheduler that dormouse starts as a program.

    A subclass overrides the methods of the notices that it wants to hear; no others are sent to it.
    In them it calls the methods that decide. Times are microseconds of emulated time.

    A script ends with `MyScheduler.main()`.
    """

    hello: Hello
    """What is known when the run begins."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self._decisions: list[Decision] = []
        self._next_vm = 0
        self._next_token = 0

    @classmethod
    def main(cls) -> NoReturn:
        """Plays the scheduler to the dormouse at standard input and output, and ends the process.

        What is printed meanwhile goes to standard error.
        """
        from .protocol import main

        main(cls)

    # Notices.

    def begin(self, now: int) -> None:
        """The experiment begins: the time to plan and to launch VMs."""

    def price(self, now: int, kind: str, price: int) -> None:
        """The spot price of an instance type from now on, in 1e-9 USD an hour."""

    def submitted(self, now: int, job: Job) -> None:
        """A parallel job was submitted."""

    def vm_ready(self, now: int, vm: int) -> None:
        """A launched VM has booted."""

    def launch_refused(self, now: int, vm: int, why: str) -> None:
        """A launch was refused."""

    def available(self, now: int, kind: str) -> None:
        """More spot VMs of a type can be had than before, after a launch was refused."""

    def host_joined(self, now: int) -> None:
        """A host has joined after a launch was refused: there may be room for the VM now."""

    def vm_hibernating(self, now: int, vm: int) -> None:
        """A spot VM is told to hibernate and takes no more work."""

    def vm_hibernated(self, now: int, vm: int) -> None:
        """A spot VM is frozen, its running tasks with it."""

    def vm_resumed(self, now: int, vm: int) -> None:
        """A hibernated VM runs again, and so do the tasks on it that were not stopped."""

    def vm_preempting(self, now: int, vm: int, at: int) -> None:
        """A spot VM will be killed at the time `at`."""

    def vm_rebalance(self, now: int, vm: int) -> None:
        """The provider recommends to replace a spot VM: it is more likely to be taken than before."""

    def vm_lost(self, now: int, vm: int) -> None:
        """A VM is gone for good though nobody asked: it was preempted, or its host was lost."""

    def task_due(self, now: int, task: int) -> None:
        """All is done that a task follows: it can start. The end of the last of these is heard next."""

    def task_started(self, now: int, task: int, vm: int, done: int, since: int) -> None:
        """A started task runs, from `done` millionths of its work; it was sent to the VM at `since`."""

    def task_finished(self, now: int, task: int, vm: int) -> None:
        """A task has done all its work."""

    def task_failed(self, now: int, task: int, vm: int, why: str) -> None:
        """An attempt came to nothing; what the task's last checkpoint kept is still kept."""

    def task_stopped(self, now: int, task: int, vm: int, done: int) -> None:
        """A task was stopped as asked; `done` millionths of its work are kept."""

    def checkpointed(self, now: int, task: int, vm: int, done: int) -> None:
        """A checkpoint of a running task is complete: it keeps `done` millionths of its work."""

    def credits(self, now: int, vm: int, balance: int) -> None:
        """A burstable VM's credit balance, whenever the use of the VM has changed."""

    def woken(self, now: int, token: int) -> None:
        """A wake-up that was asked for with `wake`."""

    def rejected(self, now: int, decision: Decision, why: str) -> None:
        """A decision was not carried out, for the reason `why`. If not overridden: says so."""
        print(f"rejected at {now}: {dict(decision)}: {why}", file=sys.stderr)

    def instant_over(self, now: int) -> None:
        """All notices of this ask were given to their methods.

        A scheduler of parallel jobs is asked once for all that happened at one instant; here it has
        the whole picture.
        """

    def decided(self, decisions: Sequence[Decision]) -> None:
        """A run is resumed, and in its log this was decided on the notices just heard.

        A scheduler that decides the same whenever it hears the same need not override this: it is
        checked that it does, and a `ResumeError` is raised if it does not. Where this is overridden,
        what the scheduler decides on notices of the log is dropped, and the log holds: bring the
        scheduler's state in line with `decisions` here.
        """

    # Decisions.

    def launch(self, kind: str, market: str, bid: int | None = None) -> int:
        """Asks the provider for a VM of this instance type in the market "spot" or "on-demand".

        `bid` is the most to be paid for it, in 1e-9 USD an hour; `None`: whatever it costs. Returns
        the number of the VM, which is ready at the notice `vm_ready`.
        """
        vm = self._next_vm
        self._next_vm = vm + 1
        decision = {"decision": "launch", "vm": vm, "kind": kind, "market": market}
        if bid is not None:
            decision["bid"] = bid
        self._decisions.append(decision)
        return vm

    def terminate(self, vm: int) -> None:
        """Gives a VM back. Tasks still on it wait again, with what their last checkpoints kept."""
        self._decisions.append({"decision": "terminate", "vm": vm})

    def start(
        self,
        task: int,
        vm: int,
        cpus: Sequence[int] | None = None,
        *,
        tier: str = "foreground",
        mode: str = "burst",
        reason: str | None = None,
    ) -> None:
        """Runs a task on a ready VM now, from its last complete checkpoint if it has one.

        `cpus` names one vCPU for each process; a task of a bag may leave it out and gets the first
        that is free. `tier` is "foreground" or "background", `mode` "burst" or "baseline" (on
        burstable VMs). `reason` is for the log and `dormouse explain`: "planned", "migrated", "stolen" or
        "retried".
        """
        decision: dict[str, Any] = {"decision": "start", "task": task, "vm": vm}
        if cpus is not None:
            decision["cpus"] = list(cpus)
        if tier != "foreground":
            decision["tier"] = tier
        if mode != "burst":
            decision["mode"] = mode
        if reason is not None:
            decision["reason"] = reason
        self._decisions.append(decision)

    def stop(self, task: int, vm: int, *, keep: bool = False) -> None:
        """Stops a running or frozen attempt, and with `keep` checkpoints a running one before.

        Without `keep` the task waits again at once; with it, from the notice `task_stopped` on.
        """
        self._decisions.append({"decision": "stop", "task": task, "vm": vm, "keep": keep})

    def checkpoint(self, task: int, vm: int) -> None:
        """Checkpoints a running task now; it stands still meanwhile, and then runs on."""
        self._decisions.append({"decision": "checkpoint", "task": task, "vm": vm})

    def fall_back(self, task: int, done: int) -> None:
        """Has a waiting task begin from a checkpoint with at most `done` of its work, and gives up newer ones."""
        self._decisions.append({"decision": "fall-back", "task": task, "done": done})

    def promote(
        self, task: int, vm: int, by: str = "swap", on: Sequence[int] | None = None
    ) -> None:
        """Brings a parallel job from the background to the foreground.

        `by` is "swap" (on its own vCPUs), "kill" (it starts again on the vCPUs `on`) or "migrate" (it
        goes on on the vCPUs `on`); `on` names one vCPU for each process.
        """
        how: Any = by if on is None else {by: {"on": list(on)}}
        self._decisions.append({"decision": "promote", "task": task, "vm": vm, "by": how})

    def set_mode(self, task: int, vm: int, mode: str) -> None:
        """Runs a running task in the mode "burst" or "baseline" from now on."""
        self._decisions.append({"decision": "set-mode", "task": task, "vm": vm, "mode": mode})

    def wake(self, at: int, token: int | None = None) -> int:
        """Asks for the notice `woken` at a time after now; returns the token that it will carry.

        Without a token, the next number that was not given out yet is taken.
        """
        if token is None:
            token = self._next_token
        self._next_token = max(self._next_token, token + 1)
        self._decisions.append({"decision": "wake", "at": at, "token": token})
        return token
