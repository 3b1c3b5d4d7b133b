//! Metadata as a tree: directories of names, and values.

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// The value of a path, as text.
    Value(String),
    /// Names and what is under them, in the order in which they are listed.
    Directory(Vec<(String, Self)>),
}

impl Node {
    /// A node with this text.
    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }

    /// A node with these names and what is under them.
    pub(crate) fn directory<const N: usize>(children: [(&str, Self); N]) -> Self {
        let children = children.into_iter().map(|(name, node)| (name.to_owned(), node));
        Self::Directory(children.collect())
    }

    /// The node at the end of a path; `None`: nothing.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self {
            Self::Value(_) => None,
            Self::Directory(children) => {
                children.iter().find(|(name, _)| name == first)?.1.at(rest)
            }
        }
    }

    /// The names in a directory, each in a line, of directories with a slash; the text of a value.
    pub(crate) fn lines(&self) -> Vec<String> {
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
        let tree = Node::directory([
            ("a", Node::value("1")),
            ("b", Node::directory([("c", Node::value("2"))])),
        ]);
        assert_eq!(tree.lines(), ["a", "b/"]);
        assert_eq!(tree.at(&["b", "c"]), Some(&Node::value("2")));
        assert_eq!(tree.at(&["a", "c"]), None);
        assert_eq!(tree.at(&["d"]), None);
    }
}
