//! Limits on the data that a task brings along and leaves behind. Workers, coordinators and experiment files all use
//! these limits, so that none of them accepts more than the others can handle.

use dormouse_units::{Bytes, one_line};

/// Greatest number of arguments of a user's program or of its check, and of its environment variables.
const OWN_WORDS: usize = 4096;
/// Greatest total size of a program's arguments and environment variables in bytes; the kernel's limit is two million.
const OWN_BYTES: usize = 1 << 20;
/// Greatest number of input files, and of output patterns, of a user's program.
pub const OWN_FILES: usize = 10_000;

/// Greatest number of files and directories in a task's directory, and of file contents in a checkpoint of the directory.
pub const DIRECTORY_ENTRIES: usize = 65_536;
/// Longest path of an input or output file, in bytes.
pub const PATH_BYTES: usize = 1024;
/// Greatest number of output files that are kept of a task.
pub const LEFT_FILES: usize = 4096;
/// Greatest total length of the paths of kept output files in bytes, so that they fit into one message and one log
/// line.
pub const LEFT_PATHS_BYTES: usize = 1 << 20;
/// Greatest number of messages, for a task, about output files that were not kept.
pub const NOT_KEPT: usize = 16;
/// Longest message about outputs that were not kept, in bytes.
pub const NOT_KEPT_BYTES: usize = 400;
/// Longest part of a file name in a message about outputs that were not kept, in bytes.
const SHOWN_NAME_BYTES: usize = 160;

/// Greatest number of messages about properties of a program that a restore changed.
pub const CHANGES: usize = 25;
/// Longest reason in a worker's report, in bytes.
pub const WHY_BYTES: usize = 4 << 10;
/// Longest result of a task, in bytes.
pub const RESULT_BYTES: usize = 64 << 10;

/// Bytes of a process image beyond the process's memory: its program files, and CRIU's record of
/// system state.
const BESIDE_MEMORY: u64 = 256 << 20;
/// Greatest size in bytes of the checkpoint of a task whose memory need is unknown.
const LARGEST_UNKNOWN: u64 = 16 << 30;

/// Returns the greatest size of a checkpoint of a task with `processes` processes, `memory` (zero if unknown), and a directory of
/// at most `directory` bytes. It is twice the memory, since shared pages are in the image of each process, plus an overhead per
/// process, plus the directory.
#[must_use]
pub const fn largest_checkpoint(memory: Bytes, processes: u64, directory: Bytes) -> Bytes {
    let processes = if processes == 0 { 1 } else { processes };
    let images = match memory.get() {
        0 => LARGEST_UNKNOWN,
        memory => memory.saturating_mul(2).saturating_add(BESIDE_MEMORY.saturating_mul(processes)),
    };
    Bytes::new(images.saturating_add(directory.get()))
}

/// Sizes of a user's program that are limited: its words, variables and files.
#[derive(Clone, Copy, Debug)]
pub struct ProgramWords<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// The program that checks the answer, and its arguments.
    pub verify: &'a [String],
    /// The patterns of output files.
    pub outputs: &'a [String],
    /// Number of environment variables.
    pub variables: usize,
    /// Total size of the environment variables with their names, in bytes.
    pub variables_bytes: usize,
    /// Number of input files.
    pub inputs: usize,
    /// The longest path of an input file, in bytes.
    pub longest_path: usize,
}

impl ProgramWords<'_> {
    /// Checks the program against the limits.
    ///
    /// # Errors
    ///
    /// The limit that the program exceeds.
    pub fn check(self) -> Result<(), String> {
        let bytes = |words: &[String]| words.iter().map(String::len).sum::<usize>();
        let words = bytes(self.argv) + bytes(self.verify) + bytes(self.outputs);
        let all = words.saturating_add(self.variables_bytes);
        for (found, most, what) in [
            (self.argv.len().max(self.verify.len()), OWN_WORDS, "arguments of a program"),
            (self.variables, OWN_WORDS, "variables of an environment"),
            (self.inputs, OWN_FILES, "inputs of a program"),
            (self.outputs.len(), OWN_FILES, "outputs of a program"),
            (self.longest_path, PATH_BYTES, "bytes of an input's path"),
            (all, OWN_BYTES, "bytes of a program's arguments and environment"),
        ] {
            if found > most {
                return Err(format!("{found} {what}; a worker accepts at most {most}"));
            }
        }
        Ok(())
    }
}

