//! Where requests come from.

use std::path::PathBuf;

use dormouse_cloud::Market;
use dormouse_units::{Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Request;
use super::model::RequestModel;

/// Where requests come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RequestSource {
    /// They are written down here.
    Written {
        /// In the order of their times.
        request: Vec<RequestSpec>,
    },
    /// A CSV file, plain or gzipped.
    Csv {
        /// The file.
        csv: PathBuf,
    },
    /// A model.
    Model {
        /// What it draws by.
        model: RequestModel,
    },
}

/// A request for a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Request")]
pub struct RequestSpec {
    /// When it comes, from the beginning.
    #[serde(default)]
    #[schemars(example = "10m")]
    pub at: Span,
    /// The instance type of the VM.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// `on-demand`: a normal request; `spot`: a preemptible one.
    pub market: Market,
    /// How long the VM is wanted from when it is ready.
    #[schemars(extend("least" = "1us"), example = "2h")]
    pub duration: Span,
}

impl RequestSpec {
    /// What is requested.
    #[must_use]
    pub fn request(&self) -> Request {
        Request { kind: self.kind.clone(), market: self.market, duration: self.duration }
    }
}
