"""The processors and the queue of parallel jobs, as notices tell of them."""

from __future__ import annotations

from bisect import insort
from typing import Any, Iterable, Mapping

from ..scheduler import Decision, Job


class Cluster:
    """Waiting and running jobs, and idle processors."""

    def __init__(self, kind: str, processors: int) -> None:
        self.processors = processors
        """Number of all processors."""
        self.queue: list[Job] = []
        """Waiting jobs in order of submission."""
        self.idle = list(range(processors))
        """Idle processors in order of their numbers."""
        self.submitted: dict[int, int] = {}
        """Time of submission of each job in the system."""
        self.ends: dict[int, tuple[int, Job, list[int]]] = {}
        """Of each running job its expected end, itself and its processors."""
        self._kind = kind
        self._vms = 0
        self._ready = False

    def hear(self, now: int, notices: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Takes notices in; returns the decisions that are no choice: the machine is launched."""
        decisions: list[Decision] = []
        for notice in notices:
            what = notice["notice"]
            if what == "submitted":
                job = Job(*(notice[field] for field in Job._fields))
                self.submitted[job.id] = now
                self.queue.append(job)
            elif what == "task-finished":
                self._leave(notice["task"])
                del self.submitted[notice["task"]]
            elif what == "task-failed":
                insort(self.queue, self._leave(notice["task"]))
            elif what == "vm-ready":
                self._ready = True
            elif what == "vm-lost":
                self._ready = False
                for task in list(self.ends):
                    insort(self.queue, self._leave(task))
                decisions.append(self._launch())
            elif what == "launch-refused":
                decisions.append({"decision": "wake", "at": now + 60_000_000, "token": 0})
            elif what in ("begin", "wake"):
                decisions.append(self._launch())
        return decisions

    def fits(self, job: Job) -> bool:
        """Whether the job could start now."""
        return self._ready and job.processes <= len(self.idle)

    def start(self, now: int, job: Job) -> Decision:
        """Starts a waiting job that fits, on the first idle processors."""
        self.queue.remove(job)
        cpus, self.idle = self.idle[: job.processes], self.idle[job.processes :]
        self.ends[job.id] = (now + job.estimate, job, cpus)
        return {"decision": "start", "task": job.id, "vm": self._vms - 1, "cpus": cpus}

    def reservation(self, now: int) -> tuple[int, int]:
        """When the first of the queue can start, going by estimates, and what it leaves idle then."""
        need = self.queue[0].processes if self.queue else 0
        shadow, free = now, len(self.idle)
        for end, job, _ in sorted(self.ends.values()):
            if free >= need and end > shadow:
                break
            shadow, free = max(shadow, end), free + job.processes
        return shadow, free - need

    def _leave(self, task: int) -> Job:
        _, job, cpus = self.ends.pop(task)
        self.idle = sorted(self.idle + cpus)
        return job

    def _launch(self) -> Decision:
        self._vms += 1
        vm = self._vms - 1
        return {"decision": "launch", "vm": vm, "kind": self._kind, "market": "on-demand"}
