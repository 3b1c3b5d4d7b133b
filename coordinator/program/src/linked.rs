//! Schedulers of other crates that are compiled into this program.

use std::sync::{Mutex, PoisonError};

use dormouse_policies::Policy;

use crate::{Hello, ProgramError};

/// Makes a scheduler for the work that the hello describes.
pub type Make = fn(&Hello) -> Box<dyn Policy>;

static LINKED: Mutex<Vec<(&str, Make)>> = Mutex::new(Vec::new());

/// Makes a scheduler known by its name, for `scheduler.linked` of an experiment and `--scheduler`.
/// One of the same name is replaced.
pub fn link(name: &'static str, make: Make) {
    let mut all = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(known, _)| *known != name);
    all.push((name, make));
}

/// Whether a scheduler of this name is part of this program.
#[must_use]
pub fn is_linked(name: &str) -> bool {
    LINKED.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(known, _)| *known == name)
}

/// The names of all schedulers of other crates.
#[must_use]
pub fn linked() -> Vec<&'static str> {
    LINKED.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(name, _)| *name).collect()
}

/// The scheduler of this name.
pub(crate) fn made(name: &str, hello: &Hello) -> Result<Box<dyn Policy>, ProgramError> {
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
