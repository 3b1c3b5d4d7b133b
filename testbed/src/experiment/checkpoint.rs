//! `[checkpoint]`: when tasks are checkpointed, and what that costs.

use dormouse_policies::{CheckpointConfig, CheckpointOn, Period, Scheme};
use dormouse_units::{Ppm, Span};

use super::InputError;
use super::reader::{Section, fractions};

/// Ten per cent of a task's run time (the paper) …
const OVERHEAD: Ppm = Ppm::new(100_000);
/// … at 12.995 s + 0.04 s a megabyte (its artifact).
const FIXED: Span = Span::from_micros(12_995_000);
const PER_MEGABYTE: Span = Span::from_micros(40_000);

/// The schemes, by their names in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Budget,
    Every,
    Points,
    None,
}

const NAMES: [(&str, Name); 4] = [
    ("budget", Name::Budget),
    ("every", Name::Every),
    ("points", Name::Points),
    ("none", Name::None),
];

/// Which scheme each key is of.
const KEYS: [(&str, Name, &str); 4] = [
    ("overhead", Name::Budget, "budget"),
    ("period", Name::Every, "every"),
    ("of", Name::Every, "every"),
    ("points", Name::Points, "points"),
];

/// Reads `[checkpoint]`.
pub(crate) fn read(mut section: Section<'_>) -> Result<CheckpointConfig, InputError> {
    let name = section.choice("policy", &NAMES)?.unwrap_or(Name::Budget);
    let fixed = section.span("fixed")?.unwrap_or(FIXED);
    let per_megabyte = section.span("per-megabyte")?.unwrap_or(PER_MEGABYTE);
    let on = section.choice("on", &[("spot", CheckpointOn::Spot), ("all", CheckpointOn::All)])?;
    if fixed < Span::from_micros(1_000) {
        let what = format!("a checkpoint that costs {fixed} would be taken all the time");
        return Err(InputError::new(&section.place_of("fixed"), what, "write at least \"1ms\""));
    }
    let scheme = scheme(&mut section, name, fixed)?;
    section.finish()?;
    Ok(CheckpointConfig { scheme, fixed, per_megabyte, on: on.unwrap_or_default() })
}

/// Reads the `[checkpoint]` of parallel jobs: theirs is one machine that nobody takes away, so there is
/// no `on`, and they say nothing of their memory. `None`: never.
pub(crate) fn read_of_jobs(
    mut section: Section<'_>,
) -> Result<Option<CheckpointConfig>, InputError> {
    for (key, why) in [
        ("on", "the machine of parallel jobs is on demand, and there is no other"),
        ("per-megabyte", "parallel jobs don't say what memory they have"),
    ] {
        if section.get(key).is_some() {
            let remedy = "take it out; a checkpoint of a job costs 'fixed'";
            return Err(InputError::new(&section.place_of(key), why, remedy));
        }
    }
    let config = read(section)?;
    let config = CheckpointConfig { per_megabyte: Span::ZERO, on: CheckpointOn::All, ..config };
    Ok((config.scheme != Scheme::None {}).then_some(config))
}

