//! A page's commands as one script, and its output split by blocks.

use super::block::{Block, Kind};

/// Beginning of the line that comes before the output of a block.
const MARK: &str = "\u{1e}block ";

/// The bash script of these blocks: all commands in order, in one shell that ends when one fails, and each file
/// written where the page shows it. Before each block it prints a mark on a new line.
pub(super) fn script<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> String {
    let mut script = String::from("set -e\n");
    for Block { kind, text, line, .. } in blocks {
        match kind {
            Kind::Commands { .. } => {
                script.push_str(&mark(*line));
                script.push_str(text);
            }
            Kind::File(name) => {
                let file = format!("cat >{name} <<'END OF A FILE'\n{text}END OF A FILE\n");
                script.push_str(&file);
            }
            Kind::Printed | Kind::Excerpt => {}
        }
    }
    script.push_str(&mark(0));
    script
}

/// The shell command that prints a mark for the block at this line.
fn mark(line: usize) -> String {
    format!("printf '\\n%s\\n' '{MARK}{line}'\n")
}

/// The output of a script by blocks: for each block that was begun, the line number of its fence and its output. Line
/// 0 stands for the end.
pub(super) fn outputs(printed: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for line in printed.split_inclusive('\n') {
        let number = line.trim_end().strip_prefix(MARK).and_then(|n| n.parse().ok());
        match (number, found.last_mut()) {
            (Some(number), _) => found.push((number, String::new())),
            (None, Some((_, output))) => output.push_str(line),
            (None, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_has_the_line_of_its_block() {
        let printed = format!("noise\n\n{MARK}3\nfirst\n\n{MARK}9\nhalf a line\n{MARK}0\n");
        let first = (3, "first\n\n".to_owned());
        let second = (9, "half a line\n".to_owned());
        assert_eq!(outputs(&printed), [first, second, (0, String::new())]);
    }
}
