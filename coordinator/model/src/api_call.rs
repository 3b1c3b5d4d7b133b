//! A call of an emulated provider's API, as the log has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that may change something at the provider, with all that its answer depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCall {
    /// The account that calls: the access key that signed the call.
    pub account: String,
    /// The cloud region that the call is for.
    pub region: String,
    /// Name of the called action, as the provider's API spells it.
    pub action: String,
    /// The version of the API that the caller uses.
    pub version: String,
    /// The parameters of the call, as JSON.
    pub input: Value,
}
