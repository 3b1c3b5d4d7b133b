//! `dormouse sweep`: one experiment over lists of values of one key or several.

use std::fmt::Write as _;

use super::{
    Cell, Column, Dots, Frame, JobsCell, Mark, Metric, Plot, Reported, Seeded, SweepError, Tie,
    dots,
};
use crate::experiment::{Override, Source, open};
use dormouse_workload::Estimate;

/// The key whose values are not run under seeds, but are seeds.
const SEED: &str = "seed";

/// An experiment over the values of keys: each of the one with each of the others.
#[derive(Clone, Debug)]
pub struct Sweep<C> {
    /// The keys, such as `scheduler.alpha`.
    pub keys: Vec<String>,
    /// The values of the keys in each cell; those of the last key change first.
    pub values: Vec<Vec<String>>,
    /// A cell for each.
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

/// The cells of a sweep of `experiment`: of the settings one or more have to name a list of values. A
/// list of seeds is run under these; else `seeds` says how many, if anybody does.
///
/// # Errors
///
/// No setting is a list or a key has two, there are more than [`MOST`] cells, seeds are said twice, or
/// an experiment is wrong.
pub fn sweep_cells(
    experiment: &str,
    set: &[String],
    seeds: Option<u64>,
) -> Result<AnySweep, SweepError> {
    let (mut lists, mut fixed) = (Vec::<(String, Vec<String>)>::new(), Vec::new());
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
        } else if lists.iter().any(|(other, _)| other == key) {
            let what = "there are two lists of values for it; join them";
            return Err(SweepError::BadInput(format!("--set {text}: {what}")));
        } else {
            lists.push((key.to_owned(), values));
        }
    }
    if lists.is_empty() {
        let what = "no setting has a list of values; write one like scheduler.alpha=0.1,0.3,0.5";
        return Err(SweepError::BadInput(format!("--set: {what}")));
    }
    let own = lists.iter().any(|(key, _)| key == SEED);
    if let Some(n) = seeds.filter(|_| own) {
        let what = "the values of seed are the seeds; leave it out";
        return Err(SweepError::BadInput(format!("--seeds {n}: {what}")));
    }
    let count = lists.iter().try_fold(1_usize, |n, (_, values)| n.checked_mul(values.len()));
    if count.is_none_or(|count| count > MOST) {
        let what = format!("the lists come to more than {MOST} experiments; shorten one");
        return Err(SweepError::BadInput(format!("--set: {what}")));
    }
    let keys: Vec<String> = lists.iter().map(|(key, _)| key.clone()).collect();
    let values = each_with_each(&lists);
    let (mut bags, mut jobs) = (Vec::new(), Vec::new());
    for values in &values {
        let settings: Vec<String> =
            keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect();
        let mut overrides = fixed.clone();
        for setting in &settings {
            overrides.push(Override::set(setting)?);
        }
        let source = Source { experiment: Some(experiment), overrides, ..Source::default() };
        let (case, loaded) = (settings.join(" "), open(&source)?);
        match loaded.experiment.scheduler {
            Some(_) => bags.push(Cell::of(&case, loaded)?),
            None => jobs.push(
                JobsCell::of(&case, loaded.experiment)
                    .map_err(|error| SweepError::BadInput(error.to_string()))?,
            ),
        }
    }
    match (bags.is_empty(), jobs.is_empty()) {
        (_, true) => {
            let cells = bags.into_iter().map(|cell| if own { cell.under_its_seed() } else { cell });
            Ok(AnySweep::Bags(Sweep { cells: cells.collect(), keys, values }))
        }
        (true, false) => {
            let cells = jobs.into_iter().map(|cell| if own { cell.under_its_seed() } else { cell });
            Ok(AnySweep::Jobs(Sweep { cells: cells.collect(), keys, values }))
        }
        (false, false) => {
            let what = "some of the values are of bags of tasks, others of parallel jobs; sweep \
                        one kind at a time";
            Err(SweepError::BadInput(format!("--set {}: {what}", keys.join(", "))))
        }
    }
}

/// The most experiments of a sweep.
const MOST: usize = 10_000;

