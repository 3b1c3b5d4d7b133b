"""The VMs and tasks of a bag, as notices tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from ..hello import Hello, InstanceType
from ..scheduler import Decision

MARKETS = ("spot", "on-demand")


@dataclass
class Vm:
    """A VM that was launched and not given back."""

    kind: InstanceType
    market: str
    places: int
    """Most tasks at a time."""
    state: str = "booting"
    """State of the VM: "booting", "ready", "leaving" (it takes no more tasks) or "frozen"."""
    tasks: set[int] = field(default_factory=set)


class Fleet:
    """VMs with their tasks, and the rest of the bag."""

    def __init__(self, hello: Hello) -> None:
        self.bag = hello.bag
        self.length = [max(task.runtime.values()) for task in self.bag.tasks]
        """Longest run time of each task over the instance types."""
        self.later = {task.id for task in self.bag.tasks if task.submitted > 0}
        """Tasks that are not submitted yet."""
        self.waiting = {task.id for task in self.bag.tasks} - self.later
        """Tasks that wait."""
        self.finished = 0
        """Number of finished tasks."""
        self.vms: dict[int, Vm] = {}
        """VMs by number."""
        self.prices = {
            (kind.name, market): kind.price(market) or 0
            for kind in hello.catalogue.types.values()
            for market in MARKETS
        }
        """Price of each type in each market, in 1e-9 USD an hour; 0 where it is not offered."""
        self._launched = 0
        self._most_memory = max(1, *(task.memory for task in self.bag.tasks))

    def hear(self, now: int, notices: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Takes notices in; returns the decisions that are no choice: where tasks run."""
        decisions: list[Decision] = []
        for notice in notices:
            self._hear(notice, decisions)
        due = {task for task in self.later if self.bag.tasks[task].submitted <= now}
        self.later -= due
        self.waiting |= due
        return decisions + self._place()

    def launch(self, kind: InstanceType, market: str) -> Decision:
        """Launches a VM."""
        number = self._launched
        self._launched += 1
        places = min(kind.vcpus, kind.memory // self._most_memory)
        self.vms[number] = Vm(kind, market, places)
        return {"decision": "launch", "vm": number, "kind": kind.name, "market": market}

    def release(self, kind: InstanceType, market: str) -> Decision:
        """Gives a VM without tasks back, a frozen one first."""
        number = min(self.idle(kind, market), key=lambda n: (self.vms[n].state != "frozen", n))
        del self.vms[number]
        return {"decision": "terminate", "vm": number}

    def idle(self, kind: InstanceType, market: str) -> list[int]:
        """VMs of a type and market that are not booting and have no tasks."""
        return [n for n, vm in self.of(kind, market) if vm.state != "booting" and not vm.tasks]

    def of(self, kind: InstanceType, market: str) -> list[tuple[int, Vm]]:
        """VMs of a type and market, with their numbers."""
        return [(n, v) for n, v in self.vms.items() if v.kind is kind and v.market == market]

    def price_now(self) -> int:
        """What all VMs that are paid for cost now, in 1e-9 USD an hour."""
        paid = (vm for vm in self.vms.values() if vm.state in ("ready", "leaving"))
        return sum(self.prices[vm.kind.name, vm.market] for vm in paid)

    def _hear(self, notice: Mapping[str, Any], decisions: list[Decision]) -> None:
        what, number = notice["notice"], notice.get("vm")
        if what == "price":
            self.prices[notice["kind"], "spot"] = notice["price"]
        vm = self.vms.get(number) if number is not None else None
        if number is None or vm is None:
            return
        if what in ("vm-ready", "vm-resumed"):
            vm.state = "ready"
        elif what in ("vm-hibernating", "vm-preempting"):
            vm.state = "leaving"
        elif what == "vm-hibernated":
            vm.state = "frozen"
            decisions += (
                {"decision": "stop", "task": task, "vm": number, "keep": False}
                for task in sorted(vm.tasks)
            )
        elif what in ("vm-lost", "launch-refused"):
            self.waiting |= self.vms.pop(number).tasks
        elif what in ("task-stopped", "task-failed"):
            vm.tasks.discard(notice["task"])
            self.waiting.add(notice["task"])
        elif what == "task-finished":
            vm.tasks.discard(notice["task"])
            self.finished += 1

    def _place(self) -> list[Decision]:
        """Starts waiting tasks, the longest first, wherever there is a place."""
        decisions: list[Decision] = []
        longest = sorted(self.waiting, key=lambda task: (-self.length[task], task))
        for number, vm in self.vms.items():
            while longest and vm.state == "ready" and len(vm.tasks) < vm.places:
                task = longest.pop(0)
                self.waiting.remove(task)
                vm.tasks.add(task)
                decisions.append({"decision": "start", "task": task, "vm": number})
        return decisions
