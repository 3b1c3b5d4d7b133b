#!/usr/bin/env python3
"""A bag on spot VMs that buys on demand once too many were taken, and orders a replacement as soon as one is in danger.

    dormouse run ../experiments/mass-preemption.toml --scheduler ./fallback.py

Parameters: `vms`, how many run at once (4); `preemptions`, after how many of them within `window_s` seconds the next VMs
are on demand (2 in 1800); `moves`, whether tasks leave a VM once its replacement is ready (true).
"""

from dormouse import Scheduler

MINUTE = 60_000_000


class Fallback(Scheduler):
    def begin(self, now):
        given = self.hello.parameters
        self.most, self.moves = given.get("preemptions", 2), given.get("moves", True)
        self.window = given.get("window_s", 1_800) * 1_000_000
        self.taken = []  # when VMs were preempted
        self.waiting = [task.id for task in self.hello.bag.tasks]
        self.tasks, self.market, self.ready, self.leaving = {}, {}, set(), set()  # by VM
        types = self.hello.catalogue.types.values()
        types = [t for t in types if t.name in self.hello.bag.tasks[0].runtime]
        types = [t for t in types if t.limit("spot") and t.limit("on-demand")]
        self.kind = min(types, key=lambda t: t.price("spot") / t.vcpus)
        for _ in range(given.get("vms", 4)):
            self.hire(now)

    def hire(self, now, market=None):
        recent = [at for at in self.taken if at > now - self.window]
        market = market or ("on-demand" if len(recent) >= self.most else "spot")
        vm = self.launch(self.kind.name, market)
        self.tasks[vm], self.market[vm] = [], market

    def replace(self, now, vm):  # once for each VM: nothing is started there any more
        if vm not in self.leaving:
            self.leaving.add(vm)
            self.hire(now)

    def fill(self):
        for vm in sorted(self.ready - self.leaving):
            while self.waiting and len(self.tasks[vm]) < self.kind.vcpus:
                self.tasks[vm].append(self.waiting[0])
                self.start(self.waiting.pop(0), vm)
        if not self.waiting and not any(self.tasks.values()):
            for vm in sorted(self.tasks):
                self.terminate(vm)
            self.tasks, self.ready = {}, set()

    def vm_ready(self, now, vm):
        self.ready.add(vm)
        moved = [(task, old) for old in sorted(self.leaving) for task in self.tasks.get(old, [])]
        for task, old in moved[: self.kind.vcpus] if self.moves else []:
            self.stop(task, old, keep=True)
        self.fill()

    def vm_rebalance(self, now, vm):
        if vm in self.tasks:
            self.replace(now, vm)

    def vm_preempting(self, now, vm, at):
        if vm not in self.tasks:
            return
        self.taken.append(now)
        self.replace(now, vm)
        for task in self.tasks[vm]:
            self.checkpoint(task, vm)

    def vm_lost(self, now, vm):
        if vm not in self.tasks:
            return
        if vm not in self.leaving:  # without a notice
            self.taken.append(now)
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
