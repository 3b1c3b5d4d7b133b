//! What has to be there before a live run begins on workers of this host.

use dormouse_host::doctor::{Finding, lacking};

use super::failure::Failure;

/// Refuses a run that can't be live here, in `doctor`'s words.
pub(super) fn check(name: &str, needs_criu: bool) -> Result<(), Failure> {
    let Some(Finding { name: what, found, fix, .. }) = lacking(needs_criu) else { return Ok(()) };
    let fix = fix.map(|fix| format!("; fix: {fix}")).unwrap_or_default();
    Err(Failure::BadInput(format!(
        "{name}: it can't run live here: {what}: {found}{fix}; --virtual needs nothing"
    )))
}
