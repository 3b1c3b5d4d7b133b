//! Data files that built-in experiments name and that can't be shipped with the program.

use std::env;
use std::path::{Path, PathBuf};

use dormouse_documents::{Mistakes, Node};

/// Path of the file that the key `key` of the table at `node` names. Files of built-in experiments
/// are also found where `scripts/get-data` puts them.
pub(crate) fn file(node: &Node, key: &str, name: &str, found: &mut Mistakes) -> Option<PathBuf> {
    let place = node.place_of(key);
    let path = place.file(name);
    let is_built_in = place.at.is_some() && place.source.ends_with("(built in)");
    if !is_built_in || path.exists() {
        return Some(path);
    }
    let obtained = data_folders().map(|folder| folder.join(name)).find(|path| path.exists());
    if obtained.is_none() {
        let what = format!("{name} is public and not ours to ship, and it is not here");
        let remedy = format!(
            "fetch it with `scripts/get-data`, or give another with --set {}=FILE",
            place.path
        );
        found.add(place, what, remedy);
    }
    obtained
}

/// Folders where `scripts/get-data` puts files: `$DORMOUSE_HOME/data`, or `.dormouse/data` in a
/// directory above the current one or this program.
fn data_folders() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("DORMOUSE_HOME").filter(|home| !home.is_empty());
    let above = [env::current_dir().ok(), env::current_exe().ok()];
    let above: Vec<PathBuf> = above
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors().map(|dir| dir.join(".dormouse/data")))
        .collect();
    home.map(|home| Path::new(&home).join("data")).into_iter().chain(above)
}
