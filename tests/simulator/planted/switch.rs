//! The switch for bugs that are planted on purpose, so that one build has them all.
//!
//! `scripts/planted` makes this a module of its copy of `dormouse-units`; nothing else is built with it.

use std::sync::LazyLock;

/// The number of the planted bug that is on in this process, if one is.
static PLANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("DORMOUSE_PLANTED").ok());

/// Whether the planted bug of this number is on.
#[must_use]
pub fn is_planted(number: &str) -> bool {
    PLANTED.as_deref() == Some(number)
}
