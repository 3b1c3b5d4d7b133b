//! HADS's primary schedule: `D_spot` and the greedy map (Burst-HADS III-C, Algorithm 2).

mod greedy;
mod round_robin;
mod spot_limit;

pub(crate) use greedy::greedy_map;
pub(crate) use spot_limit::spot_limit;
