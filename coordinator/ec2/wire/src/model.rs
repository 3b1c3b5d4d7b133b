//! The service model: the actions, and the shapes of their inputs and answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ApiError;

/// Shapes of a service's requests and answers, read from the data file that `scripts/ec2-model` makes.
#[derive(Clone, Debug)]
pub struct ServiceModel {
    version: String,
    namespace: String,
    actions: BTreeMap<String, ActionShapes>,
    shapes: Vec<WireShape>,
}

/// Input and answer of an action, as indices of [`ServiceModel::shapes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionShapes {
    pub(crate) input: Option<ShapeIndex>,
    pub(crate) output: Option<ShapeIndex>,
}

/// Index of a shape in [`ServiceModel::shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShapeIndex(usize);

/// The form of a value: a structure, a list, or a scalar.
#[derive(Clone, Debug)]
pub(crate) enum WireShape {
    Structure {
        /// The members in the order of the model.
        members: Vec<MemberShape>,
        /// The members by their names, in the order that values have them in.
        sorted: Vec<MemberShape>,
        required: Vec<String>,
    },
    /// A list of values of one shape; `item` is the name of each element in XML.
    List {
        item: String,
        of: ShapeIndex,
    },
    /// A string; if `values` isn't empty, the string is one of these values.
    Text {
        values: Vec<String>,
    },
    Integer,
    Float,
    Flag,
    Instant,
    Bytes,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(crate) struct MemberShape {
    /// Name of the member in values of the structure.
    pub(crate) name: String,
    /// Name of the member as a parameter of a request.
    pub(crate) query: String,
    /// Name of the member's element in an XML answer.
    pub(crate) xml: String,
    pub(crate) of: ShapeIndex,
}

/// Reasons why a data file isn't a model that this crate can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file isn't JSON, or has another layout.
    #[error("the service model is not as scripts/ec2-model writes it: {0}")]
    Layout(String),
    /// The model names a shape that it does not contain.
    #[error("the service model names the shape {0}, but does not have it: run scripts/ec2-model")]
    NoShape(String),
    /// A shape has a type that this crate does not know.
    #[error("the service model has the shape {shape} of type {of}, which is not known here")]
    UnknownType {
        /// The name of the shape.
        shape: String,
        /// The shape's type.
        of: String,
    },
}

#[derive(Deserialize)]
struct RawModel {
    metadata: RawMetadata,
    operations: BTreeMap<String, RawAction>,
    shapes: BTreeMap<String, RawShape>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMetadata {
    api_version: String,
    xml_namespace: String,
}

#[derive(Deserialize)]
struct RawAction {
    input: Option<String>,
    output: Option<String>,
}

#[derive(Deserialize)]
struct RawShape {
    r#type: String,
    #[serde(default)]
    members: Map<String, Value>,
    member: Option<RawMember>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default, rename = "enum")]
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMember {
    shape: String,
    location_name: Option<String>,
    query_name: Option<String>,
}

impl ServiceModel {
    /// The model of EC2 that is built in.
    pub fn ec2() -> Result<Self, ModelError> {
        Self::read(include_str!("../data/ec2.json"))
    }

    /// Reads a model in the layout of `scripts/ec2-model`.
    pub fn read(text: &str) -> Result<Self, ModelError> {
        let raw: RawModel =
            serde_json::from_str(text).map_err(|e| ModelError::Layout(e.to_string()))?;
        let indices: BTreeMap<&str, ShapeIndex> =
            raw.shapes.keys().enumerate().map(|(i, name)| (name.as_str(), ShapeIndex(i))).collect();
        let find = |name: &str| {
            indices.get(name).copied().ok_or_else(|| ModelError::NoShape(name.to_owned()))
        };
        let mut shapes = Vec::with_capacity(raw.shapes.len());
        for (name, shape) in &raw.shapes {
            shapes.push(read_shape(name, shape, &find)?);
        }
        let mut actions = BTreeMap::new();
        for (name, action) in &raw.operations {
            let input = action.input.as_deref().map(find).transpose()?;
            let output = action.output.as_deref().map(find).transpose()?;
            actions.insert(name.clone(), ActionShapes { input, output });
        }
        let namespace = format!("{}/", raw.metadata.xml_namespace.trim_end_matches('/'));
        Ok(Self { version: raw.metadata.api_version, namespace, actions, shapes })
    }

