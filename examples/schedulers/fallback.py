#!/usr/bin/env python3
"""A bag on spot VMs that buys on demand once too many were taken, and orders a replacement as soon as one is in danger.

    dormouse run ../experiments/risky-spot.toml --scheduler ./fallback.py

Each rule is a parameter, so that a sweep can compare it with the same scheduler without it:

`vms`            how many VMs run at once (4)
`preemptions`    after how many of them within `window_s` seconds the next VMs are on demand (2 in 1800); 0: never for their number
`rate`           above how many preemptions per hour of a spot VM, over the same time, the next VMs are on demand; 0: never (0)
`at_notice`      whether a replacement is ordered at the notice of a preemption (true), or once the VM is gone
`at_rebalance`   whether one is ordered, too, when the provider recommends it (true)
`moves`          whether tasks leave a VM in danger once its replacement is ready (true)
"""

from dormouse import Scheduler

MINUTE = 60_000_000


class Fallback(Scheduler):
    def begin(self, now):
        given = self.hello.parameters
        self.most, self.rate = given.get("preemptions", 2), given.get("rate", 0)
        self.window = given.get("window_s", 1_800) * 1_000_000
        self.at_notice, self.at_rebalance = given.get("at_notice", True), given.get("at_rebalance", True)
        self.moves = given.get("moves", True)
        self.taken = []  # when VMs were preempted
        self.used = {}  # by spot VM: from when until when it was there
        self.waiting = [task.id for task in self.hello.bag.tasks]
        self.tasks, self.market = {}, {}  # by VM
        self.ready, self.leaving, self.noticed = set(), set(), set()
        types = self.hello.catalogue.types.values()
        types = [t for t in types if t.name in self.hello.bag.tasks[0].runtime]
        types = [t for t in types if t.limit("spot") and t.limit("on-demand")]
        self.kind = min(types, key=lambda t: t.price("spot") / t.vcpus)
        for _ in range(given.get("vms", 4)):
            self.hire(now)

    def is_bad(self, now):
        begin = max(0, now - self.window)
        recent = sum(at > begin for at in self.taken) if self.taken else 0
        spans = [(max(since, begin), now if until is None else until) for since, until in self.used.values()]
        hours = sum(max(0, until - since) for since, until in spans) / (60 * MINUTE)
        is_often = self.rate and recent > self.rate * hours
        return recent > 0 and bool(is_often or self.most and recent >= self.most)

    def hire(self, now, market=None):
        market = market or ("on-demand" if self.is_bad(now) else "spot")
        vm = self.launch(self.kind.name, market)
        self.tasks[vm], self.market[vm] = [], market

    def replace(self, now, vm):  # once for each VM: nothing is started there any more
        if vm not in self.leaving:
            self.leaving.add(vm)
            self.hire(now)

    def fill(self):
        for vm in sorted(self.ready - self.leaving - self.noticed):
            while self.waiting and len(self.tasks[vm]) < self.kind.vcpus:
                self.tasks[vm].append(self.waiting[0])
                self.start(self.waiting.pop(0), vm)
        if not self.waiting and not any(self.tasks.values()):
            for vm in sorted(self.tasks):
                self.terminate(vm)
            self.tasks, self.ready = {}, set()

    def vm_ready(self, now, vm):
        self.ready.add(vm)
        if self.market.get(vm) == "spot":
            self.used[vm] = now, None
        moved = [(task, old) for old in sorted(self.leaving) for task in self.tasks.get(old, [])]
        for task, old in moved[: self.kind.vcpus] if self.moves else []:
            self.stop(task, old, keep=True)
        self.fill()

    def vm_rebalance(self, now, vm):
        if vm in self.tasks and self.at_rebalance:
            self.replace(now, vm)

    def vm_preempting(self, now, vm, at):
        if vm not in self.tasks:
            return
        self.taken.append(now)
        self.noticed.add(vm)
        if self.at_notice:
            self.replace(now, vm)
        for task in self.tasks[vm]:
            self.checkpoint(task, vm)

    def vm_lost(self, now, vm):
        if vm not in self.tasks:
            return
        if vm not in self.noticed:
            self.taken.append(now)
        if vm in self.used:
            self.used[vm] = self.used[vm][0], now
        self.replace(now, vm)
        self.waiting = self.tasks.pop(vm) + self.waiting
        self.ready.discard(vm)
        self.fill()

    def launch_refused(self, now, vm, why):
        del self.tasks[vm]
        if self.market[vm] == "spot":
            self.hire(now, "on-demand")
        else:
            self.wake(now + MINUTE)

    def woken(self, now, token):
        if self.waiting:
            self.hire(now)

    def leave(self, task, vm, is_over):
        if task in self.tasks.get(vm, []):
            self.tasks[vm].remove(task)
            self.waiting[:0] = [] if is_over else [task]
            self.fill()

    def task_stopped(self, now, task, vm, done):
        self.leave(task, vm, False)

    def task_finished(self, now, task, vm):
        self.leave(task, vm, True)

    def task_failed(self, now, task, vm, why):
        self.leave(task, vm, False)


Fallback.main()
