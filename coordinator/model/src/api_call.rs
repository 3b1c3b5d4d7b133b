//! A call of an emulated provider's API, as the log has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that may change something at the provider, with all that its answer depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCall {
    /// The account that calls: the access key that signed the call.
    pub account: String,
    /// The region that is called.
    pub region: String,
    /// The action, as its API names it.
    pub action: String,
    /// The version of the API.
    pub version: String,
    /// The parameters, as JSON.
    pub input: Value,
}
