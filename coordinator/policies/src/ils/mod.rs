//! The iterated local search over task maps (Burst-HADS Algorithms 1 and 3).

mod pool;
mod search;
mod solution;

pub(crate) use search::improve_map;
