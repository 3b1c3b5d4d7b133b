//! Versions of Azure's two services, as a VM of 2025 names them.

/// Versions of the scheduled events, the newest last.
pub(super) const EVENT_VERSIONS: &[&str] =
    &["2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"];

/// Versions of the instance metadata, the newest last.
pub(super) const INSTANCE_VERSIONS: &[&str] = &[
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-08-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
];

/// A version that is answered: the date at which its answers were fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version(&'static str);

impl Version {
    /// The version of this date.
    pub(super) const fn new(date: &'static str) -> Self {
        Self(date)
    }

    /// Whether the version has what came with the version of that date.
    pub(super) fn has(self, since: &str) -> bool {
        // Dates of this form are in the order of their letters.
        self.0 >= since
    }
}
