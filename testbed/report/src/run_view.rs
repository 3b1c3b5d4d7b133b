//! One view of a run, whatever work it has: built once from what came out, and written as text for
//! a terminal, a page, a chart, tables, a summary, a trace.

mod bag;
mod beginnings;
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
mod times;
mod vms;
mod whole;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_log::Seal;
use dormouse_view::plot::Gantt;
use dormouse_view::{Page, Table, Terminal, Tone};
use serde_json::Value;

pub use self::outcome::Results;
pub use self::requests::RequestsOutcome;
use crate::output::{OutputError, Staging};

/// Files that are written while a run goes.
const RECORDED: [&str; 4] = ["jobs.csv", "allocations.csv", "schedule.swf", "requests.csv"];

/// A run as it is shown.
#[derive(Clone, Debug)]
pub struct RunView {
    /// What came out, for programs.
    pub summary: Value,
    /// What came out, for people, a line each.
    pub lines: Vec<Line>,
    /// When and where everything ran.
    pub gantt: Gantt,
    /// The page of the run.
    pub page: Page,
    /// What the scheduler of a bag had planned, if it plans.
    pub plan: Option<Value>,
    /// The tables that are files, by the name of their file without its end.
    pub tables: Vec<(&'static str, Table)>,
    /// The BLAKE3 of each file that was written while the run went, by its name, as far as it is known.
    pub hashes: BTreeMap<&'static str, String>,
}

/// A line of a summary: a name, empty where it goes on with the line above, and its value in parts
/// of their own tone.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What it is.
    pub name: &'static str,
    /// What it says.
    pub parts: Vec<(Tone, String)>,
}

impl Line {
    /// A line of one part that is neither good nor bad news.
    fn plain(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, parts: vec![(Tone::Plain, value.into())] }
    }

    /// A line that is good or bad news.
    fn verdict(name: &'static str, is_good: bool, value: impl Into<String>) -> Self {
        Self { name, parts: vec![(Tone::verdict(is_good), value.into())] }
    }

    /// The same with a further part.
    fn and(mut self, tone: Tone, part: impl Into<String>) -> Self {
        self.parts.push((tone, part.into()));
        self
    }
}

impl RunView {
    /// For a terminal, without a last line break.
    #[must_use]
    pub fn to_text(&self, terminal: Terminal) -> String {
        let lines = self.lines.iter().map(|line| {
            let parts = line.parts.iter().filter(|(_, part)| !part.is_empty());
            let parts: Vec<_> = parts.map(|(tone, part)| terminal.toned(*tone, part)).collect();
            let value = parts.join("  ");
            format!("  {} {value}", terminal.dim(&format!("{:<13}", line.name)))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Writes its files into the folder, and puts that in place; nothing is left if the system refuses.
    pub fn write(&self, staging: Staging) -> Result<PathBuf, OutputError> {
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
        // The seal before the summary: a run that has one has come to its end.
        let summary = format!("{:#}\n", self.summary);
        files.insert("summary.json".to_owned(), Seal::hash_of(summary.as_bytes()));
        let head = self.summary.get("log").cloned();
        if let Some(log) = head.and_then(|head| serde_json::from_value(head).ok()) {
            // What the seal of a run that was gone on with says of that stays.
            let before = Seal::read(staging.path()).ok().flatten();
            let resealed = before.map(|seal| seal.resealed).unwrap_or_default();
            let beside = Some(entries_beside(staging.path(), &files)?);
            staging.write(dormouse_log::SEAL, &Seal { log, files, beside, resealed }.text())?;
        }
        staging.write("summary.json", &summary)?;
        staging.commit()
    }
}

/// What a folder holds that is neither one of these files nor the log and its seal, in order.
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