fn scheme(section: &mut Section<'_>, name: Name, fixed: Span) -> Result<Scheme, InputError> {
    let overhead = section.fraction("overhead", 0.0..=10.0)?;
    let period = section.span("period")?;
    let of = section.choice("of", &[("time", Period::Time), ("work", Period::Work)])?;
    let points = section.get("points");
    let given = [overhead.is_some(), period.is_some(), of.is_some(), points.is_some()];
    // A budget beside "none" is one that was set aside for a while.
    let foreign = KEYS.iter().zip(given).find(|((_, of, _), given)| {
        *given && *of != name && (*of, name) != (Name::Budget, Name::None)
    });
    if let Some((&(key, _, scheme), _)) = foreign {
        let what = format!("'{key}' is of policy \"{scheme}\", which is not this one");
        let remedy = format!("take it out, or write policy = \"{scheme}\"");
        return Err(InputError::new(&section.place_of(key), what, remedy));
    }
    Ok(match name {
        Name::Budget => Scheme::Budget(overhead.unwrap_or(OVERHEAD)),
        Name::None => Scheme::None {},
        Name::Every => {
            let period = section.need("period", period, "\"10m\"")?;
            if period < fixed {
                let what = format!("a checkpoint every {period} that costs {fixed}");
                let remedy = format!("write at least \"{fixed}\"");
                return Err(InputError::new(&section.place_of("period"), what, remedy));
            }
            Scheme::Every { period, of: of.unwrap_or_default() }
        }
        Name::Points => {
            let points = section.need("points", points, "[0.25, 0.5, 0.75]")?;
            Scheme::Points(fractions(points)?.into())
        }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::super::document;
    use super::*;

    fn said(text: &str) -> Result<CheckpointConfig, String> {
        let node = document::from_toml("x.toml", text).unwrap();
        read(Section::of(&node).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_policy_is_read() {
        let scheme = |text: &str| said(text).map(|config| config.scheme);
        let minutes = |n: u64| Span::from_secs(60 * n);
        assert_eq!(scheme(""), Ok(Scheme::Budget(Ppm::new(100_000))));
        assert_eq!(scheme("policy = \"budget\"\noverhead = 0"), Ok(Scheme::Budget(Ppm::ZERO)));
        assert_eq!(scheme("policy = \"none\"\noverhead = 0.2"), Ok(Scheme::None {}));
        let every = |of| Ok(Scheme::Every { period: minutes(10), of });
        assert_eq!(scheme("policy = \"every\"\nperiod = \"10m\""), every(Period::Time));
        let work = "policy = \"every\"\nperiod = \"10m\"\nof = \"work\"";
        assert_eq!(scheme(work), every(Period::Work));
        let points = Scheme::Points([250_000, 500_000].map(Ppm::new).into());
        assert_eq!(scheme("policy = \"points\"\npoints = [0.25, 0.5]"), Ok(points));
    }

    #[test]
    fn those_of_jobs_are_taken_on_their_machine_and_cost_what_is_fixed() {
        let said = |text: &str| {
            let node = document::from_toml("x.toml", text).unwrap();
            read_of_jobs(Section::of(&node).unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(said("policy = \"none\""), Ok(None));
        let every = said("policy = \"every\"\nperiod = \"5m\"\nfixed = \"2s\"").unwrap().unwrap();
        let cost = every.cost(dormouse_units::Bytes::new(1 << 40));
        assert_eq!((every.on, cost), (CheckpointOn::All, Span::from_secs(2)));
        for (text, part) in [
            ("on = \"spot\"", "x.toml:1:6: on: the machine of parallel jobs is on demand"),
            ("per-megabyte = \"1s\"", "don't say what memory"),
        ] {
            let error = said(text).unwrap_err();
            assert!(error.contains(part) && error.contains("take it out"), "{text}: {error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place_and_what_would_be_right() {
        for (text, part, remedy) in [
            ("policy = \"evry\"", "x.toml:1:10: policy: there is no policy 'evry'", "every"),
            ("policy = \"every\"", "'period' is missing", "period = \"10m\""),
            ("policy = \"every\"\nperiod = \"5s\"", "x.toml:2:10: period: a checkpoint", "12.995s"),
            ("policy = \"points\"", "'points' is missing", "[0.25, 0.5, 0.75]"),
            ("policy = \"points\"\npoints = 3", "is not a list", "[0.25, 0.5]"),
            ("policy = \"points\"\npoints = [0.5, 0.5]", "0.5 does not come after", "ascending"),
            ("policy = \"points\"\npoints = [0.5, 1]", "1 is out of range", "below 1"),
            ("period = \"10m\"", "'period' is of policy \"every\"", "policy = \"every\""),
            ("policy = \"every\"\nperiod = \"1h\"\noverhead = 1", "'overhead' is of", "budget"),
        ] {
            let error = said(text).unwrap_err();
            assert!(error.contains(part) && error.contains(remedy), "{text}: {error}");
        }
    }
}
