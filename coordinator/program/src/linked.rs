//! Schedulers of other crates that are compiled into this program.

use std::sync::{Mutex, PoisonError};

use dormouse_policies::Policy;

use crate::{Hello, ProgramError};

/// Function that makes a scheduler for the work in the hello.
pub type Make = fn(&Hello) -> Box<dyn Policy>;

static LINKED: Mutex<Vec<(&str, Make)>> = Mutex::new(Vec::new());

/// Registers a scheduler under a name, for `scheduler.linked` of an experiment and `--scheduler`; it replaces a
/// scheduler of the same name.
pub fn link(name: &'static str, make: Make) {
    let mut all = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(known, _)| *known != name);
    all.push((name, make));
}

/// True if a scheduler of this name is linked into this program.
#[must_use]
pub fn is_linked(name: &str) -> bool {
    LINKED.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(known, _)| *known == name)
}

/// Names of all linked schedulers.
#[must_use]
pub fn linked() -> Vec<&'static str> {
    LINKED.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(name, _)| *name).collect()
}

/// Makes the linked scheduler of this name.
pub(crate) fn make_linked(name: &str, hello: &Hello) -> Result<Box<dyn Policy>, ProgramError> {
    let all = LINKED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, make)) => Ok(make(hello)),
        None => {
            let names: Vec<_> = all.iter().map(|(known, _)| *known).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(ProgramError::NotLinked { name: name.to_owned(), known })
        }
    }
}
