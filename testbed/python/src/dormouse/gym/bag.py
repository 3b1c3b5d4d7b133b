"""An environment that buys VMs for a bag of tasks."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..episode import Episode
from ..hello import InstanceType
from ..results import StrPath
from ..scheduler import Decision
from .env import DormouseEnv, Observation
from .fleet import MARKETS, Fleet

_COLUMNS = 5
_HOUR = 3_600_000_000
_CENT = 10_000_000
"""A US cent, in units of 1e-9 USD."""


class BagEnv(DormouseEnv):
    """Which VMs to launch and to give back for a bag of tasks.

    There is a choice when the run begins and every `period` seconds of emulated time from then on; any
    number of VMs can be launched and given back before time passes. Tasks are placed by the
    environment: whenever there is room on a VM, the longest waiting task starts there; a task whose VM
    hibernates or is lost waits again. The instance types are those that are not burstable and that
    the tasks can run on, in order of their names, at most `types`. With i for the type and m = 0 for
    "spot", m = 1 for "on-demand", the actions:

    ============== ==================================================================
    0              Wait for a period.
    1+2i+m         Launch a VM of type i in market m. Excluded at its limit.
    1+2*types+2i+m Give back a VM of type i of market m that has no task, a frozen
                   one first. Excluded while there is none.
    ============== ==================================================================

    The columns of an observation are numbers from 0 to 1, clipped there:

    ============== ==================================================================
    0              Time, in deadlines.
    1              Part of the bag's work, by longest run times, that waits.
    2              Part of the tasks that run.
    3              Part of the tasks that are finished.
    4              Part of the tasks that are not submitted yet.
    5+5(2i+m)      Price of type i in market m, in the highest on-demand price of all
                   types; 0 where it is not offered.
    6+5(2i+m)      VMs of them that boot, in the limit of the type and market.
    7+5(2i+m)      VMs of them that are ready, likewise.
    8+5(2i+m)      VMs of them that are frozen, likewise.
    9+5(2i+m)      Part of the places for tasks on the ready ones that is free.
    ============== ==================================================================

    The reward is minus what VMs cost since the last action, in US cents, and minus `penalty` when the
    deadline passes with tasks unfinished. The rewards of an episode that ends by itself add up to
    minus the bill and the penalty. An episode is truncated at twice the deadline.
    """

    def __init__(
        self,
        experiment: StrPath = "j60-sc2",
        *,
        period: float = 60.0,
        types: int = 4,
        penalty: float = 100.0,
        set: Mapping[str, Any] | None = None,
        command: StrPath | None = None,
    ) -> None:
        """An environment for an experiment with a bag; `set` and `command` as in `dormouse.run`."""
        super().__init__(experiment, set, command)
        self._period, self._penalty = round(period * 1e6), penalty
        self._pairs = 2 * types
        self.observation_space = spaces.Box(0.0, 1.0, (5 + _COLUMNS * self._pairs,), np.float32)
        self.action_space = spaces.Discrete(1 + 2 * self._pairs)

    def _begin(self, episode: Episode) -> None:
        self._fleet = Fleet(episode.hello)
        tasks, all_types = self._fleet.bag.tasks, episode.hello.catalogue.types
        usable = (
            kind
            for _, kind in sorted(all_types.items())
            if kind.burstable is None and all(kind.name in task.runtime for task in tasks)
        )
        pairs = [(kind, market) for kind in usable for market in MARKETS]
        self._choices: list[tuple[InstanceType, str]] = pairs[: self._pairs]
        self._highest = max((kind.on_demand or 0 for kind in all_types.values()), default=0) or 1
        self._decisions: list[Decision] = []
        self._time = 0
        self._asked = False
        self._is_late = False
        self._charged = 0.0
        self._reward_due = 0.0

    def _advance(self, episode: Episode) -> bool:
        if self._asked:
            wake = {"decision": "wake", "at": self._time + self._period, "token": 0}
            episode.answer([*self._decisions, wake])
        while True:
            ask = episode.ask()
            self._asked = ask is not None
            if ask is None:
                return False
            self._pass_time(ask.now)
            self._decisions = self._fleet.hear(ask.now, ask.notices)
            if any(notice["notice"] in ("begin", "wake") for notice in ask.notices):
                return True
            episode.answer(self._decisions)

    def _act(self, action: int) -> bool:
        if action == 0:
            return False
        gives_back, pair = divmod(action - 1, self._pairs)
        kind, market = self._choices[pair]
        act = self._fleet.release if gives_back else self._fleet.launch
        self._decisions.append(act(kind, market))
        return True

    def _settle(self, summary: Mapping[str, Any]) -> None:
        self._pass_time(round(summary["makespan_s"] * 1e6))
        bill = summary["cost_usd"] * 100.0
        self._reward_due -= bill - self._charged

    def _reward(self) -> float:
        due, self._reward_due = self._reward_due, 0.0
        return due

    def _is_hopeless(self) -> bool:
        return self._time >= 2 * self._fleet.bag.deadline

    def _observe(self) -> Observation:
        fleet = self._fleet
        count, work = len(fleet.length), sum(fleet.length)
        running = sum(len(vm.tasks) for vm in fleet.vms.values())
        seen = np.zeros(self.observation_space.shape or (), np.float32)
        seen[0] = self._time / fleet.bag.deadline
        seen[1] = sum(fleet.length[task] for task in fleet.waiting) / work
        seen[2:5] = running / count, fleet.finished / count, len(fleet.later) / count
        for pair, (kind, market) in enumerate(self._choices):
            vms = [vm for _, vm in fleet.of(kind, market)]
            limit = kind.limit(market) or 1
            ready = [vm for vm in vms if vm.state == "ready"]
            places = sum(vm.places for vm in ready)
            at = 5 + _COLUMNS * pair
            seen[at] = fleet.prices[kind.name, market] / self._highest
            for column, state in enumerate(("booting", "ready", "frozen"), at + 1):
                seen[column] = sum(vm.state == state for vm in vms) / limit
            seen[at + 4] = 1 - sum(len(vm.tasks) for vm in ready) / places if places else 0
        return np.clip(seen, 0.0, 1.0)

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(1 + 2 * self._pairs, np.int8)
        mask[0] = 1
        for pair, (kind, market) in enumerate(self._choices):
            mask[1 + pair] = len(self._fleet.of(kind, market)) < kind.limit(market)
            mask[1 + self._pairs + pair] = bool(self._fleet.idle(kind, market))
        return mask

    def _now(self) -> int:
        return self._time

    def _pass_time(self, now: int) -> None:
        cents = self._fleet.price_now() * (now - self._time) / _HOUR / _CENT
        self._charged += cents
        self._reward_due -= cents
        deadline = self._fleet.bag.deadline
        if now > deadline and not self._is_late:
            self._is_late = True
            self._reward_due -= self._penalty
        self._time = now
