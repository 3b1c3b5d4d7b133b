//! How long a live run takes, which is printed when it begins. A run that takes too long is refused, unless its user
//! allows it.

use dormouse_units::{Span, Speedup};

/// Longest real time, in seconds, that a run may take unless its user allows more.
const LONGEST_S: f64 = 12.0 * 3_600.0;

/// A run would take longer than most users would wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would take {takes}, more than {}; use a larger --speedup or fewer {fewer}, or --allow-long \
     to run it anyway",
    duration_words(LONGEST_S)
)]
pub struct TooLong {
    /// Real time that the run would take, and how that time was computed, in words.
    takes: String,
    /// A word for the things to reduce for a shorter run, such as tasks.
    fewer: &'static str,
}

/// Describes how long a run of `emulated` time takes at this speed-up; `how` says how exactly that is known.
///
/// # Errors
///
/// The run would take very long, and `long` is false; the error suggests to reduce what `fewer` names.
pub fn describe_duration(
    (how, emulated, speedup): (&str, Span, Speedup),
    fewer: &'static str,
    long: bool,
) -> Result<String, TooLong> {
    let real_s = speedup.to_real(emulated).as_secs_f64();
    let (real, emulated) = (duration_words(real_s), duration_words(emulated.as_secs_f64()));
    let takes = format!("{how} {real} of real time: {emulated} at a speed-up of {speedup}");
    if long || real_s <= LONGEST_S {
        return Ok(format!("it takes {takes}"));
    }
    Err(TooLong { takes, fewer })
}

/// Formats a duration in seconds in a fitting unit.
fn duration_words(s: f64) -> String {
    match s {
        s if s >= 2.0 * 86_400.0 => format!("{:.1} days", s / 86_400.0),
        s if s >= 2.0 * 3_600.0 => format!("{:.1} hours", s / 3_600.0),
        s if s >= 120.0 => format!("{:.1} minutes", s / 60.0),
        s => format!("{s:.0} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_days_has_to_be_meant() {
        let takes = |days: u64, long| {
            describe_duration(
                ("at least", Span::from_secs(days * 86_400), Speedup::times_real(30)),
                "jobs",
                long,
            )
        };
        let text = takes(15, false).expect("it is said");
        assert_eq!(
            text,
            "it takes at least 12.0 hours of real time: 15.0 days at a speed-up of 30"
        );
        let no = takes(960, false).expect_err("it takes 32 days").to_string();
        for words in ["it would take at least 32.0 days", "--speedup", "fewer jobs", "--allow-long"]
        {
            assert!(no.contains(words), "no '{words}' in: {no}");
        }
        assert!(takes(960, true).is_ok());
    }
}
