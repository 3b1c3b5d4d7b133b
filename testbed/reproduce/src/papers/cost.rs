//! What the reproductions of all papers took on one host: time, processor time, memory and disk.

use std::fmt::Write as _;
use std::path::Path;

use dormouse_view::number::grouped;
use serde::{Deserialize, Serialize};

use super::markdown::MarkdownTable;
use super::origin::{HostFacts, RunOrigin, in_mebibytes, in_minutes};
use super::reference::ClaimList;
use crate::sweep::SweepError;

/// What the reproduction of one paper took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperCost {
    /// Name of the paper.
    pub paper: String,
    /// Command that repeats the reproduction.
    pub command: String,
    /// First and last seed.
    pub seeds: (u64, u64),
    /// Number of samples that were made.
    pub runs_made: usize,
    /// Number of samples that an earlier command had left in the folder.
    pub runs_reused: usize,
    /// Time that the reproduction took, in seconds.
    pub took_s: f64,
    /// Processor time that it used, in seconds; `None` if the kernel does not tell.
    pub processor_s: Option<f64>,
    /// Peak memory of the program meanwhile, in bytes; `None` if the kernel does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// Size of all files in the paper's folder, in bytes.
    pub disk_bytes: u64,
}

/// The reproductions of all papers by one command, with the program and the host that made them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReproducedPapers {
    /// Version of the program.
    pub version: String,
    /// Commit of the clone that the program is in, as in [`RunOrigin::commit`].
    pub commit: Option<String>,
    /// Host that made the reproductions.
    pub host: HostFacts,
    /// Number of threads for runs.
    pub threads: usize,
    /// Time that all reproductions took together, in seconds.
    pub took_s: f64,
    /// Time and processor time of each reproduction, in the order in which they were made.
    pub papers: Vec<PaperCost>,
}

impl PaperCost {
    /// What a finished reproduction took, whose folder has files of this size.
    #[must_use]
    pub fn new(claims: &ClaimList, origin: &RunOrigin, disk_bytes: u64) -> Self {
        Self {
            paper: claims.what.clone(),
            command: claims.command.clone(),
            seeds: claims.seeds,
            runs_made: origin.runs_made,
            runs_reused: origin.runs_reused,
            took_s: origin.took_s,
            processor_s: origin.processor_s,
            peak_memory_bytes: origin.peak_memory_bytes,
            disk_bytes,
        }
    }

    /// Row of a Markdown table of what papers take.
    #[must_use]
    pub fn to_row(&self) -> String {
        let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        format!(
            "| {} | {} | {} | {} | {} | {} |",
            self.paper,
            grouped(&(self.runs_made + self.runs_reused).to_string()),
            in_minutes(self.took_s),
            known(self.processor_s.map(in_minutes)),
            known(self.peak_memory_bytes.map(in_mebibytes)),
            in_mebibytes(self.disk_bytes),
        )
    }
}

impl ReproducedPapers {
    /// The reproductions that took this, made by the program and on the host of `origin`.
    #[must_use]
    pub fn new(papers: Vec<PaperCost>, origin: &RunOrigin, took_s: f64) -> Self {
        Self {
            version: origin.version.clone(),
            commit: origin.commit.clone(),
            host: origin.host.clone(),
            threads: origin.threads,
            took_s,
            papers,
        }
    }

    /// Reads the file `results.json` of `dormouse reproduce all`.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is another one.
    pub fn read(file: &Path) -> Result<Self, SweepError> {
        let unfit = |error: &dyn std::fmt::Display| {
            let remedy = "give the results.json that dormouse reproduce all left";
            SweepError::BadInput(format!("{}: {error}; {remedy}", file.display()))
        };
        let text = std::fs::read_to_string(file).map_err(|error| unfit(&error))?;
        serde_json::from_str(&text).map_err(|error| unfit(&error))
    }

    /// What all papers together took, in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        let used: Option<f64> = self.papers.iter().map(|paper| paper.processor_s).sum();
        let used = used.map(|used| format!(", {} of processor time", in_minutes(used)));
        let disk: u64 = self.papers.iter().map(|paper| paper.disk_bytes).sum();
        let memory = self.papers.iter().filter_map(|paper| paper.peak_memory_bytes).max();
        let memory = memory.map(|bytes| format!(", at most {} of memory", in_mebibytes(bytes)));
        let reused: usize = self.papers.iter().map(|paper| paper.runs_reused).sum();
        let mut text = format!(
            "{} on {} {threads}{}{}, {} of files",
            in_minutes(self.took_s),
            self.threads,
            used.unwrap_or_default(),
            memory.unwrap_or_default(),
            in_mebibytes(disk)
        );
        if reused > 0 {
            let _ = write!(text, "; resumed: {reused} samples were in the folder");
        }
        text
    }

    /// Table of what each paper took.
    #[must_use]
    pub fn cost_table(&self) -> MarkdownTable {
        MarkdownTable {
            head: "| paper | samples | time | processor time | memory, at most | its folder |",
            rows: self.papers.iter().map(PaperCost::to_row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::tests::list;
    use super::*;

    #[test]
    fn what_papers_took_is_a_table_and_a_sentence() {
        let origin = RunOrigin {
            version: "1.2.3".to_owned(),
            commit: None,
            host: HostFacts {
                processors: 2,
                processor: None,
                memory_bytes: None,
                kernel: "6.1".to_owned(),
            },
            threads: 1,
            runs_made: 12_000,
            runs_reused: 0,
            took_s: 75.0,
            processor_s: Some(60.0),
            peak_memory_bytes: Some(5 << 20),
        };
        let claims = list(&[("a", "holds", 5.0)]);
        let first = PaperCost::new(&claims, &origin, 3 << 20);
        let second = PaperCost { paper: "q".to_owned(), peak_memory_bytes: None, ..first.clone() };
        let all = ReproducedPapers::new(vec![first, second], &origin, 150.0);
        assert_eq!(
            all.cost_table().rows,
            [
                "| p | 12,000 | 1 min 15 s | 1 min 00 s | 5 MiB | 3 MiB |",
                "| q | 12,000 | 1 min 15 s | 1 min 00 s | unknown | 3 MiB |",
            ]
        );
        assert_eq!(
            all.in_words(),
            "2 min 30 s on 1 thread, 2 min 00 s of processor time, at most 5 MiB of memory, 6 MiB of files"
        );
        let again = PaperCost { runs_reused: 7, ..all.papers[0].clone() };
        let again = ReproducedPapers { papers: vec![again], ..all.clone() };
        assert!(again.in_words().ends_with("; resumed: 7 samples were in the folder"));

        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("results.json");
        std::fs::write(&file, serde_json::json!(all).to_string()).expect("it is written");
        assert_eq!(ReproducedPapers::read(&file).expect("it is there"), all);
        std::fs::write(&file, "{}").expect("it is written");
        let error = ReproducedPapers::read(&file).expect_err("it is another");
        assert!(error.to_string().contains("reproduce all"), "{error}");
    }
}
