//! Schedulers as whoever uses the crate has them.

mod ils_bound;
