//! `dormouse list` and `dormouse show`.

use serde_json::json;

use super::failure::Failure;
use super::print::print;
use crate::experiment::{Builtin, Source, open};

pub(crate) fn list(as_json: bool) -> Result<(), Failure> {
    let all: Vec<_> = Builtin::all().map(|b| (b.name(), b.description())).collect();
    if as_json {
        let list: Vec<_> =
            all.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
        return print(&format!("{:#}", json!(list)));
    }
    let lines: Vec<_> = all.iter().map(|(name, about)| format!("{name:<11} {about}")).collect();
    print(&lines.join("\n"))
}

pub(crate) fn show(name: &str) -> Result<(), Failure> {
    let Some(builtin) = Builtin::named(name) else {
        let source = Source { experiment: Some(name), ..Source::default() };
        return match open(&source) {
            Err(error) => Err(error.into()),
            Ok(_) => Err(Failure::BadInput(format!(
                "{name}: it is a file of yours; show prints built-in experiments"
            ))),
        };
    };
    print(builtin.text().trim_end())
}
