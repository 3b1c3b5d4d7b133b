//! The fenced blocks of a page of the book.

use std::{fmt, fs, ops::Range, path::Path};

use super::Error;

/// What a block of commands needs in addition to `dormouse`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Need {
    /// Nothing but the command `dormouse`.
    Nothing,
    /// Root, control groups and CRIU.
    Live,
    /// The Python package, in an environment of the page's own.
    Python,
    /// A Docker engine, and Compose.
    Containers,
    /// A cluster, a screen or other machines, which no test has: such a block is not played.
    Cluster,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Live => "live runs",
            Self::Python => "the Python package",
            Self::Containers => "Docker",
            Self::Cluster => "what no test has",
        })
    }
}

/// The purpose of a fenced block.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Commands for a shell.
    Commands {
        /// What the commands need in addition to `dormouse`.
        need: Need,
        /// The host on which the commands are typed, if the page has several hosts.
        host: Option<String>,
    },
    /// The content of a file with this name.
    File(String),
    /// The output of the commands before the block.
    Printed,
    /// An excerpt that is only read, neither typed nor compared.
    Excerpt,
}

/// A fenced block of a page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The purpose of the block, by its info string.
    pub kind: Kind,
    /// The lines between the fences, each with its line end.
    pub text: String,
    /// The number of the line of the opening fence, from 1.
    pub line: usize,
    /// Range of `text` in the page, in bytes.
    pub(super) span: Range<usize>,
}

/// A page of the book.
#[derive(Clone, Debug)]
pub struct Page {
    /// The whole page.
    pub text: String,
    /// Fenced blocks of the page, in order.
    pub blocks: Vec<Block>,
}

impl Page {
    /// Reads a page.
    ///
    /// The file can't be read, a fence is not closed, an info string is not one that the book uses, or a block of
    /// output follows no commands.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
        let wrong = |line, problem: String| Error::Page { path: path.to_owned(), line, problem };
        let blocks = blocks(&text).map_err(|(line, problem)| wrong(line, problem))?;
        Ok(Self { text, blocks })
    }

    /// All needs of the page's commands, each once, in order; empty if the page has no commands.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let mut needs: Vec<Need> = self.blocks.iter().filter_map(Block::need).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }
}

impl Block {
    /// What the block's commands need; `None` if the block has no commands.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        match self.kind {
            Kind::Commands { need, .. } => Some(need),
            _ => None,
        }
    }

    /// Number of commands that a reader types: the lines that are not empty, a comment, or the continuation of another.
    /// Lines of a document within the commands count as well.
    #[must_use]
    pub fn commands(&self) -> usize {
        let mut count = 0;
        let mut continued = false;
        for line in self.text.lines().map(str::trim) {
            count += usize::from(!continued && !line.is_empty() && !line.starts_with('#'));
            continued = line.ends_with('\\');
        }
        count
    }
}

type Problem = (usize, String);

fn blocks(text: &str) -> Result<Vec<Block>, Problem> {
    let mut blocks: Vec<Block> = Vec::new();
    // The kind, the line of the opening fence, and where the text begins.
    let mut open: Option<(Kind, usize, usize)> = None;
    let mut at = 0;
    for (line, content) in (1..).zip(text.split_inclusive('\n')) {
        let start = at;
        at += content.len();
        let Some(info) = content.trim_end().strip_prefix("```") else { continue };
        match open.take() {
            None => {
                let kind = kind(info).map_err(|problem| (line, problem))?;
                open = Some((kind, line, at));
            }
            Some((kind, line, begin)) => {
                let follows = || blocks.last().is_some_and(|before| before.need().is_some());
                if kind == Kind::Printed && !follows() {
                    return Err((line, "no block of commands is right before this `text`".into()));
                }
                let text = text[begin..start].to_owned();
                blocks.push(Block { kind, text, line, span: begin..start });
            }
        }
    }
    match open {
        None => Ok(blocks),
        Some((_, line, _)) => Err((line, "this block has no end".into())),
    }
}

fn kind(info: &str) -> Result<Kind, String> {
    let words: Vec<&str> = info.split_whitespace().collect();
    let commands =
        |need, host: Option<&str>| Kind::Commands { need, host: host.map(str::to_owned) };
    Ok(match words[..] {
        ["sh"] => commands(Need::Nothing, None),
        ["sh", "live"] => commands(Need::Live, None),
        ["sh", "live", "on", host] => commands(Need::Live, Some(host)),
        ["sh", "python"] => commands(Need::Python, None),
        ["sh", "containers"] => commands(Need::Containers, None),
        ["sh", "cluster"] => commands(Need::Cluster, None),
        ["text"] => Kind::Printed,
        ["sh", ..] => {
            let known = "sh, sh live, sh live on HOST, sh python, sh containers, sh cluster";
            return Err(format!("`{info}` is no kind of commands; there are: {known}"));
        }
        ["console" | "bash" | "shell", ..] => {
            return Err(format!("`{info}`: commands of the book are blocks of `sh`"));
        }
        [_, name] => Kind::File(name.to_owned()),
        _ => Kind::Excerpt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Result<Vec<Kind>, Problem> {
        Ok(blocks(text)?.into_iter().map(|block| block.kind).collect())
    }

    #[test]
    fn a_page_has_commands_files_and_what_is_printed() {
        let page = "A\n```sh\nls\n```\nprints\n```text\nx\n```\n```toml mine.toml\na = 1\n```\n```toml\nb\n```\n";
        let sh = Kind::Commands { need: Need::Nothing, host: None };
        let file = Kind::File("mine.toml".to_owned());
        assert_eq!(kinds(page), Ok(vec![sh, Kind::Printed, file, Kind::Excerpt]));
        let found = blocks(page).unwrap_or_default();
        assert_eq!((found[1].line, found[1].text.as_str()), (6, "x\n"));
        assert_eq!(&page[found[2].span.clone()], "a = 1\n");
    }

    #[test]
    fn what_is_no_block_of_the_book_is_refused_with_its_line() {
        let line = |page| kinds(page).err().map(|(line, _)| line);
        assert_eq!(line("\n```sh often\n```\n"), Some(2));
        assert_eq!(line("```console\n$ ls\n```\n"), Some(1));
        assert_eq!(line("```text\nnothing printed this\n```\n"), Some(1));
        assert_eq!(line("text\n\n```sh\nls\n"), Some(3));
    }

    #[test]
    fn commands_are_counted_as_a_reader_types_them() {
        let page = "```sh\n# first\nls \\\n  -l\n\ncd x\n```\n";
        assert_eq!(blocks(page).unwrap_or_default()[0].commands(), 2);
    }

    #[test]
    fn hosts_have_names() {
        let host = Some("two".to_owned());
        let on = Kind::Commands { need: Need::Live, host };
        assert_eq!(kinds("```sh live on two\nls\n```\n"), Ok(vec![on]));
    }
}
