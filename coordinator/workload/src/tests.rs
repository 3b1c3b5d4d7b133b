//! Tests of the whole crate through its public interface: logs, models, files and streams.

mod batch_oracle;
mod log_formats;
mod logs;
mod malformed;
mod models;
mod optional_fields;
mod published_logs;
mod request_files;
mod request_traces;
mod requests;
mod workflows;
