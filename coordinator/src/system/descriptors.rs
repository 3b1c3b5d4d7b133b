//! The number of files and connections that this process may have open.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Number of descriptors to which the soft limit is raised at most: some programs that a process starts go through all
/// descriptors that they might have.
const ENOUGH: u64 = 65_536;
/// Usual limit on a process's descriptors.
const USUAL: u64 = 1_024;

/// Returns the number of descriptors that this process may have.
#[must_use]
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(USUAL, |(soft, _)| soft)
}

/// Raises the soft limit of descriptors to the hard limit, but to no more than 65,536; returns the new limit.
///
/// # Errors
///
/// The system refuses: the limit is unchanged.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = hard.min(ENOUGH);
    if wanted <= soft {
        return Ok(soft);
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be_and_never_lowered() {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("it has one");
        let raised = raise_descriptor_limit().expect("no right is needed");
        assert_eq!(raised, before.max(hard.min(ENOUGH)));
        assert_eq!(descriptor_limit(), raised);
        assert_eq!(raise_descriptor_limit().expect("nothing is to be done"), raised);
    }
}
