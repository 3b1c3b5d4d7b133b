//! A series of rounds, until the time is over.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::kind::Kind;
use super::programs::Programs;
use super::remains::Remains;
use super::round::{Fate, Round};
use super::standing::Standing;
use super::table::{self, Row};

/// The settings of a soak.
#[derive(Debug)]
pub struct Series {
    /// The programs that the soak runs.
    pub programs: Programs,
    /// The folder of the soak, which keeps the folders of rounds that failed.
    pub out: PathBuf,
    /// Time after which no further round begins.
    pub lasts: Duration,
    /// The seed of the first round; each further round has the next number.
    pub seed: u64,
}

/// The report of a soak that is over.
#[derive(Debug)]
pub struct Soaked {
    /// Table for people, followed by the findings.
    pub text: String,
    /// Table for programs: `kind,rounds,survived,failed,cut_short,left,cases,missing`.
    pub csv: String,
    /// Whether every kind had a round, all rounds were survived, and nothing was left behind or grew.
    pub is_well: bool,
}

impl Series {
    /// Runs rounds until the time is over or `stop` is set; calls `tell` with a line for each.
    pub fn run(&self, stop: &AtomicBool, mut tell: impl FnMut(&str)) -> Soaked {
        let begun = Instant::now();
        let before = Remains::look(&self.programs, &[]);
        let mut found = Vec::new();
        let mut rows: Vec<_> = Kind::ALL.into_iter().map(Row::new).collect();
        let standing = Standing::begin(&self.programs, self.out.join("standing"));
        let mut standing = standing.map_err(|why| found.push(format!("standing run: {why}"))).ok();
        let mut number = 0;
        let is_over = || begun.elapsed() >= self.lasts || stop.load(Ordering::Relaxed);
        while !is_over() {
            let mut had_any = false;
            for row in &mut rows {
                if is_over() {
                    break;
                }
                // One that is built meanwhile may be put there.
                row.missing = row.kind.lacks(&self.programs);
                if row.missing.is_some() {
                    continue;
                }
                had_any = true;
                let spared: Vec<_> = standing.iter().map(Standing::pid).collect();
                let (line, wrong) = self.round(row, number, (&before, &spared), stop);
                tell(&format!("{:.1} min: {line}", begun.elapsed().as_secs_f64() / 60.0));
                found.extend(wrong);
                number += 1;
                if let Some(run) = &mut standing
                    && let Err(why) = run.goes_on(number)
                {
                    found.push(format!("standing run, after round {number}: {why}"));
                    standing = None;
                }
            }
            if !had_any {
                break;
            }
        }
        let stood = standing.map(Standing::end).map(|(said, wrong)| {
            found.extend(wrong.into_iter().map(|why| format!("standing run: {why}")));
            said
        });
        found.extend(rows.iter().filter_map(Row::lacks));
        let mut text = table::printed(&rows);
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        text.push_str(&format!(
            "{number} rounds in {minutes:.1} minutes, seeds from {}\n",
            self.seed
        ));
        let stood = stood.unwrap_or_else(|| "it did not stand to the end".to_owned());
        text.push_str(&format!("standing run: {stood}\n"));
        for line in &found {
            text.push_str(&format!("FOUND {line}\n"));
        }
        Soaked { text, csv: table::csv(&rows), is_well: found.is_empty() }
    }

    /// Runs one round; returns a line about it, and its findings.
    fn round(
        &self,
        row: &mut Row,
        number: u64,
        (before, spared): (&Remains, &[u32]),
        stop: &AtomicBool,
    ) -> (String, Vec<String>) {
        let (kind, seed) = (row.kind, self.seed.wrapping_add(number));
        let began = Instant::now();
        let folder = self.out.join(format!("round-{number}"));
        let round = Round::run(kind, &self.programs, (folder, seed), stop);
        let took = began.elapsed().as_secs_f64();
        let mut left = Remains::after(&self.programs, (before, spared), &round.folder);
        // A round that failed keeps its files on purpose, and one that was cut short had no time to remove them.
        if !matches!(round.fate, Fate::Survived) {
            let own = round.folder.display().to_string();
            left.retain(|line| !line.starts_with(&own));
        }
        row.count(&round.fate, round.cases, left.len());
        let name = format!("round {number}, {} of seed {seed}", kind.name());
        let kept = round.folder.display();
        let mut wrong: Vec<_> =
            left.iter().map(|what| format!("{name}, left behind: {what}")).collect();
        let fate = match &round.fate {
            Fate::Survived => "survived".to_owned(),
            Fate::CutShort => "cut short".to_owned(),
            Fate::Failed(why) => {
                wrong.push(format!("{name} failed, see {kept}: {why}"));
                format!("FAILED, see {kept}: {why}")
            }
        };
        if wrong.is_empty() {
            // What is not removed now is removed with the soak's folder.
            let _ = fs::remove_dir_all(&round.folder);
        }
        let cases = round.cases.map_or(String::new(), |n| format!(", {n} {}", kind.cases()));
        (format!("{name}: {fate} in {took:.0} s{cases}; {} left", left.len()), wrong)
    }
}
