"""The first line that a scheduler is sent, as typed records: what is sold, the work, the experiment.

Times and spans are microseconds of emulated time, counted from the beginning of the run. Memory is in
bytes. Prices are in units of 1e-9 USD an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Mapping

from .errors import WorkError


@dataclass(frozen=True)
class Limits:
    """The most VMs of one type that may be held at a time, per market."""

    spot: int
    on_demand: int


@dataclass(frozen=True)
class Burstable:
    """How a burstable type earns and spends CPU credits."""

    baseline: int
    """Share of a vCPU that each vCPU may use in baseline mode, in millionths."""
    earned_per_hour: int
    """Credits that the whole VM earns an hour, in microseconds of a vCPU."""
    initial: int
    """Credits at launch, in microseconds of a vCPU."""
    cap: int
    """Most credits that a VM can hold, in microseconds of a vCPU."""


@dataclass(frozen=True)
class InstanceType:
    """An instance type: size, speed, prices, limits."""

    name: str
    vcpus: int
    memory: int
    disk: int
    mflops: int
    """Computing power of the VM in mega-flops (LINPACK)."""
    on_demand: int | None
    """Price in the on-demand market; `None` where the type is not offered there."""
    spot: int | None
    """Price in the spot market when the run begins; `None` where the type is not offered there."""
    limits: Limits
    burstable: Burstable | None

    def price(self, market: str) -> int | None:
        """The price in the market "spot" or "on-demand"; `None` where the type is not offered."""
        return self.spot if market == "spot" else self.on_demand

    def limit(self, market: str) -> int:
        """The most VMs of this type in the market "spot" or "on-demand"; 0 where it is not offered."""
        if self.price(market) is None:
            return 0
        return self.limits.spot if market == "spot" else self.limits.on_demand

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> InstanceType:
        """The instance type that this JSON object describes."""
        burstable = value.get("burstable")
        return cls(
            name=value["name"],
            vcpus=value["vcpus"],
            memory=value["memory"],
            disk=value.get("disk", 0),
            mflops=value["mflops"],
            on_demand=value.get("on_demand"),
            spot=value.get("spot"),
            limits=Limits(value["limits"]["spot"], value["limits"]["on_demand"]),
            burstable=burstable
            and Burstable(
                burstable["baseline"],
                burstable["earned_per_hour"],
                burstable["initial"],
                burstable["cap"],
            ),
        )


@dataclass(frozen=True)
class Catalogue:
    """Everything that the provider sells."""

    types: Mapping[str, InstanceType]
    """The instance types by name."""
    boot: int
    """Time from the launch of a VM until it is ready."""
    hibernation: int
    """Least time from a hibernation until the VM can be resumed."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Catalogue:
        """The catalogue that this JSON object describes."""
        types = {name: InstanceType.from_json(kind) for name, kind in value["types"].items()}
        return cls(types, value["boot"], value["hibernation"])


@dataclass(frozen=True)
class Task:
    """A task of a bag."""

    id: int
    """Number by which notices and decisions name the task."""
    name: str
    memory: int
    runtime: Mapping[str, int]
    """Run time on one vCPU of each instance type, by the type's name."""
    submitted: int
    """Time before which the task cannot be started."""
    after: tuple[int, ...] = ()
    """The tasks that must be done before it can be started: `task_due` says when they are."""


@dataclass(frozen=True)
class Bag:
    """Tasks with one deadline."""

    tasks: tuple[Task, ...]
    """All tasks; a task's place in the tuple is its `id`."""
    deadline: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Bag:
        """The bag that this JSON object describes."""
        tasks = (
            Task(
                number,
                task["name"],
                task["memory"],
                task["runtime"],
                task.get("submitted", 0),
                tuple(task.get("after", ())),
            )
            for number, task in enumerate(value["tasks"])
        )
        return cls(tuple(tasks), value["deadline"])


@dataclass(frozen=True)
class Machine:
    """The machine that parallel jobs run on: one VM whose vCPUs are the processors."""

    kind: str
    """Instance type to launch, in the market "on-demand", at most once at a time."""
    processors: int


@dataclass(frozen=True)
class Hello:
    """What a scheduler knows when the run begins."""

    dormouse: str
    """Version of dormouse."""
    experiment: str
    """Name of the experiment."""
    mode: str
    """Kind of clock and machines: "virtual" or "live"."""
    seed: int
    """Seed of the run's chance."""
    work: str
    """Kind of work: "bag" or "jobs"."""
    catalogue: Catalogue
    parameters: Mapping[str, Any]
    """The experiment's `[scheduler.parameters]`, as they stand there."""
    raw: Mapping[str, Any]
    """The whole JSON object, for what has no attribute here."""

    @cached_property
    def bag(self) -> Bag:
        """The tasks and their deadline; a `WorkError` where the work is parallel jobs."""
        if self.work != "bag":
            raise WorkError(f"{self.experiment} has no bag: its work is {self.work}")
        return Bag.from_json(self.raw["bag"])

    @cached_property
    def machine(self) -> Machine:
        """The machine of parallel jobs; a `WorkError` where the work is a bag."""
        if self.work != "jobs":
            raise WorkError(f"{self.experiment} has no parallel jobs: its work is {self.work}")
        machine = self.raw["machine"]
        return Machine(machine["kind"], machine["processors"])

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Hello:
        """The hello that this JSON object is."""
        return cls(
            dormouse=value["dormouse"],
            experiment=value["experiment"],
            mode=value["mode"],
            seed=value["seed"],
            work=value["work"],
            catalogue=Catalogue.from_json(value["catalogue"]),
            parameters=value.get("parameters", {}),
            raw=value,
        )
