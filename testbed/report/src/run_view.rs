//! One view of a run of any kind: built once from its results, and written as text for a terminal,
//! a page, a chart, tables, a summary and a trace.

mod answers;
mod bag;
mod beside;
mod dates;
mod emulation;
mod faults;
mod jobs;
mod machine;
mod outcome;
mod prices;
mod requests;
mod sections;
mod summary;
mod summary_parts;
mod tables;
mod taken;
mod vms;
mod whole;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_log::Seal;
use dormouse_view::plot::GanttChart;
use dormouse_view::{HtmlPage, Terminal, TextTone, TypedTable};
use serde_json::Value;

pub use self::outcome::RunResults;
pub use self::requests::RequestsOutcome;
use crate::output::{OutputError, StagedFolder};

/// Files that are written during a run.
const RECORDED: [&str; 4] = ["jobs.csv", "allocations.csv", "schedule.swf", "requests.csv"];

/// All presentations of a run.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Content of `summary.json`, for programs.
    pub summary: Value,
    /// Lines of the summary for people.
    pub lines: Vec<SummaryLine>,
    /// Chart of where and when everything ran.
    pub gantt: GanttChart,
    /// Page of the run.
    pub page: HtmlPage,
    /// Plan of the bag's scheduler, if the scheduler makes a plan.
    pub plan: Option<Value>,
    /// Tables that become files, by their file names without extension.
    pub tables: Vec<(&'static str, TypedTable)>,
    /// BLAKE3 hash of each file that was written during the run, by file name, if known.
    pub hashes: BTreeMap<&'static str, String>,
}

/// One line of a summary: a name, empty if the line continues the one above, and its value in
/// parts, each with a tone.
#[derive(Clone, Debug, Default)]
pub struct SummaryLine {
    /// Name of the value.
    pub name: &'static str,
    /// Parts of the value, each with its tone.
    pub parts: Vec<(TextTone, String)>,
}

impl SummaryLine {
    /// A line with one part in a neutral tone.
    fn plain(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, parts: vec![(TextTone::Plain, value.into())] }
    }

    /// A line with one part that is good or bad news.
    fn verdict(name: &'static str, is_good: bool, value: impl Into<String>) -> Self {
        Self { name, parts: vec![(TextTone::verdict(is_good), value.into())] }
    }

    /// Adds a part with this tone to the value.
    fn and(mut self, tone: TextTone, part: impl Into<String>) -> Self {
        self.parts.push((tone, part.into()));
        self
    }
}

impl RunView {
    /// Text for a terminal, without a last line break.
    #[must_use]
    pub fn to_text(&self, terminal: Terminal) -> String {
        let lines = self.lines.iter().map(|line| {
            let parts = line.parts.iter().filter(|(_, part)| !part.is_empty());
            let parts: Vec<_> = parts.map(|(tone, part)| terminal.toned(*tone, part)).collect();
            let value = parts.join("  ");
            let line = format!("  {} {value}", terminal.dim(&format!("{:<13}", line.name)));
            terminal.wrapped(&line, 16)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Writes the files into the folder and puts it in place.
    ///
    /// # Errors
    ///
    /// The system refuses; then nothing is left behind.
    pub fn write(&self, staging: StagedFolder) -> Result<PathBuf, OutputError> {
        let mut files = BTreeMap::new();
        for name in RECORDED {
            let path = staging.path().join(name);
            if path.is_file() {
                let hash = match self.hashes.get(name) {
                    Some(hash) => Ok(hash.clone()),
                    None => Seal::hash(&path),
                };
                let hash = hash.map_err(|error| OutputError::io("read", &path, error))?;
                files.insert(name.to_owned(), hash);
            }
        }
        let mut write = |name: &str, content: String| {
            files.insert(name.to_owned(), Seal::hash_of(content.as_bytes()));
            staging.write(name, &content)
        };
        for (name, table) in &self.tables {
            write(&format!("{name}.csv"), table.to_csv())?;
        }
        if let Some(plan) = &self.plan {
            write("plan.json", format!("{plan:#}\n"))?;
        }
        write("gantt.svg", self.gantt.to_svg())?;
        write("report.html", self.page.to_html())?;
        // The seal comes before the summary: a run with a summary has ended.
        let summary = format!("{:#}\n", self.summary);
        files.insert("summary.json".to_owned(), Seal::hash_of(summary.as_bytes()));
        let head = self.summary.get("log").cloned();
        if let Some(log) = head.and_then(|head| serde_json::from_value(head).ok()) {
            // Resumptions noted in an earlier seal stay.
            let before = Seal::read(staging.path()).ok().flatten();
            let resealed = before.map(|seal| seal.resealed).unwrap_or_default();
            let beside = Some(entries_beside(staging.path(), &files)?);
            staging.write(dormouse_log::SEAL, &Seal { log, files, beside, resealed }.text())?;
        }
        staging.write("summary.json", &summary)?;
        staging.commit()
    }
}

/// Names of the other entries of a run's folder, in order, without `files` and without the log and its seal.
fn entries_beside(
    folder: &Path,
    files: &BTreeMap<String, String>,
) -> Result<Vec<String>, OutputError> {
    let entries =
        fs::read_dir(folder).map_err(|error| OutputError::io("look into", folder, error))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_own = |name: &str| [dormouse_log::SEAL, dormouse_log::FILE].contains(&name);
    let mut beside: Vec<_> =
        names.filter(|name| !files.contains_key(name) && !is_own(name)).collect();
    beside.sort();
    Ok(beside)
}
