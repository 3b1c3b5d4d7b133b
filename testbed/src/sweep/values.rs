//! `dormouse sweep`: one experiment over a list of values of one key.

use std::fmt::Write as _;

use super::{Cell, Dots, Estimate, Frame, Mark, Sample, SweepError, dots};

/// An experiment over the values of one key.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The key, such as `scheduler.alpha`.
    pub key: String,
    /// A cell per value, in the order given.
    pub cells: Vec<Cell>,
    /// The values.
    pub values: Vec<String>,
}

/// A sweep and what came out.
#[derive(Clone, Copy, Debug)]
pub struct Swept<'a> {
    /// The sweep that was run: cells and values.
    pub sweep: &'a Sweep,
    /// The samples of each cell.
    pub samples: &'a [Vec<Sample>],
}

/// The cells of a sweep of `experiment`: of the settings one has to name a list of values.
///
/// # Errors
///
/// No setting or more than one is a list, or an experiment is wrong.
pub fn sweep_cells(experiment: &str, set: &[String]) -> Result<Sweep, SweepError> {
    let mut list = None;
    let mut fixed = Vec::new();
    for text in set {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let values = split(value);
        if values.len() < 2 {
            fixed.push(text.clone());
        } else if list.replace((key.trim().to_owned(), values)).is_some() {
            let what = "two settings have lists of values; sweep one key at a time";
            return Err(SweepError::BadInput(format!("--set {text}: {what}")));
        }
    }
    let Some((key, values)) = list else {
        let what = "no setting has a list of values; write one like scheduler.alpha=0.1,0.3,0.5";
        return Err(SweepError::BadInput(format!("--set: {what}")));
    };
    let cells = values
        .iter()
        .map(|value| {
            let setting = format!("{key}={value}");
            let mut all = fixed.clone();
            all.push(setting.clone());
            Cell::load(&setting, experiment, &all)
        })
        .collect::<Result<_, _>>()?;
    Ok(Sweep { key, cells, values })
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

impl Swept<'_> {
    fn rows(&self) -> impl Iterator<Item = (&str, &[Sample])> {
        self.sweep.values.iter().map(String::as_str).zip(self.samples.iter().map(Vec::as_slice))
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:>24}  {:>22}  {:>26}  {:>8}\n",
            self.sweep.key, "makespan (95 % CI), s", "cost (95 % CI), $", "met"
        );
        for (value, samples) in self.rows() {
            let met = samples.iter().filter(|s| s.deadline_met).count();
            let _ = writeln!(
                text,
                "{value:>24}  {:>22}  {:>26}  {met:>4}/{:<3}",
                with_ci(makespan(samples), 0),
                with_ci(cost(samples), 4),
                samples.len()
            );
        }
        text.trim_end().to_owned()
    }

    /// `table.csv`.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "key,value,metric,mean,ci95_low,ci95_high,n\n".to_owned();
        for (value, samples) in self.rows() {
            let metrics = [
                ("makespan_s", makespan(samples)),
                ("cost_usd", cost(samples)),
                ("deadline_met", share_met(samples)),
            ];
            for (metric, estimate) in metrics {
                let Some(e) = estimate else { continue };
                let (low, high) = e.ci95.map_or((String::new(), String::new()), |(l, h)| {
                    (format!("{l:.6}"), format!("{h:.6}"))
                });
                let value = value.replace('"', "\"\"");
                let _ = writeln!(
                    text,
                    "{},\"{value}\",{metric},{:.6},{low},{high},{}",
                    self.sweep.key, e.mean, e.n
                );
            }
        }
        text
    }

    /// `plot.svg`: cost against makespan, a joined mean per value.
    #[must_use]
    pub fn plot(&self) -> String {
        let pairs = |samples: &[Sample]| -> Vec<(f64, f64)> {
            let pair = |s: &Sample| Some((s.makespan?.as_secs_f64(), s.cost.as_usd()));
            samples.iter().filter_map(pair).collect()
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
        let means =
            self.rows().filter_map(|(_, s)| Some((makespan(s)?.mean, cost(s)?.mean))).collect();
        series.push(Dots {
            name: "means, in order".to_owned(),
            colour: 7,
            mark: Mark::Mean,
            points: means,
            labels: Vec::new(),
            joined: true,
        });
        let frame = Frame {
            title: format!("Cost against makespan, over {}", self.sweep.key),
            x: "makespan, s".to_owned(),
            y: "cost, $".to_owned(),
            ..Frame::default()
        };
        dots(&frame, &series, &[])
    }
}

fn makespan(samples: &[Sample]) -> Option<Estimate> {
    let all: Vec<_> = samples.iter().filter_map(|s| Some(s.makespan?.as_secs_f64())).collect();
    Estimate::of(&all)
}

fn cost(samples: &[Sample]) -> Option<Estimate> {
    Estimate::of(&samples.iter().map(|s| s.cost.as_usd()).collect::<Vec<_>>())
}

fn share_met(samples: &[Sample]) -> Option<Estimate> {
    Estimate::of(&samples.iter().map(|s| f64::from(u8::from(s.deadline_met))).collect::<Vec<_>>())
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

    #[test]
    fn one_list_and_only_one() {
        let cells = |set: &[&str]| {
            let set: Vec<_> = set.iter().map(|&s| s.to_owned()).collect();
            sweep_cells("j60", &set)
        };
        assert!(cells(&["scheduler.alpha=0.5"]).is_err());
        assert!(cells(&["scheduler.alpha=0.1,0.2", "seed=1,2"]).is_err());
        let sweep = cells(&["policy.alpha=0.1,0.9", "scheduler.max-iteration=2"]).unwrap();
        assert_eq!((sweep.key.as_str(), sweep.cells.len()), ("policy.alpha", 2));
        assert_ne!(sweep.cells[0].digest(), sweep.cells[1].digest());
    }
}
