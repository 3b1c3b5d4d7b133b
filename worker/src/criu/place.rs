//! The places where CRIU is looked for, in one order for every command, every worker and every test.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folder of a CRIU that is installed for the whole system, by `scripts/get-criu --system`.
const SYSTEM: &str = "/usr/local/lib/dormouse";
/// Further paths where CRIU is looked for, as Debian installs it outside of an ordinary user's `PATH`.
const ADMINISTRATOR: [&str; 2] = ["/usr/sbin/criu", "/usr/local/sbin/criu"];

/// Finds the CRIU that this process uses: the one `named` by an option, or the first that exists of `$DORMOUSE_CRIU`,
/// `$DORMOUSE_HOME/criu/criu`, beside this program, `/usr/local/lib/dormouse/criu/criu`, `.dormouse/criu/criu` in a
/// folder above this program or the current one, the `PATH`, `/usr/sbin`. The path of the option or of
/// `$DORMOUSE_CRIU` is used even if nothing is there, so that errors are about this path.
#[must_use]
pub fn find_criu(named: Option<&Path>) -> Option<PathBuf> {
    SearchPlaces::of_process(named).first(Path::is_file)
}

/// Places in which CRIU is searched.
#[derive(Clone, Debug, Default)]
struct SearchPlaces {
    /// The path given by an option; `None`: no option gave a path.
    named: Option<PathBuf>,
    /// The value of `$DORMOUSE_CRIU`, if it is set.
    variable: Option<OsString>,
    /// The value of `$DORMOUSE_HOME`, if it is set.
    home: Option<OsString>,
    /// Path of this program; `None` if it isn't known.
    program: Option<PathBuf>,
    /// The current directory; `None` if it can't be read.
    current: Option<PathBuf>,
    /// The folders of `$PATH`, separated by colons.
    path: OsString,
}

impl SearchPlaces {
    fn of_process(named: Option<&Path>) -> Self {
        let said = |name| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            named: named.map(Path::to_owned),
            variable: said("DORMOUSE_CRIU"),
            home: said("DORMOUSE_HOME"),
            program: env::current_exe().ok(),
            current: env::current_dir().ok(),
            path: said("PATH").unwrap_or_default(),
        }
    }

    /// Returns the path that the user gave, or else the first place in which `is_there` finds CRIU; `None`: there is no CRIU.
    fn first(self, is_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let by_name = self.named.clone().or_else(|| self.variable.clone().map(PathBuf::from));
        by_name.or_else(|| self.places().into_iter().find(|place| is_there(place)))
    }

    /// Returns the places to search after the option and `$DORMOUSE_CRIU`, in order.
    fn places(&self) -> Vec<PathBuf> {
        let inside = |folder: PathBuf| folder.join("criu").join("criu");
        let mut all: Vec<PathBuf> = self.home.iter().map(|home| inside(home.into())).collect();
        if let Some(beside) = self.program.as_deref().and_then(Path::parent) {
            all.extend([inside(beside.to_owned()), beside.join("criu")]);
        }
        all.push(inside(SYSTEM.into()));
        let starts = self.program.iter().chain(&self.current);
        let above = starts.flat_map(|start| start.ancestors());
        all.extend(above.map(|folder| inside(folder.join(".dormouse"))));
        all.extend(env::split_paths(&self.path).map(|folder| folder.join("criu")));
        all.extend(ADMINISTRATOR.map(PathBuf::from));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each place is found once all places before it are gone.
    #[test]
    fn criu_is_looked_for_in_one_order() {
        let order = [
            "/option/criu",
            "/variable/criu",
            "/home/criu/criu",
            "/clone/target/demo/criu/criu",
            "/clone/target/demo/criu",
            "/usr/local/lib/dormouse/criu/criu",
            "/clone/.dormouse/criu/criu",
            "/here/.dormouse/criu/criu",
            "/first/criu",
            "/second/criu",
            "/usr/sbin/criu",
        ];
        let mut there: Vec<PathBuf> = order.iter().map(PathBuf::from).collect();
        let mut places = SearchPlaces {
            named: Some("/option/criu".into()),
            variable: Some("/variable/criu".into()),
            home: Some("/home".into()),
            program: Some("/clone/target/demo/dormouse".into()),
            current: Some("/here/below".into()),
            path: "/first:/second".into(),
        };
        for place in order {
            let found = places.clone().first(|path| there.iter().any(|there| there == path));
            assert_eq!(found.as_deref(), Some(Path::new(place)));
            there.remove(0);
            match place {
                "/option/criu" => places.named = None,
                "/variable/criu" => places.variable = None,
                _ => {}
            }
        }
        assert_eq!(places.first(|_| false), None);
    }

    #[test]
    fn what_is_named_is_taken_though_it_is_not_there() {
        let named = SearchPlaces { named: Some("/nowhere".into()), ..SearchPlaces::default() };
        assert_eq!(named.first(|_| false).as_deref(), Some(Path::new("/nowhere")));
        let by_variable =
            SearchPlaces { variable: Some("/nowhere".into()), ..SearchPlaces::default() };
        assert_eq!(by_variable.first(|_| false).as_deref(), Some(Path::new("/nowhere")));
    }
}
