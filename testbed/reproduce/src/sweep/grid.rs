//! Cells of `dormouse sweep`: one experiment with lists of values for one or several keys.

use super::{SharedInputs, SweepCell, SweepError};

/// Key of an experiment whose values in a sweep are the seeds of the runs.
pub(super) const SEED: &str = "seed";
/// Greatest number of experiments in a sweep.
const MAX_EXPERIMENTS: usize = 10_000;

/// An experiment with every combination of values of some keys.
#[derive(Clone, Debug)]
pub struct ParameterSweep {
    /// Names of the varied keys, such as `scheduler.alpha`.
    pub keys: Vec<String>,
    /// Values of the keys in each cell; the value of the last key changes fastest.
    pub values: Vec<Vec<String>>,
    /// One cell for each combination of values.
    pub cells: Vec<SweepCell>,
}

impl ParameterSweep {
    /// The cells of a sweep of `experiment`: settings may have lists of values; without lists the experiment itself is the only
    /// cell. Values of `seed` are the seeds; else `seeds` is their number, if given.
    ///
    /// # Errors
    ///
    /// A key has two lists, there are more than 10,000 cells, seeds are given twice, or an
    /// experiment is wrong.
    pub fn new(
        experiment: &str,
        set: &[String],
        seeds: Option<u64>,
        shared: &SharedInputs,
    ) -> Result<Self, SweepError> {
        let bad = |what: String| Err(SweepError::BadInput(what));
        let (mut lists, mut fixed) = (Vec::<(String, Vec<String>)>::new(), Vec::new());
        for text in set {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            let (key, values) = (key.trim(), split_list(value));
            if values.len() < 2 && key != SEED {
                fixed.push(text.clone());
            } else if lists.iter().any(|(other, _)| other == key) {
                let what = "there are two lists of values for it; join them";
                return bad(format!("--set {text}: {what}"));
            } else {
                lists.push((key.to_owned(), values));
            }
        }
        let own = lists.iter().any(|(key, _)| key == SEED);
        if let Some(n) = seeds.filter(|_| own) {
            return bad(format!("--seeds {n}: the values of seed are the seeds; leave it out"));
        }
        let count = lists.iter().try_fold(1_usize, |n, (_, values)| n.checked_mul(values.len()));
        if count.is_none_or(|count| count > MAX_EXPERIMENTS) {
            return bad(format!(
                "--set: the lists come to more than {MAX_EXPERIMENTS} experiments; shorten one"
            ));
        }
        let keys: Vec<String> = lists.iter().map(|(key, _)| key.clone()).collect();
        let values = each_with_each(&lists);
        let mut cells = Vec::new();
        for values in &values {
            let settings: Vec<String> =
                keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect();
            let case = if settings.is_empty() { experiment.to_owned() } else { settings.join(" ") };
            let cell = SweepCell::load(&case, experiment, &[fixed.clone(), settings].concat())?;
            cell.check(cell.experiment.setup.seed, shared)?;
            cells.push(if own { cell.under_its_seed() } else { cell });
        }
        let of_jobs = |cell: &&SweepCell| cell.experiment.scheduler.is_none();
        if ![0, cells.len()].contains(&cells.iter().filter(of_jobs).count()) {
            let what = "some of the values are of bags of tasks, others of parallel jobs; sweep \
                        one kind at a time";
            return bad(format!("--set {}: {what}", keys.join(", ")));
        }
        Ok(Self { keys, values, cells })
    }
}

/// Every combination of one value from each list; the value from the last list changes fastest.
fn each_with_each(lists: &[(String, Vec<String>)]) -> Vec<Vec<String>> {
    lists.iter().fold(vec![Vec::new()], |chosen, (_, values)| {
        let with = |before: &Vec<String>, value: &String| {
            [&before[..], std::slice::from_ref(value)].concat()
        };
        chosen.iter().flat_map(|before| values.iter().map(move |v| with(before, v))).collect()
    })
}

/// Splits a list at the commas outside brackets and quotes.
fn split_list(list: &str) -> Vec<String> {
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::super::SampleSource as _;
    use super::*;

    #[test]
    fn lists_split_at_outer_commas() {
        assert_eq!(split_list("0.1,0.3, 0.5"), ["0.1", "0.3", "0.5"]);
        assert_eq!(split_list("[1,2],[3]"), ["[1,2]", "[3]"]);
        assert_eq!(split_list("\"a,b\",{ x = 1, y = 2 }"), ["\"a,b\"", "{ x = 1, y = 2 }"]);
    }

    fn sweep(
        experiment: &str,
        set: &[&str],
        seeds: Option<u64>,
    ) -> Result<ParameterSweep, SweepError> {
        let set: Vec<_> = set.iter().map(|&s| s.to_owned()).collect();
        ParameterSweep::new(experiment, &set, seeds, &SharedInputs::default())
    }

    #[test]
    fn each_value_of_a_list_with_each_of_the_others() {
        let alone = sweep("j60", &["scheduler.alpha=0.5"], Some(3)).unwrap();
        assert_eq!((alone.cells.len(), alone.cells[0].seeds(&(1..=3))), (1, 1..=3));
        let twice = ["scheduler.alpha=0.1,0.2", "scheduler.alpha=0.3,0.4"];
        let twice = sweep("j60", &twice, None).unwrap_err().to_string();
        assert!(twice.contains("two lists"), "{twice}");
        let many = (0..101).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let many = [format!("seed={many}"), format!("live.speedup={many}")];
        let many = sweep("j60", &[&many[0], &many[1]], None).unwrap_err().to_string();
        assert!(many.contains("more than 10000 experiments"), "{many}");
        let both = sweep("j60", &["scheduler.alpha=0.1,0.2,0.3", "seed=1,2"], None).unwrap();
        assert_eq!(both.keys, ["scheduler.alpha", "seed"]);
        assert_eq!(both.values[..3], [["0.1", "1"], ["0.1", "2"], ["0.2", "1"]]);
        assert_eq!(both.cells[3].case, "scheduler.alpha=0.2 seed=2");
        assert_eq!((both.cells.len(), both.cells[3].seeds(&(1..=10))), (6, 2..=2));
        let set = ["policy.alpha=0.1,0.9", "scheduler.max-iteration=2"];
        let sweep = sweep("j60", &set, Some(3)).unwrap();
        assert_eq!((&sweep.keys[..], sweep.cells.len()), (&["policy.alpha".to_owned()][..], 2));
        assert_ne!(sweep.cells[0].digest(), sweep.cells[1].digest());
        assert_eq!(sweep.cells[0].seeds(&(1..=3)), 1..=3);
    }

    #[test]
    fn a_list_of_seeds_is_run_under_these() {
        for experiment in ["j60", "batch-small"] {
            let cells = sweep(experiment, &["seed=7,3"], None).unwrap().cells;
            let seeds: Vec<_> = cells.iter().map(|cell| cell.seeds(&(1..=10))).collect();
            assert_eq!(seeds, [7..=7, 3..=3]);
            let twice = sweep(experiment, &["seed=7,3"], Some(2)).unwrap_err().to_string();
            assert!(twice.contains("--seeds 2"), "{twice}");
        }
    }
}
