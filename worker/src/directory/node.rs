//! One object in a task's directory, as a checkpoint records it.

use std::{
    collections::BTreeMap,
    path::{Component, Path},
};

use blake3::Hash;
use serde::{Deserialize, Serialize};

use super::attributes::are_plain;

/// A file, directory or other object in a task's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryNode {
    /// Path relative to the directory.
    pub path: String,
    /// Kind of the object.
    pub kind: NodeKind,
    /// The attributes that the program has given the object (`user.*`), each value in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Kind of an object at a path of a task's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NodeKind {
    /// A directory.
    Directory {
        /// The permission bits of the directory.
        mode: u32,
    },
    /// A regular file.
    File {
        /// Length of the file in bytes, holes included.
        size: u64,
        /// BLAKE3 of the file's content, in hexadecimal.
        blake3: String,
        /// The permission bits of the file.
        mode: u32,
        /// The time at which the file was last written, in nanoseconds since 1970.
        modified_ns: i64,
    },
    /// A further name (hard link) of a regular file that is listed before.
    SameAs {
        /// The path under which the file is listed before.
        path: String,
    },
    /// A symbolic link, which is kept and never followed.
    Link {
        /// The path that the link leads to.
        target: String,
    },
    /// A pipe with a name.
    Pipe {
        /// The permission bits of the pipe.
        mode: u32,
    },
}

impl DirectoryNode {
    /// Makes a node without attributes at a path.
    #[must_use]
    pub fn plain_node(path: impl Into<String>, kind: NodeKind) -> Self {
        Self { path: path.into(), kind, attributes: BTreeMap::new() }
    }

    /// Returns the digest of a regular file's content, and the content's length in bytes; `None` for other objects.
    #[must_use]
    pub fn file_content(&self) -> Option<(&str, u64)> {
        match &self.kind {
            NodeKind::File { size, blake3, .. } => Some((blake3, *size)),
            _ => None,
        }
    }
}

/// Reasons why a list of nodes doesn't describe a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InvalidNode {
    /// A path leads out of the directory, or is not in order.
    Path(String),
    /// A digest is invalid, or used for contents of two lengths.
    Digest(String),
}

/// Checks a list of nodes that came from elsewhere: the paths must be plain, each must occur once and after the
/// directory that contains it, and digests must be valid.
pub(crate) fn check_nodes(nodes: &[DirectoryNode]) -> Result<(), InvalidNode> {
    let mut kinds: BTreeMap<&str, &NodeKind> = BTreeMap::new();
    let mut lengths: BTreeMap<&str, u64> = BTreeMap::new();
    for DirectoryNode { path, kind, attributes } in nodes {
        let wrong = || InvalidNode::Path(path.clone());
        if !is_plain(path) || !are_plain(attributes) || kinds.contains_key(path.as_str()) {
            return Err(wrong());
        }
        let parent = path.rsplit_once('/').map(|(parent, _)| parent);
        if parent.is_some_and(|at| !matches!(kinds.get(at), Some(NodeKind::Directory { .. }))) {
            return Err(wrong());
        }
        match kind {
            NodeKind::File { size, blake3, .. } => {
                let digest = || InvalidNode::Digest(blake3.clone());
                Hash::from_hex(blake3).map_err(|_| digest())?;
                if *lengths.entry(blake3).or_insert(*size) != *size {
                    return Err(digest());
                }
            }
            NodeKind::SameAs { path: first } => {
                if !matches!(kinds.get(first.as_str()), Some(NodeKind::File { .. })) {
                    return Err(wrong());
                }
            }
            NodeKind::Link { target } if target.is_empty() || target.contains('\0') => {
                return Err(wrong());
            }
            NodeKind::Directory { .. } | NodeKind::Link { .. } | NodeKind::Pipe { .. } => {}
        }
        kinds.insert(path, kind);
    }
    Ok(())
}

/// Returns whether a path is relative, without `.` and `..`, and in its shortest form.
pub(crate) fn is_plain(path: &str) -> bool {
    let parts = Path::new(path).components();
    let plain: Vec<_> = parts
        .map_while(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    !path.is_empty() && !path.contains('\0') && plain.join("/") == path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> DirectoryNode {
        DirectoryNode::plain_node(path, NodeKind::Directory { mode: 0o755 })
    }

    fn file(path: &str, blake3: &str, size: u64) -> DirectoryNode {
        let kind = NodeKind::File { size, blake3: blake3.to_owned(), mode: 0o644, modified_ns: 0 };
        DirectoryNode::plain_node(path, kind)
    }

    #[test]
    fn only_what_can_be_a_directory_is_taken_for_one() {
        let digest = "a".repeat(64);
        let fine = [directory("a"), file("a/b", &digest, 1), file("c", &digest, 1)];
        assert_eq!(check_nodes(&fine), Ok(()));
        for path in ["../x", "/x", "", "a/../x", "./x", "a//b", "a/", "nul\0"] {
            let list = [directory("a"), file(path, &digest, 1)];
            assert_eq!(check_nodes(&list), Err(InvalidNode::Path(path.to_owned())), "{path:?}");
        }
        let twice = [directory("a"), directory("a")];
        let orphan = [file("a/b", &digest, 1)];
        let below_a_file = [file("a", &digest, 1), file("a/b", &digest, 1)];
        for list in [&twice[..], &orphan, &below_a_file] {
            assert!(matches!(check_nodes(list), Err(InvalidNode::Path(_))), "{list:?}");
        }
        let two_lengths = [file("a", &digest, 1), file("b", &digest, 2)];
        assert!(matches!(check_nodes(&two_lengths), Err(InvalidNode::Digest(_))));
        assert!(matches!(check_nodes(&[file("a", "../../etc", 1)]), Err(InvalidNode::Digest(_))));
        let same = |first: &str| {
            let kind = NodeKind::SameAs { path: first.to_owned() };
            [file("a", &digest, 1), DirectoryNode::plain_node("b", kind)]
        };
        assert_eq!(check_nodes(&same("a")), Ok(()));
        assert!(matches!(check_nodes(&same("elsewhere")), Err(InvalidNode::Path(_))));
        let mut powerful = file("a", &digest, 1);
        powerful.attributes.insert("security.capability".to_owned(), "01".to_owned());
        assert!(matches!(check_nodes(&[powerful]), Err(InvalidNode::Path(_))));
    }
}
