//! Traits that all names of schedulers have in common.

/// Implements display, serialisation and a JSON schema of the enum `$Name` by its method `$name`.
macro_rules! names {
    ($Name:ident, $name:ident, $what:literal) => {
        impl $Name {
            /// Returns the scheduler with this name; `None`: there is none.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().chain([Self::Program]).find(|known| known.$name() == name)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.$name())
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.$name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'_, str>>::deserialize(from)?;
                Self::named(&name).ok_or_else(|| {
                    let all: Vec<_> = Self::ALL.iter().map(|known| known.$name()).collect();
                    let all = all.join(", ");
                    let what = format!("there is no {} '{name}' (there are {all})", $what);
                    serde::de::Error::custom(what)
                })
            }
        }

        impl schemars::JsonSchema for $Name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let one = |known: &Self| {
                    let (name, about) = (known.$name(), known.about());
                    schemars::json_schema!({ "const": name, "description": about })
                };
                let all: Vec<_> = Self::ALL.iter().chain([&Self::Program]).map(one).collect();
                schemars::json_schema!({ "oneOf": all })
            }
        }
    };
}

pub(crate) use names;
