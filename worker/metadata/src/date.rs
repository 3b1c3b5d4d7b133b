//! Formats of instants in each dialect.

/// An instant of the calendar, in microseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(u64);

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Abbreviated days of the week, beginning with that of 1 January 1970, a Thursday.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Calendar date and time of day in UTC.
struct CivilTime {
    weekday: &'static str,
    year: u64,
    /// Month from 1 on.
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl UnixTime {
    /// The instant this many microseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the beginning of 1970.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds from `earlier` to this instant; zero if it is later.
    #[must_use]
    pub const fn seconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000_000
    }

    /// The instant in ISO 8601 in whole seconds: `2026-09-18T08:22:00Z`.
    #[must_use]
    pub fn iso_text(self) -> String {
        let CivilTime { year, month, day, hour, minute, second, .. } = self.to_civil();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// The instant in ISO 8601 in milliseconds: `2026-09-18T08:22:00.750Z`.
    #[must_use]
    pub fn iso_ms(self) -> String {
        let (iso, ms) = (self.iso_text(), self.0 / 1000 % 1000);
        format!("{}.{ms:03}Z", iso.trim_end_matches('Z'))
    }

    /// The instant in HTTP's format: `Mon, 19 Sep 2026 18:29:47 GMT`.
    #[must_use]
    pub fn http_text(self) -> String {
        let CivilTime { weekday, year, month, day, hour, minute, second } = self.to_civil();
        let month = usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month));
        let month = month.copied().unwrap_or_default();
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }

    /// The instant in the format of EC2's maintenance events: `21 Jan 2019 09:00:43 GMT`.
    #[must_use]
    pub fn day_first(self) -> String {
        let http = self.http_text();
        let (_, date) = http.split_once(", ").unwrap_or_default();
        date.trim_start_matches('0').to_owned()
    }

    /// Calendar date of the instant. Internally years begin in March, so that the leap day is the
    /// last of its year.
    fn to_civil(self) -> CivilTime {
        let seconds = self.0 / 1_000_000;
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        let since = days + 719_468;
        let (era, of_era) = (since / 146_097, since % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let weekday = usize::try_from(days % 7).ok().and_then(|day| DAYS.get(day));
        CivilTime {
            weekday: weekday.copied().unwrap_or_default(),
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_micros(seconds * 1_000_000 + 999_999)
    }

    #[test]
    fn instants_are_those_of_the_calendar() {
        assert_eq!(at(0).iso_text(), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399).iso_text(), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400).iso_text(), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_767_225_599).iso_text(), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn http_names_the_day_of_the_week() {
        assert_eq!(at(0).http_text(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(at(0).day_first(), "1 Jan 1970 00:00:00 GMT");
        // The example of RFC 9110.
        assert_eq!(at(784_111_777).http_text(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
