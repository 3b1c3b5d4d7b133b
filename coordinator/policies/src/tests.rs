//! Tests of schedulers through the public interface of the crate.

mod ils_bound;