/// Checks the path of an output file: no longer than [`PATH_BYTES`], and without characters that
/// act on a terminal or page that shows it.
///
/// # Errors
///
/// The reason why the file is not kept.
pub fn check_left_path(path: &str) -> Result<(), String> {
    if path.len() > PATH_BYTES {
        return Err(format!("its path has {} bytes; the limit is {PATH_BYTES}", path.len()));
    }
    if one_line(path, PATH_BYTES) != path {
        return Err("its name has control characters".to_owned());
    }
    Ok(())
}

/// Returns the message about an output file that is not kept: its escaped and shortened name, and the reason.
#[must_use]
pub fn not_kept(path: &str, why: &str) -> String {
    one_line(&format!("{}: {why}", one_line(path, SHOWN_NAME_BYTES)), NOT_KEPT_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_as_many_words_and_files_as_a_worker_takes() {
        let some = ["a".to_owned()];
        let fine = ProgramWords {
            argv: &some,
            verify: &some,
            outputs: &some,
            variables: OWN_WORDS,
            variables_bytes: OWN_BYTES - 3,
            inputs: OWN_FILES,
            longest_path: PATH_BYTES,
        };
        assert_eq!(fine.check(), Ok(()));
        let many = vec!["a".to_owned(); OWN_FILES + 1];
        for (beyond, says) in [
            (ProgramWords { argv: &many, ..fine }, "10001 arguments"),
            (ProgramWords { verify: &many, ..fine }, "10001 arguments"),
            (ProgramWords { outputs: &many, ..fine }, "10001 outputs"),
            (ProgramWords { variables: OWN_WORDS + 1, ..fine }, "4097 variables"),
            (ProgramWords { variables_bytes: OWN_BYTES, ..fine }, "1048579 bytes"),
            (ProgramWords { inputs: OWN_FILES + 1, ..fine }, "10001 inputs"),
            (ProgramWords { longest_path: 1025, ..fine }, "1025 bytes of an input's path"),
        ] {
            assert!(beyond.check().is_err_and(|why| why.starts_with(says)), "{says}");
        }
    }

    #[test]
    fn a_path_is_kept_that_can_be_shown_as_it_is() {
        for fine in ["outputs/a", "outputs/a b/ä.csv", &"x".repeat(PATH_BYTES)] {
            assert_eq!(check_left_path(fine), Ok(()), "{fine}");
        }
        let long = "x".repeat(PATH_BYTES + 1);
        assert!(check_left_path(&long).is_err_and(|why| why.contains("1025 bytes")));
        for acts in ["a\nb", "a\u{1b}[2J", "a\rb", "a\tb", "a\u{202e}b", "a\u{9b}31m"] {
            let said = check_left_path(acts);
            assert!(said.is_err_and(|why| why.contains("control characters")), "{acts:?}");
            let said = not_kept(acts, "it is a link");
            assert!(!said.contains(char::is_control) && !said.contains('\u{202e}'), "{said:?}");
            assert!(said.ends_with(": it is a link"), "{said}");
        }
        let said = not_kept(&"\u{1b}".repeat(4000), "it is a link");
        assert!(said.len() <= NOT_KEPT_BYTES && said.ends_with("...: it is a link"), "{said}");
        assert!(not_kept("a", &"y".repeat(4000)).len() <= NOT_KEPT_BYTES);
    }

    #[test]
    fn a_checkpoint_has_what_its_processes_and_its_directory_have() {
        let largest = |memory, processes, directory| {
            largest_checkpoint(Bytes::new(memory), processes, Bytes::new(directory)).get()
        };
        assert_eq!(largest(0, 1, 0), 16 << 30);
        assert_eq!(largest(0, 1, 50), (16 << 30) + 50);
        assert_eq!(largest(1 << 20, 0, 0), 258 << 20);
        assert_eq!(largest(1 << 20, 1, 1 << 20), 259 << 20);
        assert_eq!(largest(1 << 20, 4, 0), 1_026 << 20);
        assert_eq!(largest(u64::MAX, 256, 1), u64::MAX);
    }
}