/// Every choice of a value from each list; those of the last change first.
fn each_with_each(lists: &[(String, Vec<String>)]) -> Vec<Vec<String>> {
    lists.iter().fold(vec![Vec::new()], |chosen, (_, values)| {
        let with = |before: &Vec<String>, value: &String| {
            [&before[..], std::slice::from_ref(value)].concat()
        };
        chosen.iter().flat_map(|before| values.iter().map(move |v| with(before, v))).collect()
    })
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
    fn rows(&self) -> impl Iterator<Item = (&[String], &[C::Sample])> {
        let values = self.sweep.values.iter().map(Vec::as_slice);
        values.zip(self.samples.iter().map(Vec::as_slice))
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let widths: Vec<usize> = match &self.sweep.keys[..] {
            [_] => vec![24],
            keys => {
                let longest = |(n, key): (usize, &String)| {
                    let values = self.sweep.values.iter().filter_map(|values| values.get(n));
                    values.chain([key]).map(|text| text.chars().count()).max().unwrap_or(0) + 2
                };
                keys.iter().enumerate().map(longest).collect()
            }
        };
        let mut text = String::new();
        let start = |text: &mut String, cells: &[String]| {
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(text, "{cell:>width$}");
            }
        };
        start(&mut text, &self.sweep.keys);
        for Metric { column, .. } in C::Sample::METRICS {
            let _ = match column {
                Some(Column::Mean { heading, width, .. }) => write!(text, "  {heading:>width$}"),
                Some(Column::Count { heading }) => write!(text, "  {heading:>8}"),
                None => Ok(()),
            };
        }
        for (values, samples) in self.rows() {
            text.push('\n');
            start(&mut text, values);
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

    /// `table.csv`. Several keys, and their values in the same order, are joined by semicolons.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "key,value,metric,mean,ci95_low,ci95_high,n\n".to_owned();
        let key = self.sweep.keys.join(";");
        for (values, samples) in self.rows() {
            let value = values.join(";").replace('"', "\"\"");
            for Metric { name, of, .. } in C::Sample::METRICS {
                let Some(e) = estimate(samples, *of) else { continue };
                let (low, high) = e.ci95.map_or((String::new(), String::new()), |(l, h)| {
                    (format!("{l:.6}"), format!("{h:.6}"))
                });
                let _ =
                    writeln!(text, "{key},\"{value}\",{name},{:.6},{low},{high},{}", e.mean, e.n);
            }
        }
        text
    }

    /// `plot.svg`: one figure against another, and of each value the means with their confidence
    /// intervals; joined where the values are numbers of one key.
    #[must_use]
    pub fn plot(&self) -> String {
        let Plot { title, x: (x, x_of), y: (y, y_of) } = C::Sample::PLOT;
        let pairs = |samples: &[C::Sample]| -> Vec<(f64, f64)> {
            samples.iter().filter_map(|s| Some((x_of(s)?, y_of(s)?))).collect()
        };
        let mut series: Vec<_> = self
            .rows()
            .enumerate()
            .map(|(n, (values, samples))| Dots {
                name: values.join(", "),
                colour: n,
                mark: Mark::Dot,
                points: pairs(samples),
                labels: Vec::new(),
                joined: false,
            })
            .collect();
        let (mut means, mut labels, mut ties) = (Vec::new(), Vec::new(), Vec::new());
        for (values, samples) in self.rows() {
            let (Some(x), Some(y)) = (estimate(samples, x_of), estimate(samples, y_of)) else {
                continue;
            };
            means.push((x.mean, y.mean));
            labels.push(format!("mean of {}", values.join(", ")));
            let across = x.ci95.map(|(low, high)| ((low, y.mean), (high, y.mean)));
            let up = y.ci95.map(|(low, high)| ((x.mean, low), (x.mean, high)));
            ties.extend(across.into_iter().chain(up).map(|ends| Tie { colour: MEANS, ends }));
        }
        let joined = self.is_over_numbers();
        series.push(Dots {
            name: if joined { "means, in order" } else { "means" }.to_owned(),
            colour: MEANS,
            mark: Mark::Mean,
            points: means,
            labels,
            joined,
        });
        let note =
            if ties.is_empty() { "" } else { "crosses: 95 % confidence intervals of the means" };
        let frame = Frame {
            title: format!("{title}, over {}", self.sweep.keys.join(" and ")),
            note: note.to_owned(),
            x: x.to_owned(),
            y: y.to_owned(),
            ..Frame::default()
        };
        dots(&frame, &series, &ties)
    }

    /// Whether its values are on a scale: between names there is nothing.
    fn is_over_numbers(&self) -> bool {
        let is_number = |value: &String| value.parse::<f64>().is_ok();
        self.sweep.keys.len() == 1 && self.sweep.values.iter().flatten().all(is_number)
    }
}

/// The colour of means.
const MEANS: usize = 7;

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
    fn each_value_of_a_list_with_each_of_the_others() {
        assert!(cells("j60", &["scheduler.alpha=0.5"], None).is_err());
        let twice = ["scheduler.alpha=0.1,0.2", "scheduler.alpha=0.3,0.4"];
        let twice = cells("j60", &twice, None).unwrap_err().to_string();
        assert!(twice.contains("two lists"), "{twice}");
        let many = (0..101).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let many = [format!("seed={many}"), format!("live.speedup={many}")];
        let many = cells("j60", &[&many[0], &many[1]], None).unwrap_err().to_string();
        assert!(many.contains("more than 10000 experiments"), "{many}");
        let set = ["scheduler.alpha=0.1,0.2,0.3", "seed=1,2"];
        let AnySweep::Bags(both) = cells("j60", &set, None).unwrap() else {
            panic!("j60 is a bag")
        };
        assert_eq!(both.keys, ["scheduler.alpha", "seed"]);
        assert_eq!(both.values[..3], [["0.1", "1"], ["0.1", "2"], ["0.2", "1"]]);
        assert_eq!(both.cells[3].case(), "scheduler.alpha=0.2 seed=2");
        assert_eq!((both.cells.len(), both.cells[3].seeds(10)), (6, 2..=2));
        let set = ["policy.alpha=0.1,0.9", "scheduler.max-iteration=2"];
        let AnySweep::Bags(sweep) = cells("j60", &set, Some(3)).unwrap() else {
            panic!("j60 is a bag")
        };
        assert_eq!((&sweep.keys[..], sweep.cells.len()), (&["policy.alpha".to_owned()][..], 2));
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
