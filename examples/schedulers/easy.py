#!/usr/bin/env python3
"""EASY backfilling, with the schedule of dormouse's own scheduler `easy`.

    dormouse run batch-small --scheduler ./easy.py
"""

from bisect import insort
from collections import Counter

from dormouse import Scheduler

RETRY = 60_000_000  # the wait after a refused launch of the machine, in microseconds
MOST_STARTS = 5  # a job that always fails would otherwise never let the run end


class Easy(Scheduler):
    def begin(self, now):
        self.queue = []  # waiting jobs in order of submission
        self.running = {}  # by job: its expected end, the job itself, its processors
        self.failures = Counter()
        self.idle = list(range(self.hello.machine.processors))
        self.woken(now, 0)

    def woken(self, now, token):
        self.vm, self.ready = self.launch(self.hello.machine.kind, "on-demand"), False

    def launch_refused(self, now, vm, why):
        self.wake(now + RETRY)

    def vm_ready(self, now, vm):
        self.ready = True

    def vm_lost(self, now, vm):
        for task in list(self.running):
            insort(self.queue, self.leave(task))
        self.woken(now, 0)

    def submitted(self, now, job):
        insort(self.queue, job)

    def task_finished(self, now, task, vm):
        self.leave(task)

    def task_failed(self, now, task, vm, why):
        job, self.failures[task] = self.leave(task), self.failures[task] + 1
        if self.failures[task] < MOST_STARTS:
            insort(self.queue, job)

    def instant_over(self, now):
        while self.ready and self.queue and self.queue[0].processes <= len(self.idle):
            self.run(now, self.queue[0])
        if self.ready and self.queue and self.idle:
            self.backfill(now, self.queue[0])

    def backfill(self, now, head):
        shadow, free = now, len(self.idle)  # when the head can start; what is free then
        for end, job, _ in sorted(self.running.values()):
            if free >= head.processes and end > shadow:
                break
            shadow, free = max(shadow, end), free + job.processes
        extra = free - head.processes  # what the head leaves free then
        for job in self.queue[1:]:
            fits, ends_before = job.processes <= len(self.idle), now + job.estimate <= shadow
            if fits and (ends_before or job.processes <= extra):
                self.run(now, job)
                extra -= 0 if ends_before else job.processes

    def run(self, now, job):
        self.queue.remove(job)
        cpus, self.idle = self.idle[: job.processes], self.idle[job.processes :]
        self.running[job.id] = (now + job.estimate, job, cpus)
        self.start(job.id, self.vm, cpus)

    def leave(self, task):
        _, job, cpus = self.running.pop(task)
        self.idle = sorted(self.idle + cpus)
        return job


Easy.main()
