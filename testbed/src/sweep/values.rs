//! `dormouse sweep`: one experiment over a list of values of one key.

use std::fmt::Write as _;

use super::{
    Cell, Column, Dots, Frame, JobsCell, Mark, Metric, Plot, Reported, Seeded, SweepError, dots,
};
use crate::experiment::{Override, Source, open};
use dormouse_workload::Estimate;

/// The key whose values are not run under seeds, but are seeds.
const SEED: &str = "seed";

/// An experiment over the values of one key.
#[derive(Clone, Debug)]
pub struct Sweep<C> {
    /// The key, such as `scheduler.alpha`.
    pub key: String,
    /// The values, in the order given.
    pub values: Vec<String>,
    /// A cell per value.
    pub cells: Vec<C>,
}

/// A sweep of either kind.
#[derive(Clone, Debug)]
pub enum AnySweep {
    /// Of bags of tasks.
    Bags(Sweep<Cell>),
    /// Of parallel jobs.
    Jobs(Sweep<JobsCell>),
}

/// A sweep and what came out.
#[derive(Clone, Copy, Debug)]
pub struct Swept<'a, C: Seeded> {
    /// The sweep that was run: cells and values.
    pub sweep: &'a Sweep<C>,
    /// The samples of each cell.
    pub samples: &'a [Vec<C::Sample>],
}

/// The cells of a sweep of `experiment`: of the settings one has to name a list of values. A list
/// of seeds is run under these; else `seeds` says how many, if anybody does.
///
/// # Errors
///
/// No setting or more than one is a list, seeds are said twice, or an experiment is wrong.
pub fn sweep_cells(
    experiment: &str,
    set: &[String],
    seeds: Option<u64>,
) -> Result<AnySweep, SweepError> {
    let mut list = None;
    let mut fixed = Vec::new();
    for text in set {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, values) = (key.trim(), split(value));
        if values.len() < 2 {
            if key == SEED {
                let what = "a sweep runs every value under several seeds; leave it out and write \
                            --seeds N, or sweep a list such as seed=1,2,3";
                return Err(SweepError::BadInput(format!("--set {text}: {what}")));
            }
            fixed.push(Override::set(text)?);
        } else if list.replace((key.to_owned(), values)).is_some() {
            let what = "two settings have lists of values; sweep one key at a time";
            return Err(SweepError::BadInput(format!("--set {text}: {what}")));
        }
    }
    let Some((key, values)) = list else {
        let what = "no setting has a list of values; write one like scheduler.alpha=0.1,0.3,0.5";
        return Err(SweepError::BadInput(format!("--set: {what}")));
    };
    if let (SEED, Some(n)) = (key.as_str(), seeds) {
        let what = "the values of seed are the seeds; leave it out";
        return Err(SweepError::BadInput(format!("--seeds {n}: {what}")));
    }
    let (mut bags, mut jobs) = (Vec::new(), Vec::new());
    for value in &values {
        let setting = format!("{key}={value}");
        let mut overrides = fixed.clone();
        overrides.push(Override::set(&setting)?);
        let source = Source { experiment: Some(experiment), overrides, ..Source::default() };
        let loaded = open(&source)?;
        match loaded.experiment.scheduler {
            Some(_) => bags.push(Cell::of(&setting, loaded)?),
            None => jobs.push(
                JobsCell::of(&setting, loaded.experiment)
                    .map_err(|error| SweepError::BadInput(error.to_string()))?,
            ),
        }
    }
    let own = key == SEED;
    match (bags.is_empty(), jobs.is_empty()) {
        (_, true) => {
            let cells = bags.into_iter().map(|cell| if own { cell.under_its_seed() } else { cell });
            Ok(AnySweep::Bags(Sweep { cells: cells.collect(), key, values }))
        }
        (true, false) => {
            let cells = jobs.into_iter().map(|cell| if own { cell.under_its_seed() } else { cell });
            Ok(AnySweep::Jobs(Sweep { cells: cells.collect(), key, values }))
        }
        (false, false) => {
            let what = "some of the values are of bags of tasks, others of parallel jobs; sweep \
                        one kind at a time";
            Err(SweepError::BadInput(format!("--set {key}: {what}")))
        }
    }
}

