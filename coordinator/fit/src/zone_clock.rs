//! Local clocks of cloud zones: the hour and the day of the week at which a VM was launched.

use dormouse_input::Moment;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Days of the week from Monday on.
const WEEK: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Daylight saving rule of a region.
#[derive(Clone, Copy)]
enum SummerTime {
    /// The region has no daylight saving time.
    Never,
    /// United States and Canada: from the second Sunday of March to the first of November, at 2 AM local time.
    American,
    /// Europe: from the last Sunday of March to the last of October, at 1 o'clock UTC.
    European,
}

/// Cloud regions: prefix of the zone's name, hours of standard time ahead of UTC, and daylight
/// saving rule. Longer prefixes come before shorter ones that they begin with.
const REGIONS: [(&str, i64, SummerTime); 19] = [
    ("us-central", -6, SummerTime::American),
    ("us-south", -6, SummerTime::American),
    ("us-east", -5, SummerTime::American),
    ("us-west3", -7, SummerTime::American),
    ("us-west", -8, SummerTime::American),
    ("northamerica-northeast", -5, SummerTime::American),
    ("europe-north", 2, SummerTime::European),
    ("europe-west2", 0, SummerTime::European),
    ("europe-west", 1, SummerTime::European),
    ("europe-central", 1, SummerTime::European),
    ("europe-southwest", 1, SummerTime::European),
    ("eu-west-1", 0, SummerTime::European),
    ("eu-west-2", 0, SummerTime::European),
    ("eu-central", 1, SummerTime::European),
    ("asia-northeast", 9, SummerTime::Never),
    ("asia-southeast2", 7, SummerTime::Never),
    ("asia-southeast1", 8, SummerTime::Never),
    ("asia-east", 8, SummerTime::Never),
    ("ap-northeast-1", 9, SummerTime::Never),
];

/// Hour and day of the week on the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// The hour of the day, 0 to 23.
    pub(crate) hour: i64,
    /// The day of the week in English.
    pub(crate) day: &'static str,
}

impl LocalTime {
    /// Local time, in a cloud zone, of an instant with a time zone; if the cloud zone is unknown, on the clock of the
    /// instant's own time zone. `None`: the text is no such instant.
    pub(crate) fn read(text: &str, zone: &str) -> Option<Self> {
        let at = Moment::read(text).filter(|at| at.has_zone == Some(true))?;
        let known = REGIONS.iter().find(|(region, ..)| zone.starts_with(region));
        let ahead = known.map_or(at.east, |(_, hours, summer)| {
            hours * HOUR + if is_summer(*summer, at.second, hours * HOUR) { HOUR } else { 0 }
        });
        let local = at.second + ahead;
        let day = WEEK[weekday_index(local.div_euclid(DAY))];
        Some(Self { hour: local.rem_euclid(DAY) / HOUR, day })
    }
}

/// Index in [`WEEK`] of a day since 1970, which began with a Thursday.
fn weekday_index(day: i64) -> usize {
    usize::try_from((day + 3).rem_euclid(7)).unwrap_or(0)
}

/// True if daylight saving time applies at this second since 1970; standard time is `east` seconds
/// ahead of UTC.
fn is_summer(summer: SummerTime, second: i64, east: i64) -> bool {
    // Near the turn of the year the year may be one too many or few: it is winter in both.
    let year = 1970 + second * 400 / (146_097 * DAY);
    // The Sunday on or after a day of the year, which the calendar always has.
    let sunday = |date: &str| {
        let day = Moment::read(&format!("{year}-{date}")).map_or(0, |at| at.second / DAY);
        (day + 6 - i64::try_from(weekday_index(day)).unwrap_or(0)) * DAY
    };
    match summer {
        SummerTime::Never => false,
        SummerTime::American => {
            let (begins, ends) = (sunday("03-08") + 2 * HOUR, sunday("11-01") + HOUR);
            (begins..ends).contains(&(second + east))
        }
        SummerTime::European => (sunday("03-25") + HOUR..sunday("10-25") + HOUR).contains(&second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, zone: &str) -> (i64, &'static str) {
        let local = LocalTime::read(text, zone).expect("an instant");
        (local.hour, local.day)
    }

    #[test]
    fn clocks_are_those_of_the_zone_whatever_the_clock_of_the_file() {
        // A Monday at half past nine in the evening in California.
        let text = "2019-03-25T21:30:00.123-07:00";
        for (zone, local) in [
            ("us-west1-a", (21, "Monday")),
            ("us-central1-c", (23, "Monday")),
            ("us-east1-b", (0, "Tuesday")),
            ("europe-west2-c", (4, "Tuesday")),
            ("europe-west4-a", (5, "Tuesday")),
            ("europe-north1-a", (6, "Tuesday")),
            ("asia-northeast1-b", (13, "Tuesday")),
            // A zone that nobody knows: the file's clock.
            ("moon-1", (21, "Monday")),
            ("", (21, "Monday")),
        ] {
            assert_eq!(at(text, zone), local, "{zone}");
        }
        assert_eq!(LocalTime::read("2019-03-25T21:30:00", "us-east1-b"), None, "of no time zone");
        assert_eq!(LocalTime::read("1553574600", "us-east1-b"), None);
    }

    /// 2019: from March 10 to November 3 in America, from March 31 to October 27 in Europe.
    #[test]
    fn summer_begins_and_ends_on_its_sundays() {
        for (utc, zone, hour) in [
            ("2019-03-10T07:59:59Z", "us-central1-c", 1),
            ("2019-03-10T08:00:00Z", "us-central1-c", 3),
            ("2019-11-03T06:59:59Z", "us-central1-c", 1),
            ("2019-11-03T07:00:00Z", "us-central1-c", 1),
            ("2019-11-03T08:00:00Z", "us-central1-c", 2),
            ("2019-03-31T00:59:59Z", "europe-west4-a", 1),
            ("2019-03-31T01:00:00Z", "europe-west4-a", 3),
            ("2019-10-27T00:59:59Z", "europe-west4-a", 2),
            ("2019-10-27T01:00:00Z", "europe-west4-a", 2),
            ("2020-12-31T23:30:00Z", "us-east1-b", 18),
            ("2021-01-01T00:30:00Z", "us-east1-b", 19),
        ] {
            assert_eq!(at(utc, zone).0, hour, "{utc} {zone}");
        }
    }
}
