"""What commands leave in their folders: runs, comparisons and sweeps."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, Union

from .errors import DormouseError
from .tables import Table

StrPath = Union[str, "os.PathLike[str]"]


class Folder:
    """A folder with results."""

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder)
        """Path of the folder."""

    def _file(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            raise DormouseError(f"{self.folder} has no {name}{self._why_missing(name)}")
        return path

    def _why_missing(self, name: str) -> str:
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"


class Run(Folder):
    """The results of a run, read from its folder when they are asked for."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The figures of the run: `summary.json`."""
        with open(self._file("summary.json"), encoding="utf-8") as file:
            return dict(json.load(file))

    def tasks(self) -> Table:
        """The tasks of a bag, a row each: `tasks.csv`."""
        return Table.from_csv(self._file("tasks.csv"))

    def vms(self) -> Table:
        """The VMs of a bag, a row each: `vms.csv`."""
        return Table.from_csv(self._file("vms.csv"))

    def jobs(self) -> Table:
        """The parallel jobs, a row each: `jobs.csv`, with the columns of Batsim."""
        return Table.from_csv(self._file("jobs.csv"))

    def allocations(self) -> Table:
        """The times that parallel jobs had processors, a row each: `allocations.csv`."""
        return Table.from_csv(self._file("allocations.csv"))

    def requests(self) -> Table:
        """The VMs that customers requested, a row each: `requests.csv`."""
        return Table.from_csv(self._file("requests.csv"))

    @property
    def header(self) -> Mapping[str, Any]:
        """The first line of the log: versions, and the experiment with all that it was made of."""
        with open(self._file("events.jsonl"), encoding="utf-8") as file:
            return dict(json.loads(file.readline()))

    def events(self) -> Iterator[Mapping[str, Any]]:
        """The events of the run in order, each with the notices, decisions and effects it had.

        They are read as they are asked for. A last line that is only partly written, as a run that was
        killed leaves it, is left out.
        """
        with open(self._file("events.jsonl"), encoding="utf-8") as file:
            file.readline()
            for line in file:
                if line.endswith("\n"):
                    yield json.loads(line)

    def _why_missing(self, name: str) -> str:
        if not (self.folder / "events.jsonl").is_file():
            return ": it is not the folder of a run"
        if name == "summary.json":
            return ": the run is not over"
        work = {"tasks.csv": "bag", "vms.csv": "bag", "requests.csv": "customers"}
        return f": the run has no {work[name]}" if name in work else ": the run has no parallel jobs"


class Results(Folder):
    """The results of a comparison or a sweep, read from its folder when they are asked for."""

    def table(self) -> Table:
        """The means with their intervals, a row for each case and figure: `table.csv`."""
        return Table.from_csv(self._file("table.csv"))

    def samples(self) -> Table:
        """The figures of every run, a row for each case and seed: `samples.jsonl`."""
        with open(self._file("samples.jsonl"), encoding="utf-8") as file:
            samples = [json.loads(line) for line in file if line.endswith("\n")]
        samples.sort(key=lambda sample: (sample["case"], sample["seed"]))
        return Table.of(
            {"case": sample["case"], "seed": sample["seed"], **sample["sample"]["figures"]}
            for sample in samples
        )
