//! The switch of the bugs that are put in on purpose, so that one build has them all.
//!
//! `scripts/planted` makes this a module of its copy of `dormouse-units`; nothing else is built with it.

use std::sync::LazyLock;

/// The number of the bug that is on in this process.
static PLANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("DORMOUSE_PLANTED").ok());

/// Whether the bug of this number is on.
#[must_use]
pub fn is_planted(number: &str) -> bool {
    PLANTED.as_deref() == Some(number)
}
