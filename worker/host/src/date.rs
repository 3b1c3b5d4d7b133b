//! Dates for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time in UTC, such as `2026-11-22T03:04:05Z`; for a time before 1970 the beginning of 1970.
pub(crate) fn utc_text(at: SystemTime) -> String {
    let secs = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, of_day) = (secs / 86_400, secs % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, from days since 1970. Internally years begin in
/// March, so that the leap day is the last of its year.
const fn civil_date(days: u64) -> (u64, u64, u64) {
    let since = days + 719_468;
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + (month <= 2) as u64, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let of = |secs| utc_text(UNIX_EPOCH + Duration::from_secs(secs));
        assert_eq!(of(0), "1970-01-01T00:00:00Z");
        assert_eq!(of(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(of(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(of(1_795_318_493), "2026-11-22T03:34:53Z");
    }
}