/// At the commas outside brackets and quotes.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0_i32, false);
    for c in list.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 && !quoted {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.into_iter().map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect()
}

impl<C: Seeded> Swept<'_, C>
where
    C::Sample: Reported,
{
    fn rows(&self) -> impl Iterator<Item = (&str, &[C::Sample])> {
        self.sweep.values.iter().map(String::as_str).zip(self.samples.iter().map(Vec::as_slice))
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{:>24}", self.sweep.key);
        for Metric { column, .. } in C::Sample::METRICS {
            let _ = match column {
                Some(Column::Mean { heading, width, .. }) => write!(text, "  {heading:>width$}"),
                Some(Column::Count { heading }) => write!(text, "  {heading:>8}"),
                None => Ok(()),
            };
        }
        for (value, samples) in self.rows() {
            let _ = write!(text, "\n{value:>24}");
            for Metric { of, column, .. } in C::Sample::METRICS {
                let _ = match *column {
                    Some(Column::Mean { width, digits, .. }) => {
                        write!(text, "  {:>width$}", with_ci(estimate(samples, *of), digits))
                    }
                    Some(Column::Count { .. }) => {
                        let count = samples.iter().filter(|s| of(s) == Some(1.0)).count();
                        write!(text, "  {count:>4}/{:<3}", samples.len())
                    }
                    None => Ok(()),
                };
            }
        }
        text.trim_end().to_owned()
    }

    /// `table.csv`.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "key,value,metric,mean,ci95_low,ci95_high,n\n".to_owned();
        for (value, samples) in self.rows() {
            for Metric { name, of, .. } in C::Sample::METRICS {
                let Some(e) = estimate(samples, *of) else { continue };
                let (low, high) = e.ci95.map_or((String::new(), String::new()), |(l, h)| {
                    (format!("{l:.6}"), format!("{h:.6}"))
                });
                let value = value.replace('"', "\"\"");
                let _ = writeln!(
                    text,
                    "{},\"{value}\",{name},{:.6},{low},{high},{}",
                    self.sweep.key, e.mean, e.n
                );
            }
        }
        text
    }

    /// `plot.svg`: one figure against another, a joined mean per value.
    #[must_use]
    pub fn plot(&self) -> String {
        let Plot { title, x: (x, x_of), y: (y, y_of) } = C::Sample::PLOT;
        let pairs = |samples: &[C::Sample]| -> Vec<(f64, f64)> {
            samples.iter().filter_map(|s| Some((x_of(s)?, y_of(s)?))).collect()
        };
        let mut series: Vec<_> = self
            .rows()
            .enumerate()
            .map(|(n, (value, samples))| Dots {
                name: value.to_owned(),
                colour: n,
                mark: Mark::Dot,
                points: pairs(samples),
                labels: Vec::new(),
                joined: false,
            })
            .collect();
        let mean = |samples| Some((estimate(samples, x_of)?.mean, estimate(samples, y_of)?.mean));
        series.push(Dots {
            name: "means, in order".to_owned(),
            colour: 7,
            mark: Mark::Mean,
            points: self.rows().filter_map(|(_, samples)| mean(samples)).collect(),
            labels: Vec::new(),
            joined: true,
        });
        let frame = Frame {
            title: format!("{title}, over {}", self.sweep.key),
            x: x.to_owned(),
            y: y.to_owned(),
            ..Frame::default()
        };
        dots(&frame, &series, &[])
    }
}

fn estimate<S>(samples: &[S], of: fn(&S) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&samples.iter().filter_map(of).collect::<Vec<_>>())
}

