"""Calls of the command, with a stand-in for it."""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Sequence
from unittest import mock

import dormouse
from dormouse import CommandError, DormouseError, ProtocolError
from dormouse.command import find_command
from dormouse.episode import Ask, Episode
from dormouse.results import StrPath

FAKE = Path(__file__).with_name("fake_dormouse.py")
PACKAGES = Path(dormouse.__file__).parents[1]
"""The folder in which the package that is tested was found."""

BEGIN = {"notice": "begin"}
READY = {"notice": "vm-ready", "vm": 0}
LAUNCH = {"decision": "launch", "vm": 0, "kind": "processors", "market": "on-demand"}


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        environment = mock.patch.dict(os.environ, {"DORMOUSE": str(FAKE)})
        environment.start()
        self.addCleanup(environment.stop)
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def arguments(self, results: dormouse.Run | dormouse.Results) -> Sequence[str]:
        """The arguments that the command was given, without the folder, which comes last."""
        words = dormouse.Run(results.folder).summary["arguments"]
        self.assertEqual(words[-2:], ["--out", str(results.folder)])
        return list(words[:-2])

    def scheduler(self, body: str) -> Path:
        """A program with a scheduler, which finds the package."""
        program = self.folder / "mine.py"
        program.write_text(
            "#!/usr/bin/env python3\n"
            f"import sys\nsys.path.insert(0, {str(PACKAGES)!r})\n"
            f"from dormouse import Scheduler\n{body}\nMine.main()\n"
        )
        program.chmod(0o755)
        return program

    def test_a_run_is_called_with_what_was_asked_for(self) -> None:
        settings: dict[str, Any] = {
            "scheduler.alpha": 0.5,
            "checkpoint.policy": "budget",
            "description": 'a "b", c',
            "cloud.fast": True,
            "name": "true",
            "workload.deadline": "45m",
            "fleet": [{"type": "small", "count": 2}],
        }
        run = dormouse.run("j60", seed=3, set=settings, arguments=["--allow-long"])
        expected = ["run", "j60", "--quiet", "--seed", "3"]
        for value in (
            "scheduler.alpha=0.5",
            "checkpoint.policy=budget",
            'description="a \\"b\\", c"',
            "cloud.fast=true",
            'name="true"',
            "workload.deadline=45m",
            'fleet=[{"type"="small","count"=2}]',
        ):
            expected += ["--set", value]
        self.assertEqual(self.arguments(run), [*expected, "--allow-long"])

    def test_a_comparison_and_a_sweep_are_called_with_what_was_asked_for(self) -> None:
        schedulers: list[StrPath] = ["hads", Path("mine.py")]
        compared = dormouse.compare(schedulers, ["j60", Path("a.toml")], seeds=4)
        self.assertEqual(
            self.arguments(compared),
            "compare --quiet --schedulers hads,./mine.py --on j60,a.toml --seeds 4".split(),
        )
        swept = dormouse.sweep("j60", {"scheduler.alpha": [0.1, 0.5], "checkpoint.on": "all"})
        self.assertEqual(
            self.arguments(swept),
            "sweep j60 --quiet --set scheduler.alpha=0.1,0.5 --set checkpoint.on=all".split(),
        )
        self.assertEqual(len(swept.table()), 0)

    def test_results_without_a_folder_go_with_their_object(self) -> None:
        run = dormouse.run("j60")
        folder = run.folder
        self.assertTrue(folder.is_dir())
        del run
        self.assertFalse(folder.exists())

    def test_results_in_a_folder_stay(self) -> None:
        folder = self.folder / "kept"
        run = dormouse.run("j60", out=folder)
        self.assertEqual(run.folder, folder)
        del run
        self.assertTrue((folder / "summary.json").is_file())

    def test_an_error_is_the_commands_own_sentence(self) -> None:
        with self.assertRaises(CommandError) as caught:
            dormouse.run("missing")
        self.assertEqual(str(caught.exception), "missing: no such file")
        self.assertEqual(caught.exception.status, 2)
        with self.assertRaisesRegex(CommandError, "dormouse ended with status 3"):
            dormouse.run("silent")

    def test_what_a_scheduler_said_in_an_earlier_run_is_not_shown(self) -> None:
        (self.folder / "scheduler-stderr.txt").write_text("earlier")
        with self.assertRaises(CommandError) as caught:
            dormouse.run("missing", out=self.folder)
        self.assertEqual(caught.exception.scheduler_said, "")

    def test_a_command_that_is_not_there_is_said(self) -> None:
        with self.assertRaisesRegex(DormouseError, "the command /nowhere/dormouse is not there"):
            dormouse.run("j60", command="/nowhere/dormouse")

    def test_the_command_of_the_wheel_is_found_where_it_was_installed(self) -> None:
        site, own = self.folder / "lib" / "site", self.folder / "bin" / "dormouse"
        information = site / "dormouse-0.1.0.dist-info"
        for folder in (information, own.parent):
            folder.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: dormouse\nVersion: 0.1.0\n")
        (information / "RECORD").write_text("dormouse/__init__.py,,\n../../bin/dormouse,,\n")
        other = self.folder / "other"
        other.mkdir()
        for program in (own, other / "dormouse"):
            program.symlink_to(FAKE)
        with mock.patch.dict(os.environ, {"PATH": str(other)}), mock.patch("sys.path", [str(site)]):
            self.assertEqual(find_command(), str(FAKE))
            del os.environ["DORMOUSE"]
            self.assertTrue(os.path.samefile(os.path.dirname(find_command()), own.parent))
            own.unlink()
            self.assertEqual(find_command(), str(other / "dormouse"))
        with mock.patch.dict(os.environ, {"PATH": str(other)}), mock.patch("sys.path", []):
            del os.environ["DORMOUSE"]
            self.assertEqual(find_command(), str(other / "dormouse"))

    def test_a_scheduler_is_played_and_its_answers_come_back(self) -> None:
        program = self.scheduler(
            "class Mine(Scheduler):\n"
            "    def begin(self, now):\n"
            "        self.launch(self.hello.machine.kind, 'on-demand')"
        )
        hello, first, second = dormouse.run("jobs", scheduler=program).summary["answers"]
        self.assertEqual(hello, {"hello": {"protocol": 1, "hears": ["begin", "rejected"]}})
        self.assertEqual((first, second), ({"decisions": [LAUNCH]}, {"decisions": []}))

    def test_a_schedulers_traceback_is_shown_below_the_sentence(self) -> None:
        program = self.scheduler("class Mine(Scheduler):\n    def begin(self, now): 1 / 0")
        with self.assertRaises(CommandError) as caught:
            dormouse.run("jobs", scheduler=program)
        sentence, *rest = str(caught.exception).splitlines()
        self.assertEqual(sentence, "the scheduler ended with status 1")
        self.assertEqual(rest[-1], "ZeroDivisionError: division by zero")
        self.assertIn("Traceback", caught.exception.scheduler_said)

    def test_an_episode_is_in_the_callers_hands(self) -> None:
        with Episode("jobs", seed=1, hears=["begin"]) as episode:
            self.assertEqual(episode.hello.machine.processors, 4)
            self.assertEqual(episode.ask(), Ask(0, [BEGIN]))
            episode.answer([LAUNCH])
            self.assertEqual(episode.ask(), Ask(5, [READY]))
            episode.answer([])
            self.assertIsNone(episode.ask())
            hello, *answers = episode.run.summary["answers"]
            folder = episode.run.folder
        self.assertEqual(hello, {"hello": {"protocol": 1, "hears": ["begin"]}})
        self.assertEqual(answers, [{"decisions": [LAUNCH]}, {"decisions": []}])
        self.assertFalse(folder.exists())
        with self.assertRaisesRegex(ProtocolError, "the run is over"):
            episode.ask()

    def test_an_episode_can_be_broken_off(self) -> None:
        episode = Episode("jobs", seed=1)
        episode.ask()
        episode.close()
        self.assertIsNotNone(episode._process.returncode)
        self.assertFalse(episode.run.folder.exists())

    def test_an_episode_that_does_not_begin_is_the_commands_error(self) -> None:
        with self.assertRaisesRegex(CommandError, "missing: no such file"):
            Episode("missing", seed=1)


if __name__ == "__main__":
    unittest.main()
