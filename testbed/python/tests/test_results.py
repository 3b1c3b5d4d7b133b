"""Readers of what commands leave."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest import mock

from dormouse import DormouseError, MissingPackage, Results, Run, Table


class Readers(unittest.TestCase):
    def setUp(self) -> None:
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def test_a_column_has_one_type(self) -> None:
        self.write("tasks.csv", "task,name,vm,finished_s,share\n0,7,1,775,1\n1,8,,12,0.5\n")
        tasks = Run(self.folder).tasks()
        self.assertEqual(
            [dict(task) for task in tasks],
            [
                {"task": 0, "name": "7", "vm": 1, "finished_s": 775.0, "share": 1.0},
                {"task": 1, "name": "8", "vm": None, "finished_s": 12.0, "share": 0.5},
            ],
        )
        self.assertEqual([type(task["finished_s"]) for task in tasks], [float, float])
        self.assertEqual([type(task["share"]) for task in tasks], [float, float])

    def test_a_table_is_a_sequence_of_records(self) -> None:
        table = Table({"a": [1, 2, 3]})
        self.assertEqual((len(table), table[-1], table[1:]), (3, {"a": 3}, [{"a": 2}, {"a": 3}]))
        with self.assertRaises(IndexError):
            table[3]

    def test_a_table_without_rows_keeps_its_columns(self) -> None:
        self.write("vms.csv", "vm,type\n")
        vms = Run(self.folder).vms()
        self.assertEqual((len(vms), list(vms.columns)), (0, ["vm", "type"]))

    def test_events_come_without_the_header_and_a_torn_end(self) -> None:
        self.write("events.jsonl", '{"format":2}\n{"seq":0}\n{"seq":1}\n{"seq":')
        run = Run(self.folder)
        self.assertEqual(run.header, {"format": 2})
        self.assertEqual([event["seq"] for event in run.events()], [0, 1])

    def test_samples_have_their_figures_in_order(self) -> None:
        sample = '{"case":"%s","seed":%d,"sample":{"figures":{"cost_usd":%s}}}\n'
        lines = sample % ("b", 1, 3.0), sample % ("a", 2, 2.0), sample % ("a", 1, 1.0)
        self.write("samples.jsonl", "".join(lines))
        samples = Results(self.folder).samples()
        self.assertEqual(samples.columns["cost_usd"], [1.0, 2.0, 3.0])
        self.assertEqual(samples[0], {"case": "a", "seed": 1, "cost_usd": 1.0})

    def test_what_is_missing_is_said_with_the_reason(self) -> None:
        run = Run(self.folder)
        with self.assertRaisesRegex(DormouseError, "has no tasks.csv: it is not the folder of a run"):
            run.tasks()
        self.write("events.jsonl", "{}\n")
        with self.assertRaisesRegex(DormouseError, "has no tasks.csv: the run has no bag"):
            run.tasks()
        with self.assertRaisesRegex(DormouseError, "has no jobs.csv: the run has no parallel jobs"):
            run.jobs()
        with self.assertRaisesRegex(DormouseError, "has no summary.json: the run is not over"):
            run.summary
        self.write("summary.json", json.dumps({"cost_usd": 0.5}))
        self.assertEqual(run.summary["cost_usd"], 0.5)


class Frames(unittest.TestCase):
    def test_each_package_is_given_the_columns(self) -> None:
        makes = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
        for (package, makes_frame), method in zip(makes.items(), ("pandas", "polars", "arrow")):
            fake: Any = ModuleType(package)
            setattr(fake, makes_frame, lambda columns: ("frame", columns))
            with self.subTest(package), mock.patch.dict(sys.modules, {package: fake}):
                frame = getattr(Table({"a": [1]}), f"to_{method}")()
                self.assertEqual(frame, ("frame", {"a": [1]}))

    def test_a_package_that_is_not_there_is_named(self) -> None:
        absent: Any = {"pandas": None, "polars": None, "pyarrow": None, "gymnasium": None}
        with mock.patch.dict(sys.modules, absent):
            for method, package in ("pandas", "pandas"), ("polars", "polars"), ("arrow", "pyarrow"):
                sentence = f"to_{method} needs the package {package}: pip install {package}"
                with self.subTest(method), self.assertRaisesRegex(MissingPackage, sentence):
                    getattr(Table({"a": [1]}), f"to_{method}")()
            sys.modules.pop("dormouse.gym", None)
            with self.assertRaisesRegex(MissingPackage, r"pip install 'dormouse\[gym\]'"):
                import dormouse.gym  # noqa: F401


if __name__ == "__main__":
    unittest.main()