    /// The version of the API, like `2016-11-15`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The namespace of answers, with its last slash.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The actions that the model has, by name.
    pub fn actions(&self) -> impl Iterator<Item = &str> {
        self.actions.keys().map(String::as_str)
    }

    /// The names of an action's parameters, in the order of the model; empty for an action that the model does not
    /// have.
    pub fn parameters(&self, action: &str) -> Vec<&str> {
        let input = self.actions.get(action).and_then(|action| action.input);
        match input.map(|input| self.shape(input)) {
            Some(WireShape::Structure { members, .. }) => {
                members.iter().map(|member| member.name.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Shapes of the input and the answer of an action; an error if the model has no such action.
    pub(crate) fn action(&self, name: &str) -> Result<ActionShapes, ApiError> {
        self.actions.get(name).copied().ok_or_else(|| {
            let text = format!("The action {name} is not played here.");
            ApiError::new("UnsupportedOperation", text)
        })
    }

    /// The shape at an index that was taken from this model.
    pub(crate) fn shape(&self, at: ShapeIndex) -> &WireShape {
        // `read` makes no index past the end; a text is the harmless answer if it ever did.
        const TEXT: &WireShape = &WireShape::Text { values: Vec::new() };
        self.shapes.get(at.0).unwrap_or(TEXT)
    }
}

/// Makes the first letter a capital: `instanceId` becomes `InstanceId`.
fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn read_shape(
    name: &str,
    raw: &RawShape,
    find: &impl Fn(&str) -> Result<ShapeIndex, ModelError>,
) -> Result<WireShape, ModelError> {
    Ok(match raw.r#type.as_str() {
        "structure" => {
            let members = read_members(&raw.members, find)?;
            let mut sorted = members.clone();
            sorted.sort_by(|one, other| one.name.cmp(&other.name));
            WireShape::Structure { members, sorted, required: raw.required.clone() }
        }
        "list" => {
            let member = raw.member.as_ref().ok_or_else(|| {
                ModelError::Layout(format!("the list {name} does not say what it holds"))
            })?;
            let item = member.location_name.clone().unwrap_or_else(|| "member".to_owned());
            WireShape::List { item, of: find(&member.shape)? }
        }
        "string" | "character" => WireShape::Text { values: raw.values.clone() },
        "integer" | "long" => WireShape::Integer,
        "float" | "double" => WireShape::Float,
        "boolean" => WireShape::Flag,
        "timestamp" => WireShape::Instant,
        "blob" => WireShape::Bytes,
        of => return Err(ModelError::UnknownType { shape: name.to_owned(), of: of.to_owned() }),
    })
}

fn read_members(
    raw: &Map<String, Value>,
    find: &impl Fn(&str) -> Result<ShapeIndex, ModelError>,
) -> Result<Vec<MemberShape>, ModelError> {
    let member = |(name, value): (&String, &Value)| {
        let raw = RawMember::deserialize(value).map_err(|e| ModelError::Layout(e.to_string()))?;
        let query = match (&raw.query_name, &raw.location_name) {
            (Some(query), _) => query.clone(),
            (None, Some(location)) => capitalised(location),
            (None, None) => name.clone(),
        };
        let xml = raw.location_name.unwrap_or_else(|| name.clone());
        Ok(MemberShape { name: name.clone(), query, xml, of: find(&raw.shape)? })
    };
    raw.iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_ec2_has_the_actions_of_its_list() {
        let model = ServiceModel::ec2().expect("it is built in");
        let listed: Vec<&str> = include_str!("../data/ec2-actions.txt").lines().collect();
        assert_eq!(model.actions().collect::<Vec<_>>(), listed);
        assert_eq!(model.version(), "2016-11-15");
        assert_eq!(model.namespace(), "http://ec2.amazonaws.com/doc/2016-11-15/");
    }

    #[test]
    fn a_model_that_lacks_a_shape_is_refused_by_its_name() {
        let text = r#"{"metadata": {"apiVersion": "1", "xmlNamespace": "x"},
            "operations": {"Do": {"input": "Gone"}}, "shapes": {}}"#;
        assert_eq!(ServiceModel::read(text).err(), Some(ModelError::NoShape("Gone".to_owned())));
        let text = r#"{"metadata": {"apiVersion": "1", "xmlNamespace": "x"},
            "operations": {}, "shapes": {"Odd": {"type": "map"}}}"#;
        let odd = ModelError::UnknownType { shape: "Odd".to_owned(), of: "map".to_owned() };
        assert_eq!(ServiceModel::read(text).err(), Some(odd));
    }
}
