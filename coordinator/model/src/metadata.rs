//! The metadata endpoint of VMs on which programs of the user's own run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How VMs answer what programs on them ask at 169.254.169.254.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct MetadataSettings {
    /// Whether requests of EC2's dialect need a token, as version 2 of its service demands.
    pub tokens: MetadataTokens,
    /// How many hosts a packet of an answer may pass; as the system has it where it is not given.
    #[schemars(range(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    /// On which clock the times of notices are.
    pub times: MetadataTimes,
}

/// Whether requests need a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataTokens {
    /// Requests without a token are answered as well.
    #[default]
    Optional,
    /// Requests without a token are refused.
    Required,
}

/// The clock on which times are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataTimes {
    /// The wall clock, as the program reads it: the speed-up is applied.
    #[default]
    Real,
    /// The run's clock, counted from the instant at which the run began.
    Emulated,
}

impl MetadataSettings {
    /// Whether nobody has set anything.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
