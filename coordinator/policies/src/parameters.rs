//! Parameters that only one scheduler has.

use dormouse_units::written;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::PlanError;

/// The type of a scheduler's own parameters: a struct, read as people write it.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// No parameter.
#[derive(Debug, JsonSchema)]
struct Nothing {}

impl Parameters {
    /// None of its own.
    pub const NONE: Self = Self { schema: Nothing::json_schema };

    /// Those of `P`, whose doc comments are what the reference says of them.
    #[must_use]
    pub const fn of<P: JsonSchema + DeserializeOwned>() -> Self {
        Self { schema: P::json_schema }
    }

    /// What can be written.
    #[must_use]
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

/// Values of such parameters, as they were written; those that nobody set are not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Own(pub Map<String, Value>);

impl Own {
    /// Whether none was set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    ///
    /// # Errors
    ///
    /// [`PlanError::Parameters`]: one has a value that its type does not.
    pub fn read<P: DeserializeOwned>(&self) -> Result<P, PlanError> {
        written::read(&Value::Object(self.0.clone()))
            .map_err(|error| PlanError::Parameters(error.to_string()))
    }
}
