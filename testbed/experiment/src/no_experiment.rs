//! Error for a name that is neither an experiment file nor a built-in experiment.

use std::path::Path;

use dormouse_documents::instead;

use super::BuiltinExperiment;

/// Error text and remedy for a name that is neither an experiment file nor a built-in experiment.
pub(crate) fn no_experiment(name: &str, is_like_a_path: bool) -> (String, String) {
    let path = Path::new(name);
    if path.is_dir() {
        return folder_given(path);
    }
    let files = toml_files_beside(path);
    let here = format!("{name}.toml");
    if files.contains(&here) {
        return (MISSING.to_owned(), format!("did you mean '{here}'?"));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if is_like_a_path {
        let what = "No such file or directory (os error 2)".to_owned();
        let known: Vec<&str> = files.iter().map(String::as_str).collect();
        let guess = instead(name, &known);
        return match BuiltinExperiment::named(&stem) {
            Some(_) => {
                let write = format!("`dormouse show {stem} > {name}` writes that file");
                (what, format!("the built-in experiment is called {stem}; {write}"))
            }
            None if guess.starts_with("did you mean") => (what, guess),
            None => (what, "give the path of an existing file".to_owned()),
        };
    }
    let names: Vec<String> =
        BuiltinExperiment::all().map(|builtin| builtin.name()).chain(files).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let guess = instead(name, &known);
    // A list of some fifty names would be no help.
    let remedy = match guess.starts_with("did you mean") {
        true => guess,
        false => "`dormouse list` has their names; or give the path of a TOML file".to_owned(),
    };
    (MISSING.to_owned(), remedy)
}

const MISSING: &str = "no such file, and no built-in experiment of this name";

fn folder_given(path: &Path) -> (String, String) {
    if path.join("events.jsonl").is_file() {
        let remedy = "give the experiment that was run; `dormouse check`, `explain` and `watch` take the folder";
        return ("it is the folder of a run".to_owned(), remedy.to_owned());
    }
    let inside = toml_files_beside(&path.join("x")).into_iter().next();
    let such = inside.map(|file| format!(", such as {file}")).unwrap_or_default();
    ("it is a folder".to_owned(), format!("give a TOML file, not a directory{such}"))
}

/// The TOML files in the folder of a path, sorted, as the user would name them.
fn toml_files_beside(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).into_iter().flatten().flatten();
    let names = entries.map(|entry| folder.join(entry.file_name()));
    let is_toml = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "toml");
    let mut files: Vec<String> =
        names.filter(is_toml).map(|path| path.to_string_lossy().into_owned()).collect();
    files.sort();
    files
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_name_is_answered_with_a_right_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        std::fs::write(at("mine.toml"), "").unwrap();
        std::fs::create_dir(at("run")).unwrap();
        std::fs::write(at("run/events.jsonl"), "").unwrap();
        let remedy = |name: &str| no_experiment(name, name.contains('/')).1;
        assert_eq!(remedy(&at("mine")), format!("did you mean '{}'?", at("mine.toml")));
        assert_eq!(remedy(&at("mien.toml")), format!("did you mean '{}'?", at("mine.toml")));
        assert!(remedy(&at("j60.toml")).starts_with("the built-in experiment is called j60; "));
        assert!(remedy(&at("run")).contains("dormouse check"));
        assert!(remedy(&at("")).ends_with("mine.toml"));
        assert_eq!(remedy("j06"), "did you mean 'j60'?");
        assert!(remedy("something-else").contains("dormouse list"));
    }
}
