//! The bucket on a real server of S3's protocol.

#[path = "../../../coordinator/tests/service/common/mod.rs"]
mod common;
mod lost;
mod s3;
mod server;
