//! What `dormouse measure` found out of programs of the user's own, as a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dormouse_documents::{InputError, Place};
use dormouse_tasks::own::OwnProgram;
use dormouse_units::{Bytes, Ppm, Span, Speedup};
use serde::{Deserialize, Serialize};

use crate::files;

/// What was measured of an experiment's programs: the content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Measures {
    /// The version of Dormouse that measured.
    pub dormouse: String,
    /// What of a core a vCPU of the reference speed was meanwhile.
    pub share: Ppm,
    /// Emulated seconds for which a second of a core counts, in every run that reads this; `None`: a version
    /// measured that did not say, and it is the run's `live.speedup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Speedup>,
    /// What was measured, a run each.
    pub measures: Vec<Measure>,
}

/// One program, run once and undisturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Measure {
    /// The task that it was measured as.
    pub task: String,
    /// The command of its kind, with its braces.
    pub kind: Vec<String>,
    /// What it is, by its command, environment and inputs: BLAKE3 in hexadecimal.
    pub program: String,
    /// What it took and left.
    #[serde(flatten)]
    pub measured: Measured,
}

/// What a program took and left that ran once, undisturbed, under the quota of the reference vCPU, in
/// real time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Measured {
    /// The status that it returned; `None`: a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The time that it took, microseconds.
    pub wall_us: u64,
    /// CPU time that it had, microseconds.
    pub cpu_us: u64,
    /// What of that time it did not want to compute in, microseconds: it slept, or waited for something.
    pub waited_us: u64,
    /// The most memory that it had at once.
    pub memory: Bytes,
    /// What its directory held in the end.
    pub directory: Bytes,
    /// The time from the command to start it to its first instruction, microseconds: its inputs came, and its
    /// directory was made. It is no part of its run time.
    #[serde(default)]
    pub began_after_us: u64,
    /// The outputs by their paths: BLAKE3 in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Why CRIU can't checkpoint it; `None`: it can, or nobody tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_dumped: Option<String>,
    /// What was seen of a second run, in whose middle CRIU has carried the program to another VM; `None`: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedProgram>,
}

/// What a move by CRIU changes of a program, beside a run in which nothing disturbed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CarriedProgram {
    /// What the kernel says of its processes otherwise since they were restored, a sentence each; `None`: they were not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<String>>,
    /// Why it could not be carried, or how it ended, where it did not end as it did undisturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The outputs that are others than those of the undisturbed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_outputs: Vec<String>,
}

impl Measured {
    /// The time for which it runs on a vCPU of the reference speed, where a second of a core counts for so much:
    /// the CPU time that it had and what it waited, whatever share of a core that vCPU is.
    #[must_use]
    pub fn runtime(&self, pace: Speedup) -> Span {
        let real = Duration::from_micros(self.cpu_us.saturating_add(self.waited_us));
        pace.emulated(real).max(Span::from_micros(1))
    }

    /// The memory that a task of its kind should have: what it had and a quarter more, in whole MiB.
    #[must_use]
    pub const fn memory_with_room(&self) -> Bytes {
        const MIB: u64 = 1 << 20;
        let room = self.memory.get().saturating_add(self.memory.get() / 4);
        Bytes::new(room.div_ceil(MIB).saturating_mul(MIB))
    }
}

/// What a program is, by all that what it computes depends on.
#[must_use]
pub fn identity(program: &OwnProgram) -> String {
    let OwnProgram { argv, env, inputs, .. } = program;
    // Text and numbers: this can't fail.
    let text = serde_json::to_string(&(argv, env, inputs)).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl Measures {
    /// What was measured of this program, or else of one of its kind; what failed only where nothing of its kind
    /// did well.
    #[must_use]
    pub fn find(&self, kind: &[String], program: &OwnProgram) -> Option<&Measured> {
        let own = identity(program);
        let is_own = |measure: &&Measure| measure.program == own;
        let is_of_kind = |measure: &&Measure| measure.kind == kind;
        let did_well = || self.measures.iter().filter(|it| it.measured.exit_status == Some(0));
        let best = did_well().find(is_own).or_else(|| did_well().find(is_of_kind));
        let any = || self.measures.iter().find(|it| is_own(it) || is_of_kind(it));
        best.or_else(any).map(|found| &found.measured)
    }
}

/// Reads a file that `dormouse measure` wrote.
///
/// # Errors
///
/// It can't be read, or is another file.
pub(crate) fn read_measures(path: &Path) -> Result<Measures, InputError> {
    let text = files::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place =
            Place { at: Some((line, column.max(1))), ..Place::whole(&path.display().to_string()) };
        let what = format!("it is nothing that was measured: {error}");
        InputError::new(&place, what, "make it with `dormouse measure`")
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn measured() -> Measured {
        Measured {
            exit_status: Some(0),
            signal: None,
            wall_us: 4_500_000,
            cpu_us: 1_000_000,
            waited_us: 500_000,
            memory: Bytes::new(10 << 20),
            directory: Bytes::ZERO,
            began_after_us: 0,
            outputs: BTreeMap::new(),
            not_dumped: None,
            carried: None,
        }
    }

    /// It computed for a second and waited for half of one, on a quarter of a core.
    #[test]
    fn the_time_of_a_program_is_one_number_whatever_share_it_was_measured_at() {
        assert_eq!(measured().runtime(Speedup::ONE), Span::from_micros(1_500_000));
        assert_eq!(measured().runtime(Speedup::times(30)), Span::from_secs(45));
        assert_eq!(measured().memory_with_room(), Bytes::new(13 << 20));
    }

    #[test]
    fn what_was_measured_of_a_program_itself_comes_before_its_kind() {
        let program = |word: &str| OwnProgram {
            argv: vec!["./s".to_owned(), word.to_owned()],
            env: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(1),
            processes: 1,
            saves: dormouse_tasks::own::Saves::Criu,
            verify: None,
            deterministic: false,
        };
        let kind = vec!["./s".to_owned(), "{}".to_owned()];
        let of = |word: &str, cpu_us| Measure {
            task: word.to_owned(),
            kind: kind.clone(),
            program: identity(&program(word)),
            measured: Measured { cpu_us, ..measured() },
        };
        let measures = Measures { measures: vec![of("a", 1), of("b", 2)], ..Measures::default() };
        let cpu =
            |word: &str, kind: &[String]| measures.find(kind, &program(word)).map(|it| it.cpu_us);
        assert_eq!((cpu("b", &kind), cpu("c", &kind), cpu("c", &[])), (Some(2), Some(1), None));
        // Its own failed: one of its kind that did not says more.
        let failed = Measured { exit_status: Some(2), ..measured() };
        let failed = Measure { measured: failed, ..of("c", 0) };
        let with_failed =
            Measures { measures: vec![failed.clone(), of("a", 1)], ..Measures::default() };
        assert_eq!(with_failed.find(&kind, &program("c")).map(|it| it.cpu_us), Some(1));
        let failed_alone = Measures { measures: vec![failed], ..Measures::default() };
        let found = failed_alone.find(&kind, &program("c")).unwrap();
        assert_eq!(found.exit_status, Some(2));
        let text = serde_json::to_string(&measures).unwrap();
        assert_eq!(serde_json::from_str::<Measures>(&text).unwrap(), measures);
    }
}
