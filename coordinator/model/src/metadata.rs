//! Settings of the metadata endpoint for VMs that run users' own programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the metadata service that programs on VMs reach at 169.254.169.254.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct MetadataSettings {
    /// Whether requests of EC2's dialect need a token, as version 2 of its service demands.
    pub tokens: MetadataTokens,
    /// Number of network hops that a packet of an answer may make; the system's number if it is not given.
    #[schemars(range(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    /// On which clock the times of notices are.
    pub times: MetadataTimes,
    /// Tags of all VMs, at most 50, which programs can read from the metadata (EC2's `tags/instance/NAME`): names of letters,
    /// digits and `+-=.,_:@`. There are none if it is not given.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = r#"{ Name = "worker", team = "weather" }"#)]
    pub tags: BTreeMap<String, String>,
    /// The text that all VMs offer as user data, 16 KiB at most (EC2's `user-data`): programs can read it, and nothing runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "key = value")]
    pub user_data: Option<String>,
}

/// Greatest number of tags of a VM, as on EC2.
const MOST_TAGS: usize = 50;
/// Greatest number of letters of a tag's name, and of its value.
const MOST_LETTERS: (usize, usize) = (128, 256);
/// Greatest size of user data in bytes.
const MOST_USER_DATA: usize = 16 << 10;

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
    /// True if no setting was changed.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the keys of the first invalid setting, the mistake and the remedy; `None`: all settings are valid.
    #[must_use]
    pub fn first_flaw(&self) -> Option<(Vec<&str>, String, &'static str)> {
        let Self { tags, user_data, .. } = self;
        if tags.len() > MOST_TAGS {
            let what = format!("{} tags are too many", tags.len());
            return Some((vec!["tags"], what, "give 50 at most"));
        }
        for (name, value) in tags {
            if !is_tag_name(name) {
                let what = format!("'{name}' can't be the name of a tag in metadata");
                return Some((
                    vec!["tags", name],
                    what,
                    "write 1 to 128 of: letters, digits, + - = . , _ : @",
                ));
            }
            if value.chars().count() > MOST_LETTERS.1 || value.chars().any(char::is_control) {
                let remedy = "write at most 256 characters in one line";
                return Some((
                    vec!["tags", name],
                    "a tag's value can't be this".to_owned(),
                    remedy,
                ));
            }
        }
        let too_long = user_data.as_ref().filter(|text| text.len() > MOST_USER_DATA);
        too_long.map(|text| {
            let what = format!("user data of {} bytes are too long", text.len());
            (vec!["user-data"], what, "give 16 KiB at most")
        })
    }
}

/// True if a tag's name can be a path of the metadata.
fn is_tag_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_alphanumeric() || "+-=.,_:@".contains(c);
    (1..=MOST_LETTERS.0).contains(&name.chars().count())
        && name.chars().all(is_fine)
        && ![".", "..", "_index"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_flaw(name: &str, value: &str) -> bool {
        let tags = [(name.to_owned(), value.to_owned())].into();
        let settings = MetadataSettings { tags, ..MetadataSettings::default() };
        settings.first_flaw().is_some_and(|(keys, ..)| keys == ["tags", name])
    }

    #[test]
    fn a_tag_has_a_name_that_is_a_path() {
        assert!(!has_flaw("aws:autoscaling:groupName", "two words"));
        for name in ["", "a/b", "two words", "..", "_index", &"x".repeat(129)] {
            assert!(has_flaw(name, "x"), "{name}");
        }
        assert!(has_flaw("a", "two\nlines"));
    }

    #[test]
    fn user_data_are_bounded() {
        let is_fine = |bytes| {
            let user_data = Some("x".repeat(bytes));
            MetadataSettings { user_data, ..MetadataSettings::default() }.first_flaw().is_none()
        };
        assert!(is_fine(16 << 10) && !is_fine((16 << 10) + 1));
    }
}
