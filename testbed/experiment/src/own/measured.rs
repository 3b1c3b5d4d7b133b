//! The file in which `dormouse measure` stores its measurements of users' own programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dormouse_documents::{InputError, Place};
use dormouse_tasks::own::OwnProgram;
use dormouse_units::{Bytes, Ppm, Span, Speedup};
use serde::{Deserialize, Serialize};

use crate::files;

/// Measurements of an experiment's programs, as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MeasureFile {
    /// Version of Dormouse that made the measurements.
    pub dormouse: String,
    /// Share of a core that a vCPU of the reference speed had during the measurements.
    pub share: Ppm,
    /// Emulated seconds for one second of a core in every run that uses these measurements; `None` in files of older
    /// versions: then the run's `live.speedup` is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Speedup>,
    /// Measurements, one for each measured run.
    pub measures: Vec<ProgramMeasure>,
}

/// Measurement of one program, run once and undisturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramMeasure {
    /// Task that was measured.
    pub task: String,
    /// Command of all programs of one kind, with placeholders for the arguments in which they differ.
    pub kind: Vec<String>,
    /// Identity of the program: BLAKE3 of its command, environment and inputs, in hexadecimal.
    pub program: String,
    /// Resources that the program used, and its outputs.
    #[serde(flatten)]
    pub measured: MeasuredProgram,
}

/// Measurement of one undisturbed run of a program under the quota of the reference vCPU; times are
/// real.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MeasuredProgram {
    /// Exit status; `None` if a signal ended the program.
    pub exit_status: Option<i32>,
    /// Signal that ended the program; `None`: the program exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Elapsed real time of the program's run, in microseconds.
    pub wall_us: u64,
    /// CPU time that the program used, in microseconds.
    pub cpu_us: u64,
    /// Part of the elapsed time in which the program did not want to compute, microseconds: it slept or
    /// waited.
    pub waited_us: u64,
    /// Peak memory of the program.
    pub memory: Bytes,
    /// Final size of the program's directory.
    pub directory: Bytes,
    /// Time from the command to start the program to its first instruction, microseconds: its inputs were
    /// copied and its directory was made. It is not part of the run time.
    #[serde(default)]
    pub began_after_us: u64,
    /// Hash of each output by path: BLAKE3 in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Reason for which CRIU can't checkpoint the program; `None` if it can, or a checkpoint was
    /// not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_dumped: Option<String>,
    /// Observations of a second run, during which CRIU moved the program to another VM; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedProgram>,
}

/// Effects of a move by CRIU on a program, compared with an undisturbed run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CarriedProgram {
    /// Changes in the kernel's view of the program's processes since the restore, one sentence
    /// each; `None` if the processes were not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<String>>,
    /// Reason why the program could not be moved, or how it ended, if it ended differently from the
    /// undisturbed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Outputs that differ from the outputs of the undisturbed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_outputs: Vec<String>,
}

impl MeasuredProgram {
    /// Run time on a vCPU of the reference speed, if one second of a core counts as `pace` emulated
    /// seconds: the program's CPU time and waiting time, whatever share of a core the vCPU has.
    #[must_use]
    pub fn runtime(&self, pace: Speedup) -> Span {
        let real = Duration::from_micros(self.cpu_us.saturating_add(self.waited_us));
        pace.to_emulated(real).max(Span::from_micros(1))
    }

    /// Memory for a task of the program's kind: the peak and a quarter more, in whole MiB.
    #[must_use]
    pub const fn memory_with_room(&self) -> Bytes {
        const MIB: u64 = 1 << 20;
        let room = self.memory.get().saturating_add(self.memory.get() / 4);
        Bytes::new(room.div_ceil(MIB).saturating_mul(MIB))
    }
}

/// Identity of a program: a hash of everything that its results depend on.
#[must_use]
pub fn identity(program: &OwnProgram) -> String {
    let OwnProgram { argv, env, inputs, .. } = program;
    // Text and numbers only: this can't fail.
    let text = serde_json::to_string(&(argv, env, inputs)).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl MeasureFile {
    /// Returns the measurement of this program, or else of a program of its kind; a failed measurement is returned
    /// only if none of these succeeded.
    #[must_use]
    pub fn find(&self, kind: &[String], program: &OwnProgram) -> Option<&MeasuredProgram> {
        let own = identity(program);
        let is_own = |measure: &&ProgramMeasure| measure.program == own;
        let is_of_kind = |measure: &&ProgramMeasure| measure.kind == kind;
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
/// It can't be read, or is another kind of file.
pub(crate) fn read_measures(path: &Path) -> Result<MeasureFile, InputError> {
    let text = files::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place =
            Place { at: Some((line, column.max(1))), ..Place::whole(&path.display().to_string()) };
        let what = format!("it is not a file of measured tasks: {error}");
        InputError::new(&place, what, "make it with `dormouse measure`")
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn measured() -> MeasuredProgram {
        MeasuredProgram {
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

    /// A program that computed for a second and waited for half a second, measured on a quarter of
    /// a core.
    #[test]
    fn the_time_of_a_program_is_one_number_whatever_share_it_was_measured_at() {
        assert_eq!(measured().runtime(Speedup::ONE), Span::from_micros(1_500_000));
        assert_eq!(measured().runtime(Speedup::times_real(30)), Span::from_secs(45));
        assert_eq!(measured().memory_with_room(), Bytes::new(13 << 20));
    }

    #[test]
    fn what_was_measured_of_a_program_itself_comes_before_its_kind() {
        let program = |word: &str| OwnProgram {
            argv: vec!["./s".to_owned(), word.to_owned()],
            env: BTreeMap::new(),
            inputs: Vec::new(),
            handed: Vec::new(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(1),
            processes: 1,
            saves: dormouse_tasks::own::Saves::Criu,
            verify: None,
            deterministic: false,
        };
        let kind = vec!["./s".to_owned(), "{}".to_owned()];
        let of = |word: &str, cpu_us| ProgramMeasure {
            task: word.to_owned(),
            kind: kind.clone(),
            program: identity(&program(word)),
            measured: MeasuredProgram { cpu_us, ..measured() },
        };
        let measures =
            MeasureFile { measures: vec![of("a", 1), of("b", 2)], ..MeasureFile::default() };
        let cpu =
            |word: &str, kind: &[String]| measures.find(kind, &program(word)).map(|it| it.cpu_us);
        assert_eq!((cpu("b", &kind), cpu("c", &kind), cpu("c", &[])), (Some(2), Some(1), None));
        // Its own failed: one of its kind that did not says more.
        let failed = MeasuredProgram { exit_status: Some(2), ..measured() };
        let failed = ProgramMeasure { measured: failed, ..of("c", 0) };
        let with_failed =
            MeasureFile { measures: vec![failed.clone(), of("a", 1)], ..MeasureFile::default() };
        assert_eq!(with_failed.find(&kind, &program("c")).map(|it| it.cpu_us), Some(1));
        let failed_alone = MeasureFile { measures: vec![failed], ..MeasureFile::default() };
        let found = failed_alone.find(&kind, &program("c")).unwrap();
        assert_eq!(found.exit_status, Some(2));
        let text = serde_json::to_string(&measures).unwrap();
        assert_eq!(serde_json::from_str::<MeasureFile>(&text).unwrap(), measures);
    }
}
