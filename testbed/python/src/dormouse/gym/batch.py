"""An environment that picks parallel jobs from a queue."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..episode import Episode
from ..results import StrPath
from ..scheduler import Decision, Job
from .cluster import Cluster
from .env import DormouseEnv, Observation, log_time

_HOUR = 3_600_000_000
_LONG_QUEUE = 100


class BatchEnv(DormouseEnv):
    """Which waiting job starts next on a machine of parallel jobs.

    There is a choice whenever a job of the window fits; the window has the first `window` jobs of the
    queue, in order of submission. The actions:

    ====== ==========================================================================
    0      Wait until something happens. Excluded while no job runs: nothing would.
    n      Start job n of the window, counted from 1, on the first idle processors.
    ====== ==========================================================================

    The columns of an observation are numbers from 0 to 1, clipped there:

    ====== ==========================================================================
    0      Part of the processors that is idle.
    1      Waiting jobs, in hundreds.
    2      Time until the first waiting job can start, going by estimates (log time).
    3      Part of the processors that this job leaves idle then.
    4+6i   1 if there is a job i in the window, counted from 0; else all six are 0.
    5+6i   Part of the processors that it needs.
    6+6i   Run time that its user expects (log time).
    7+6i   Time for which it has waited (log time).
    8+6i   1 if it fits now.
    9+6i   1 if to start it now would delay the first, going by estimates.
    ====== ==========================================================================

    Log time is log(1 + t) / log(1 + 604800) for t in seconds: a week is 1.

    The reward is minus the time that jobs spent in the system, waiting or running, since the last
    action, in hours, added up over the jobs. So the rewards of an episode add up to minus the mean
    response time multiplied by the number of jobs.
    """

    def __init__(
        self,
        experiment: StrPath = "batch-small",
        *,
        window: int = 10,
        set: Mapping[str, Any] | None = None,
        command: StrPath | None = None,
    ) -> None:
        """An environment for an experiment with parallel jobs; `set` and `command` as in `run`."""
        super().__init__(experiment, set, command)
        self._window = window
        self.observation_space = spaces.Box(0.0, 1.0, (4 + 6 * window,), np.float32)
        self.action_space = spaces.Discrete(1 + window)

    def _begin(self, episode: Episode) -> None:
        machine = episode.hello.machine
        self._cluster = Cluster(machine.kind, machine.processors)
        self._decisions: list[Decision] = []
        self._time = 0
        self._reward_due = 0.0
        self._asked = False

    def _advance(self, episode: Episode) -> bool:
        while True:
            if self._asked:
                episode.answer(self._decisions)
            ask = episode.ask()
            self._asked = ask is not None
            if ask is None:
                return False
            self._pass_time(ask.now)
            self._decisions = self._cluster.hear(ask.now, ask.notices)
            if any(map(self._cluster.fits, self._jobs())):
                return True

    def _act(self, action: int) -> bool:
        if action == 0:
            return False
        job = self._jobs()[action - 1]
        self._decisions.append(self._cluster.start(self._time, job))
        return any(map(self._cluster.fits, self._jobs()))

    def _settle(self, summary: Mapping[str, Any]) -> None:
        self._pass_time(round(summary["makespan_s"] * 1e6))

    def _reward(self) -> float:
        due, self._reward_due = self._reward_due, 0.0
        return due

    def _observe(self) -> Observation:
        cluster, now = self._cluster, self._time
        shadow, extra = cluster.reservation(now)
        seen = np.zeros(self.observation_space.shape or (), np.float32)
        seen[0] = len(cluster.idle) / cluster.processors
        seen[1] = min(1.0, len(cluster.queue) / _LONG_QUEUE)
        seen[2] = log_time(shadow - now)
        seen[3] = max(0.0, extra / cluster.processors)
        for place, job in enumerate(self._jobs()):
            delays = place > 0 and now + job.estimate > shadow and job.processes > extra
            seen[4 + 6 * place : 10 + 6 * place] = (
                1.0,
                min(1.0, job.processes / cluster.processors),
                log_time(job.estimate),
                log_time(now - cluster.submitted[job.id]),
                float(cluster.fits(job)),
                float(delays),
            )
        return seen

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(1 + self._window, np.int8)
        for place, job in enumerate(self._jobs()):
            mask[1 + place] = self._cluster.fits(job)
        mask[0] = bool(self._cluster.ends) or not mask.any()
        return mask

    def _now(self) -> int:
        return self._time

    def _jobs(self) -> list[Job]:
        return self._cluster.queue[: self._window]

    def _pass_time(self, now: int) -> None:
        self._reward_due -= len(self._cluster.submitted) * (now - self._time) / _HOUR
        self._time = now
