//! The content of a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file and folder below `root` with its size, sorted: equal trees mean nothing was left.
#[must_use]
pub fn tree(root: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let size = entry.metadata().map_or(0, |m| if m.is_dir() { 0 } else { m.len() });
            if path.is_dir() && !path.is_symlink() {
                left.push(path.clone());
            }
            all.push((path, size));
        }
    }
    all.sort();
    all
}
