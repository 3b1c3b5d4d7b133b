"""scripts/count-words on a small tree of its own: what it counts, and when it fails.

    python3 tests/scripts/test_count_words.py
"""
import datetime
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/count-words"

# Six lines of code, three types: two share their name and are of one word. Comments and tests don't count.
FIRST = """\
//! A file.

/// struct Comment
pub struct Vm {
    id: u32,
}
pub(crate) enum LaunchRequest {}

#[cfg(test)]
mod tests {
    struct Fixture;
}
"""
SECOND = """\
trait Vm {}
fn launch() {}
"""
RECORD = """\
# A comment.
2026-11-01 lines 6
2026-11-01 types-sharing-a-name 2
2026-11-01 types-of-one-word 2
"""


class CountWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        subprocess.run(["git", "init", "--quiet", self.tree], check=True)
        self.write("worker/src/first.rs", FIRST)
        self.write("worker/src/second.rs", SECOND)
        self.write("worker/tests/third.rs", "struct Vm;\nstruct Fixture;\n")
        self.write("scripts/words.record", RECORD)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        subprocess.run(["git", "-C", self.tree, "add", name], check=True)

    def call(self, *arguments):
        return subprocess.run([SCRIPT, "--tree", self.tree, *arguments], capture_output=True, text=True)

    def refuses(self, *arguments, status, saying):
        answer = self.call(*arguments)
        self.assertEqual(answer.returncode, status, answer)
        self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)
        self.assertIn(saying, answer.stderr)

    def passes(self, *arguments):
        answer = self.call(*arguments)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return answer.stdout

    def record(self):
        return (self.tree / "scripts/words.record").read_text()

    def test_counts(self):
        self.assertEqual(
            self.passes(),
            "lines of product code 6\n"
            "types 3: share their name 2 (67 %), of one word 67 %\n"
            "functions 1: of one word 100 %\n",
        )
        self.assertEqual(self.passes("--shared"), "2 Vm worker/src/first.rs:4 worker/src/second.rs:1\n")

    def test_as_recorded_passes(self):
        self.passes("--check")

    def test_another_line_fails(self):
        self.write("worker/src/second.rs", SECOND + "fn stop_all() {}\n")
        self.refuses("--check", status=1, saying="lines: 7, 1 more than")

    def test_one_line_in_five_hundred_passes(self):
        self.write("scripts/words.record", RECORD + "2026-11-02 lines +994 worker: as many as a file has\n")
        self.write("worker/src/second.rs", SECOND + "fn stop_all() {}\n" * 996)
        self.passes("--check")
        self.write("worker/src/second.rs", SECOND + "fn stop_all() {}\n" * 997)
        self.refuses("--check", status=1, saying="lines: 1003, 3 more than")

    def test_a_type_that_shares_its_name_fails(self):
        self.write("worker/src/second.rs", "trait Vm {}\nstruct LaunchRequest;\n")
        self.refuses("--check", status=1, saying="types-sharing-a-name: 4, 2 more than")

    def test_a_type_of_one_word_fails(self):
        self.write("worker/src/second.rs", "trait Vm {}\nstruct Door;\n")
        self.refuses("--check", status=1, saying="types-of-one-word: 3, 1 more than")

    def test_a_reason_raises_a_limit(self):
        self.write("worker/src/second.rs", SECOND + "fn stop_all() {}\n")
        self.write("scripts/words.record", RECORD + "2026-11-02 lines +1 worker: all are stopped\n")
        self.passes("--check")
        self.write("worker/src/second.rs", SECOND + "fn stop_all() {}\nfn stop_none() {}\n")
        self.refuses("--check", status=1, saying="lines: 8, 1 more than")

    def test_no_reason_raises_none(self):
        self.write("scripts/words.record", RECORD + "2026-11-02 lines +1 more\n")
        self.refuses("--check", status=2, saying="scripts/words.record:5: what raises a limit says why")

    def test_a_limit_far_above_its_figure_fails_until_it_is_lowered(self):
        self.write("worker/src/second.rs", "trait Vm {}\n")
        self.refuses("--check", status=1, saying="lines: 5, far below the limit in scripts/words.record, 6")
        today = datetime.date.today().isoformat()
        self.assertTrue(self.passes("--record").endswith(f"\n{today} lines -1\n"))
        self.assertEqual(self.record(), RECORD + f"{today} lines -1\n")
        self.passes("--check")
        self.write("worker/src/second.rs", SECOND)
        self.refuses("--check", status=1, saying="lines: 6, 1 more than")

    def test_the_record_of_a_rise_needs_its_reason(self):
        self.write("worker/src/second.rs", SECOND + "struct Door;\n")
        self.refuses("--record", status=2, saying="say why it rises")
        self.assertEqual(self.record(), RECORD)
        self.passes("--record", "worker: it needs a door")
        today = datetime.date.today().isoformat()
        why = "worker: it needs a door"
        self.assertEqual(self.record(), RECORD + f"{today} lines +1 {why}\n{today} types-of-one-word +1 {why}\n")
        self.passes("--check")

    def test_the_first_entry_is_the_only_one_without_a_sign(self):
        self.write("scripts/words.record", RECORD + "2026-11-02 lines 7\n")
        self.refuses("--check", status=2, saying="scripts/words.record:5: lines has a limit already")

    def test_a_record_without_a_figure_is_refused(self):
        self.write("scripts/words.record", RECORD.replace("types-of-one-word", "types-of-two-words"))
        self.refuses("--check", status=2, saying="what is limited: lines, types-sharing-a-name, types-of-one-word")
        (self.tree / "scripts/words.record").unlink()
        self.refuses("--check", status=2, saying="scripts/words.record can't be read")

    def test_branches_that_lower_limits_merge(self):
        self.write("worker/src/second.rs", "")
        self.write(".gitattributes", (SCRIPT.parents[1] / ".gitattributes").read_text())
        git = ["git", "-C", self.tree, "-c", "user.name=a", "-c", "user.email=a@example.org"]

        def commit():
            subprocess.run([*git, "add", "--all"], check=True)
            subprocess.run([*git, "commit", "--quiet", "--message", "a change"], check=True)

        self.passes("--record")
        self.write("worker/src/third.rs", "fn third_one() {}\n")
        self.write("worker/src/fourth.rs", "fn fourth_one() {}\nfn fourth_two() {}\n")
        self.passes("--record", "worker: three more functions")
        commit()
        subprocess.run([*git, "branch", "other"], check=True)
        self.write("worker/src/third.rs", "")
        self.passes("--record")
        commit()
        subprocess.run([*git, "switch", "--quiet", "other"], check=True)
        self.write("worker/src/fourth.rs", "")
        self.passes("--record")
        commit()
        subprocess.run([*git, "merge", "--quiet", "--no-edit", "-"], check=True, stdout=subprocess.DEVNULL)
        self.passes("--check")
        self.assertIn("the record says so already", self.passes("--record"))


unittest.main()
