//! Metadata as a tree: directories of names, and values.

/// A node of the tree of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeNode {
    /// The node is a value, as text.
    Value(String),
    /// The node is a directory: named children in listing order.
    Directory(Vec<(String, Self)>),
}

impl TreeNode {
    /// A value node.
    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }

    /// A directory node with the given children.
    pub(crate) fn directory<const N: usize>(children: [(&str, Self); N]) -> Self {
        let children = children.into_iter().map(|(name, node)| (name.to_owned(), node));
        Self::Directory(children.collect())
    }

    /// The node at a path; `None`: there is none.
    pub(crate) fn node_at(&self, path: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self {
            Self::Value(_) => None,
            Self::Directory(children) => {
                children.iter().find(|(name, _)| name == first)?.1.node_at(rest)
            }
        }
    }

    /// Lines of a directory's listing, one name a line, with a slash after names of directories; or the text of a
    /// value.
    pub(crate) fn listing_lines(&self) -> Vec<String> {
        match self {
            Self::Value(text) => vec![text.clone()],
            Self::Directory(children) => children
                .iter()
                .map(|(name, node)| match node {
                    Self::Value(_) => name.clone(),
                    Self::Directory(_) => format!("{name}/"),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_what_is_there() {
        let tree = TreeNode::directory([
            ("a", TreeNode::value("1")),
            ("b", TreeNode::directory([("c", TreeNode::value("2"))])),
        ]);
        assert_eq!(tree.listing_lines(), ["a", "b/"]);
        assert_eq!(tree.node_at(&["b", "c"]), Some(&TreeNode::value("2")));
        assert_eq!(tree.node_at(&["a", "c"]), None);
        assert_eq!(tree.node_at(&["d"]), None);
    }
}
