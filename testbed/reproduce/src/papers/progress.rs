//! Progress reports of long computations.

/// Listener for progress: the stage, the number of finished runs, and the number of all.
pub type Progress<'a> = &'a mut (dyn FnMut(&str, usize, usize) + Send);