fn with_ci(estimate: Option<Estimate>, digits: usize) -> String {
    match estimate {
        None => "never finished".to_owned(),
        Some(Estimate { mean, ci95: Some((low, high)), .. }) => {
            format!("{mean:.digits$} ± {:.digits$}", (high - low) / 2.0)
        }
        Some(Estimate { mean, .. }) => format!("{mean:.digits$}"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn lists_split_at_outer_commas() {
        assert_eq!(split("0.1,0.3, 0.5"), ["0.1", "0.3", "0.5"]);
        assert_eq!(split("[1,2],[3]"), ["[1,2]", "[3]"]);
        assert_eq!(split("\"a,b\",{ x = 1, y = 2 }"), ["\"a,b\"", "{ x = 1, y = 2 }"]);
    }

    fn cells(experiment: &str, set: &[&str], seeds: Option<u64>) -> Result<AnySweep, SweepError> {
        let set: Vec<_> = set.iter().map(|&s| s.to_owned()).collect();
        sweep_cells(experiment, &set, seeds)
    }

    #[test]
    fn one_list_and_only_one() {
        assert!(cells("j60", &["scheduler.alpha=0.5"], None).is_err());
        assert!(cells("j60", &["scheduler.alpha=0.1,0.2", "seed=1,2"], None).is_err());
        let set = ["policy.alpha=0.1,0.9", "scheduler.max-iteration=2"];
        let AnySweep::Bags(sweep) = cells("j60", &set, Some(3)).unwrap() else {
            panic!("j60 is a bag")
        };
        assert_eq!((sweep.key.as_str(), sweep.cells.len()), ("policy.alpha", 2));
        assert_ne!(sweep.cells[0].digest(), sweep.cells[1].digest());
        assert_eq!(sweep.cells[0].seeds(3), 1..=3);
    }

    #[test]
    fn a_list_of_seeds_is_run_under_these() {
        for experiment in ["j60", "batch-small"] {
            let seeds: Vec<_> = match cells(experiment, &["seed=7,3"], None).unwrap() {
                AnySweep::Bags(sweep) => sweep.cells.iter().map(|c| c.seeds(10)).collect(),
                AnySweep::Jobs(sweep) => sweep.cells.iter().map(|c| c.seeds(10)).collect(),
            };
            assert_eq!(seeds, [7..=7, 3..=3]);
            let twice = cells(experiment, &["seed=7,3"], Some(2)).unwrap_err().to_string();
            assert!(twice.contains("--seeds 2"), "{twice}");
            let one = cells(experiment, &["live.speedup=20,30", "seed=7"], None).unwrap_err();
            assert!(one.to_string().contains("--set seed=7"), "{one}");
        }
    }

    #[test]
    fn one_kind_at_a_time() {
        let AnySweep::Jobs(sweep) = cells("fw-like", &["scheduler.name=easy,measy"], None).unwrap()
        else {
            panic!("fw-like is of parallel jobs")
        };
        assert_eq!(sweep.cells[1].case(), "scheduler.name=measy");
        assert_ne!(sweep.cells[0].digest(), sweep.cells[1].digest());
    }

    #[test]
    fn another_log_of_jobs_is_another_cell_of_a_shared_run() {
        let folder = tempfile::tempdir().unwrap();
        let (log, file) = (folder.path().join("some.swf"), folder.path().join("shared.toml"));
        let text = format!(
            "name = \"shared\"\n[cloud]\ncatalogue = \"ec2-2020\"\n[[tenant]]\nscheduler = {{ name = \
             \"fifo\", fleet = [{{ type = \"c4.large\", market = \"on-demand\", count = 1 }}] }}\n\
             [tenant.workload]\nkind = \"bag\"\ndeadline = \"45m\"\ntask = [{{ name = \"t\", memory = \
             \"10 MB\", runtime = \"120s\" }}]\n[[tenant]]\nscheduler = {{ name = \"easy\" }}\n\
             [tenant.workload]\nkind = \"swf\"\nprocessors = 4\nlog = \"{}\"\n",
            log.display()
        );
        std::fs::write(&file, text).unwrap();
        let digest = |runtime: u32| {
            let job = format!("1 0 -1 {runtime} 2 -1 -1 2 60 -1 1 1 1 -1 -1 -1 -1 -1\n");
            std::fs::write(&log, job).unwrap();
            match cells(file.to_str().unwrap(), &["live.speedup=20,30"], None).unwrap() {
                AnySweep::Bags(sweep) => sweep.cells[0].digest().to_owned(),
                AnySweep::Jobs(_) => panic!("a bag has part in it"),
            }
        };
        let first = digest(60);
        assert_ne!(first, digest(61), "what it holds counts, not only its name");
        assert_eq!(first, digest(60));
    }
}
