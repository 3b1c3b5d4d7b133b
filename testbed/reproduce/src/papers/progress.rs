//! Progress of what takes long, as it is told to whoever waits.

/// Listener that is told the stage, and how many of how many runs of it are done.
pub type Progress<'a> = &'a mut (dyn FnMut(&str, usize, usize) + Send);
