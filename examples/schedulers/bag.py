#!/usr/bin/env python3
"""A bag on spot VMs, the longest task first; tasks that lose their VM get on-demand VMs.

    dormouse run j60-sc2 --scheduler ./bag.py
"""

from dormouse import Scheduler


class Bag(Scheduler):
    def begin(self, now):
        self.bag, self.waiting, self.ready, self.missing = self.hello.bag.tasks, [], [], 0
        self.places, self.tasks = {}, {}  # by VM: how many tasks it can run; those on it
        self.length = [max(task.runtime.values()) for task in self.bag]
        self.memory = max(task.memory for task in self.bag)  # that a place has to have
        self.offers = {market: self.offered(market) for market in ("spot", "on-demand")}
        # Places enough to do all work in half of the time that there is.
        time = self.hello.bag.deadline - self.hello.catalogue.boot
        self.hire("on-demand", self.hire("spot", 2 * sum(self.length) / time))
        for at in sorted({task.submitted for task in self.bag} - {now}):
            self.wake(at, token=at)
        self.put(now, [task.id for task in self.bag if task.submitted == now])

    def offered(self, market):  # each type as often as it can be had, the cheapest first
        types = [t for t in self.hello.catalogue.types.values() if t.limit(market)]
        types = [t for t in types if t.name in self.bag[0].runtime and not t.burstable]
        types.sort(key=lambda t: t.price(market) * self.bag[0].runtime[t.name] / t.vcpus)
        return [t for t in types for _ in range(t.limit(market))]

    def hire(self, market, places):  # VMs with so many places; returns how many are missing
        while places > 0 and self.offers[market]:
            kind = self.offers[market].pop(0)
            vm, fitting = self.launch(kind.name, market), kind.memory // self.memory
            self.places[vm], self.tasks[vm] = min(kind.vcpus, fitting), []
            places -= self.places[vm]
        return places

    def replace(self, now, places):  # what can't be had now is asked for again in a minute
        self.missing = self.hire("on-demand", self.missing + places)
        if self.missing > 0:
            self.wake(now + 60_000_000, token=0)

    def put(self, now, tasks):  # starts what waits where there is a place; gives idle VMs back
        self.waiting = sorted([*self.waiting, *tasks], key=lambda task: -self.length[task])
        for vm in list(self.ready):
            while self.waiting and len(self.tasks[vm]) < self.places[vm]:
                self.tasks[vm].append(self.waiting[0])
                self.start(self.waiting.pop(0), vm)
            if not self.tasks[vm] and now >= max(task.submitted for task in self.bag):
                self.ready.remove(vm)
                self.terminate(vm)

    def woken(self, now, token):
        if token == 0:
            self.offers["on-demand"] = self.offered("on-demand")
            self.replace(now, 0)
        else:
            self.put(now, [task.id for task in self.bag if task.submitted == token])

    def vm_ready(self, now, vm):
        self.ready.append(vm)
        self.put(now, [])

    def vm_lost(self, now, vm):
        self.ready = [other for other in self.ready if other != vm]
        self.replace(now, len(self.tasks[vm]))
        self.put(now, self.tasks.pop(vm))

    def vm_hibernated(self, now, vm):
        self.terminate(vm)
        self.vm_lost(now, vm)

    def launch_refused(self, now, vm, why):
        self.replace(now, self.places[vm])

    def task_finished(self, now, task, vm):
        self.tasks[vm].remove(task)
        self.put(now, [])

    def task_failed(self, now, task, vm, why):
        self.tasks[vm].remove(task)
        self.put(now, [task])


Bag.main()
