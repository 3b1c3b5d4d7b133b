//! Instants in ISO 8601, as EC2's requests and answers have them.

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// Days from 1970-01-01 to this date of the Gregorian calendar (Hinnant's `days_from_civil`).
fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a day since 1970-01-01.
fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Number of days in a month.
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads a number of exactly this many digits; returns the number and the rest of the text, or `None` if the text does not begin
/// with so many digits.
fn take_digits(text: &str, digits: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let all_digits = number.bytes().all(|b| b.is_ascii_digit());
    all_digits.then_some(())?;
    Some((number.parse().ok()?, rest))
}

/// Microseconds since 1970 (UTC) of a text like `2026-11-27T08:00:00Z`, also with a fraction of a second or an offset
/// (`+01:00`), or of a date alone. A text without an offset is in UTC. `None` for any other text.
pub fn read_instant(text: &str) -> Option<i64> {
    let (year, rest) = take_digits(text, 4)?;
    let (month, rest) = take_digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = take_digits(rest.strip_prefix('-')?, 2)?;
    let is_date = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    is_date.then_some(())?;
    let midnight = days_of_date(year, month, day) * DAY;
    if rest.is_empty() {
        return Some(midnight * MICROS);
    }
    let (hour, rest) = take_digits(rest.strip_prefix(['T', ' '])?, 2)?;
    let (minute, rest) = take_digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = take_digits(rest.strip_prefix(':')?, 2)?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some(())?;
    let (fraction, zone) = take_fraction(rest)?;
    let at = midnight + hour * 3_600 + minute * 60 + second - offset_seconds(zone)?;
    Some(at * MICROS + fraction)
}

/// Reads a fraction like `.25`, if there is one; returns its microseconds and the rest of the text. Digits past the
/// sixth are cut off.
fn take_fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at_checked(end)?;
    (!number.is_empty()).then_some(())?;
    let padded: String = number.chars().chain("000000".chars()).take(6).collect();
    Some((padded.parse().ok()?, rest))
}

/// Seconds by which a time zone is ahead of UTC; the zone is an empty text, `Z`, `+01:00` or `-0530`.
fn offset_seconds(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" || zone == "z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = take_digits(zone.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, rest) = take_digits(rest.strip_prefix(':').unwrap_or(rest), 2)?;
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// An instant as EC2 writes it: `2026-11-27T08:00:00.000Z`, to the millisecond.
pub fn write_instant(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS);
    let (year, month, day) = date_of_days(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let millis = micros.rem_euclid(MICROS) / 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn instants_have_the_forms_that_clients_send() {
        // date -u -d 2026-11-27T08:00:00Z +%s
        let at = 1_795_766_400_000_000;
        assert_eq!(read_instant("2026-11-27T08:00:00Z"), Some(at));
        assert_eq!(read_instant("2026-11-27T08:00:00"), Some(at));
        assert_eq!(read_instant("2026-11-27T08:00:00.25Z"), Some(at + 250_000));
        assert_eq!(read_instant("2026-11-27T09:30:00+01:30"), Some(at));
        assert_eq!(read_instant("2026-11-27T03:00:00-0500"), Some(at));
        assert_eq!(read_instant("2026-11-27"), Some(at - 8 * 3_600_000_000));
        assert_eq!(read_instant("2024-02-29T00:00:00Z"), Some(1_709_164_800_000_000));
        assert_eq!(write_instant(at + 7_999), "2026-11-27T08:00:00.007Z");
        assert_eq!(write_instant(-1_000), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "2023-02-29",
            "2026-11-27T24:00:00Z",
            "2026-11-27T08:00",
            "2026-11-27T08:00:00.Z",
            "2026-11-27T08:00:00Zz",
            "2026-11-27T08:00:00+1",
            "+026-11-27",
            "٢٠٢٦-11-27",
        ] {
            assert_eq!(read_instant(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in -62_135_596_800_000_i64..253_402_300_800_000) {
            prop_assert_eq!(read_instant(&write_instant(millis * 1_000)), Some(millis * 1_000));
        }
    }
}
