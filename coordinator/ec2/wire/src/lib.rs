//! EC2's query protocol, from botocore's service model alone: requests are read to [`WireValue`]s
//! and checked against the model, answers are written as EC2's XML.
//!
//! The model is a data file (`data/ec2.json`, Apache-2.0, see `data/botocore-NOTICE`), stripped by `scripts/ec2-model`
//! to the supported actions. An action or a parameter that the model lacks is refused by its name; nothing that a
//! client sends is ignored.

mod check;
mod error;
mod instant;
mod member_map;
mod model;
mod parameters;
mod read;
mod request;
mod value;
mod write;

pub use error::ApiError;
pub use instant::{read_instant, write_instant};
pub use member_map::MemberMap;
pub use model::{ModelError, ServiceModel};
pub use parameters::{QueryPairs, read_query};
pub use read::read_input;
pub use request::{ApiRequest, read_request, request_of};
pub use value::{SharedValue, WireValue};
pub use write::{ValueMismatch, write_error, write_response};
