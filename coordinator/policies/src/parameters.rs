//! Parameters that only one scheduler has.

use dormouse_units::written;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::PlanError;

/// JSON schema of the parameters that only one scheduler has, made from a struct.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSchema {
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Parameters of a scheduler that has no parameters of its own.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Nothing")]
struct NoParameters {}

impl ParameterSchema {
    /// The scheduler has no parameters of its own.
    pub const NONE: Self = Self { schema: NoParameters::json_schema };

    /// Makes the schema of the struct `P`; the doc comments of its fields become the text of the reference.
    #[must_use]
    pub const fn from_type<P: JsonSchema + DeserializeOwned>() -> Self {
        Self { schema: P::json_schema }
    }

    /// JSON schema of the parameters.
    #[must_use]
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

/// Values of a scheduler's own parameters, as they were written; parameters that nobody set are
/// missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Own(pub Map<String, Value>);

impl Own {
    /// True if no parameter was set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads all parameters.
    ///
    /// # Errors
    ///
    /// [`PlanError::ParameterSchema`]: a parameter has a value that its type does not have.
    pub fn read<P: DeserializeOwned>(&self) -> Result<P, PlanError> {
        written::read(&Value::Object(self.0.clone()))
            .map_err(|error| PlanError::Parameters(error.to_string()))
    }
}
