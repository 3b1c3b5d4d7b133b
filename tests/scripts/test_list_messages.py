"""scripts/list-messages on a small tree of its own: which texts it finds, and when it fails.

    python3 tests/scripts/test_list_messages.py
"""
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/list-messages"
SNAPSHOT = "tests/tests/command/snapshots/messages.txt"

# Each text that begins with "yes" is a message; those that begin with "no" are none.
SOURCE = '''\
//! "no comment counts".
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("yes: no host has {room} free; \\
             offer a larger one")]
    NoRoom { room: u64 },
}

fn read<'a>(path: &'a str) -> Result<(), LaunchError> {
    let quote = '"';
    let told = format!("no message {path}");
    let raw = text().map_err(|error| wrong(format!(r#"yes, "{path}": {error} can't be read"#)))?;
    warn!(%path, "yes, left behind");
    found.ok_or_else(|| Failure::BadInput("yes, it is missing".to_owned()))?;
    println!("no message of it");
    Err(one("yes"))
}

#[cfg(test)]
mod tests {
    fn fails() { wrong("no message of tests"); }
}
'''
LISTED = """\
# Texts of errors and warnings. Made by scripts/list-messages --write.

## worker
yes, "{path}": {error} can't be read
yes, it is missing
yes, left behind
yes: no host has {room} free; offer a larger one
"""


class ListMessages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        subprocess.run(["git", "init", "--quiet", self.tree], check=True)
        self.write("worker/src/first.rs", SOURCE)
        self.write("worker/tests/second.rs", 'fn fails() { wrong("no message of tests"); }\n')
        self.write(SNAPSHOT, LISTED)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        subprocess.run(["git", "-C", self.tree, "add", name], check=True)

    def call(self, *arguments):
        return subprocess.run([SCRIPT, "--tree", self.tree, *arguments], capture_output=True, text=True)

    def test_texts_of_errors_and_warnings_are_found_and_no_others(self):
        self.assertEqual(self.call().stdout, LISTED)
        places = self.call("--places").stdout.splitlines()
        self.assertEqual(places[0], "worker/src/first.rs:4: yes: no host has {room} free; offer a larger one")
        self.assertEqual(len(places), 4)

    def test_a_changed_text_fails_until_it_is_written(self):
        self.assertEqual(self.call("--check").returncode, 0)
        self.write("worker/src/first.rs", SOURCE.replace("left behind", "left over"))
        failed = self.call("--check")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("-yes, left behind", failed.stderr)
        self.assertIn("+yes, left over", failed.stderr)
        self.assertIn("scripts/list-messages --write", failed.stderr)
        self.assertEqual(self.call("--write").returncode, 0)
        self.assertEqual(self.call("--check").returncode, 0)
        self.assertIn("yes, left over", (self.tree / SNAPSHOT).read_text())


if __name__ == "__main__":
    unittest.main()
