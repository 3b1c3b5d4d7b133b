//! The player of the book's pages.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{
    Block, Error, Kind, Need, Page,
    hosts::Network,
    printed::{difference, like_expected},
    script::{outputs, script},
};

/// Folders of the repository to which readers write.
const WRITTEN: [&str; 2] = ["examples", "testbed/compose"];

/// Folders that a used repository may have and a fresh clone does not.
const NOT_IN_A_CLONE: [&str; 2] = ["target", "runs"];

/// A player of pages, with the repository, the programs, and the needs that it can meet.
#[derive(Clone, Debug)]
pub struct Player {
    /// The folder of a clone. Each page is played in a folder like it.
    pub repository: PathBuf,
    /// Path of the `dormouse` that pages call, with `dormouse-task` beside it.
    pub dormouse: PathBuf,
    /// Needs that this machine meets. Blocks with another need are left out.
    pub has: Vec<Need>,
    /// A folder in which pages are played and which is kept; `None`: a temporary folder. The commands of a page are
    /// typed in its folder `page`, those of hosts in folders of their names.
    pub folder: Option<PathBuf>,
}

/// Time limit of a page, in the notation of `timeout`.
const PAGE_TIMEOUT: &str = "8m";

/// The outcome of playing a page.
#[derive(Clone, Debug, Default)]
pub struct PageOutcome {
    /// The number of commands that were typed.
    pub typed: usize,
    /// The number of commands that were not typed, by their need.
    pub not_typed: BTreeMap<Need, usize>,
    /// The number of blocks of output that were compared.
    pub compared: usize,
    /// Differences from the page, each with its line number.
    pub wrong: Vec<String>,
    /// The text of the page, with the real output in place of the output on the page.
    pub text: String,
}

impl PageOutcome {
    /// A line with the numbers of commands and outputs that were played and left out.
    #[must_use]
    pub fn said(&self) -> String {
        let mut said = format!("{} commands typed, {} outputs compared", self.typed, self.compared);
        for (need, commands) in &self.not_typed {
            said += &format!("; {commands} not typed, which need {need}");
        }
        said
    }
}

/// A shell that types the commands of a page, or those of one host.
struct Shell<'a> {
    host: Option<&'a str>,
    blocks: Vec<&'a Block>,
}

impl Player {
    /// Plays a page: types its commands in a folder like a clone, those of all hosts at the same time, and compares
    /// their output.
    ///
    /// # Errors
    /// The page cannot be read, or its folder or its hosts cannot be made.
    pub fn play(&self, path: &Path) -> Result<PageOutcome, Error> {
        let page = Page::read(path)?;
        let mut played = PageOutcome { text: page.text.clone(), ..PageOutcome::default() };
        for block in page.blocks.iter() {
            match block.need() {
                Some(_) if self.types(block) => played.typed += block.commands(),
                Some(need) => *played.not_typed.entry(need).or_default() += block.commands(),
                None => {}
            }
        }
        let shells = self.shells(&page);
        if shells.iter().all(|shell| shell.blocks.iter().all(|block| block.need().is_none())) {
            return Ok(played);
        }
        let temporary = tempfile::tempdir().map_err(Error::file("make", std::env::temp_dir()))?;
        let printed = self.run(&shells, self.folder.as_deref().unwrap_or(temporary.path()))?;
        let mut new_texts = Vec::new();
        for (shell, printed, status) in printed {
            let found = outputs(&printed);
            let ended = found.last().is_some_and(|(line, _)| *line == 0);
            if !ended {
                let (line, output) = found.last().cloned().unwrap_or_default();
                let output = tail(&output);
                let name = path.display();
                played
                    .wrong
                    .push(format!("{name}:{line}: a command ended with {status}:\n{output}"));
            }
            let by_line: BTreeMap<usize, String> = found.into_iter().collect();
            for (commands, expected) in pairs(&page, shell) {
                let Some(output) = by_line.get(&commands.line).filter(|_| ended) else { continue };
                played.compared += 1;
                let printed = like_expected(output, &expected.text);
                if printed != expected.text {
                    let difference = difference(&expected.text, &printed);
                    let (name, line) = (path.display(), expected.line);
                    played
                        .wrong
                        .push(format!("{name}:{line}: is not what is printed:\n{difference}"));
                    new_texts.push((expected.span.clone(), printed));
                }
            }
        }
        new_texts.sort_by_key(|(span, _)| span.start);
        for (span, text) in new_texts.into_iter().rev() {
            played.text.replace_range(span, &text);
        }
        Ok(played)
    }

    fn types(&self, block: &Block) -> bool {
        block.need().is_some_and(|need| self.has.contains(&need))
    }

    /// The shells of a page: one, or one for each host. A file belongs to the shell whose commands come next.
    fn shells<'a>(&self, page: &'a Page) -> Vec<Shell<'a>> {
        let mut shells: Vec<Shell<'a>> = Vec::new();
        for (index, block) in page.blocks.iter().enumerate() {
            let commands = match &block.kind {
                Kind::Commands { .. } if self.types(block) => Some(block),
                Kind::File(_) => page.blocks[index..].iter().find(|next| self.types(next)),
                _ => None,
            };
            let Some(Block { kind: Kind::Commands { host, .. }, .. }) = commands else { continue };
            let host = host.as_deref();
            match shells.iter_mut().find(|shell| shell.host == host) {
                Some(shell) => shell.blocks.push(block),
                None => shells.push(Shell { host, blocks: vec![block] }),
            }
        }
        shells
    }

    /// Runs all shells to their ends; returns what each printed and how it ended.
    fn run<'a>(
        &self,
        shells: &'a [Shell<'a>],
        at: &Path,
    ) -> Result<Vec<(&'a Shell<'a>, String, String)>, Error> {
        self.make_commands(&at.join("bin"), at)?;
        fs::create_dir(at.join("home")).map_err(Error::file("make", at))?;
        let hosts: Vec<String> = shells.iter().filter_map(|s| s.host).map(str::to_owned).collect();
        let network = match hosts.is_empty() {
            true => None,
            false => Some(Network::new(&hosts, at)?),
        };
        let mut children = Vec::new();
        for shell in shells {
            let name = shell.host.unwrap_or("page");
            let begin = at.join(name);
            like_a_clone(&self.repository, &begin, "").map_err(Error::file("make", &begin))?;
            let (script_file, output) =
                (at.join(format!(".{name}")), at.join(format!(".{name}.out")));
            let text = script(shell.blocks.iter().copied());
            fs::write(&script_file, text).map_err(Error::file("write", &script_file))?;
            let mut command = match (shell.host, &network) {
                (Some(host), Some(network)) => {
                    let mut command = network.on(host);
                    command.arg("timeout");
                    command
                }
                _ => Command::new("timeout"),
            };
            command.args(["--kill-after=20", PAGE_TIMEOUT, "bash"]).arg(&script_file);
            let child = self.start(command.current_dir(&begin), at, &output)?;
            children.push((shell, child, output));
        }
        let mut printed = Vec::new();
        for (shell, mut child, output) in children {
            let status = child.wait().map_err(Error::file("wait for", &output))?;
            let text = fs::read(&output).map_err(Error::file("read", &output))?;
            printed.push((shell, String::from_utf8_lossy(&text).into_owned(), status.to_string()));
        }
        Ok(printed)
    }

    fn start(&self, command: &mut Command, at: &Path, output: &Path) -> Result<Child, Error> {
        let to = File::create(output).map_err(Error::file("write", output))?;
        let both = to.try_clone().map_err(Error::file("write", output))?;
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", at.join("bin").display()))
            .env("HOME", at.join("home"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env_remove("DORMOUSE")
            .env_remove("DORMOUSE_LOG")
            .stdin(Stdio::null())
            .stdout(to)
            .stderr(both)
            .spawn()
            .map_err(Error::file("run bash for", output))
    }

    /// Makes the commands that pages use and a test machine may lack: `dormouse` on PATH, `sudo` for root, `docker
    /// compose` by docker-compose, and `scp` between the folders of hosts, which waits up to a minute for its file, as
    /// a reader would who types one command after the other.
    fn make_commands(&self, bin: &Path, hosts: &Path) -> Result<(), Error> {
        fs::create_dir(bin).map_err(Error::file("make", bin))?;
        for program in ["dormouse", "dormouse-task"] {
            let (from, to) = (self.dormouse.with_file_name(program), bin.join(program));
            symlink(from, &to).map_err(Error::file("make", to))?;
        }
        let hosts = hosts.display();
        let scp = format!(
            "#!/bin/sh\nfrom=\"{hosts}/${{1%%:*}}/${{1#*:}}\"\ntries=0\n\
             until [ -e \"$from\" ] || [ $tries -ge 600 ]; do sleep 0.1; tries=$((tries + 1)); done\n\
             exec cp -p \"$from\" \"$2\"\n"
        );
        let docker = format!(
            "#!/bin/sh\nPATH=${{PATH#{}:}}\nif [ \"$1\" = compose ] && ! docker compose version >/dev/null 2>&1\n\
             then shift; exec docker-compose \"$@\"; fi\nexec docker \"$@\"\n",
            bin.display()
        );
        let sudo = "#!/bin/sh\nexec \"$@\"\n";
        for (name, text) in [("sudo", sudo), ("scp", &scp), ("docker", &docker)] {
            let path = bin.join(name);
            fs::write(&path, text).map_err(Error::file("write", &path))?;
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, executable)
                .map_err(Error::file("make executable", &path))?;
        }
        Ok(())
    }
}

/// The command blocks of a shell that are followed by a block of output, with that block.
fn pairs<'a>(page: &'a Page, shell: &Shell<'_>) -> Vec<(&'a Block, &'a Block)> {
    let of_shell = |block: &Block| shell.blocks.iter().any(|own| own.line == block.line);
    let windows = page.blocks.windows(2).map(|pair| (&pair[0], &pair[1]));
    windows
        .filter(|(commands, printed)| printed.kind == Kind::Printed && of_shell(commands))
        .collect()
}

/// The last lines of an output.
fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Makes a folder like a clone: links to what is in the repository, and copies of the folders to which readers write.
/// `within` is the path of both folders from the root of a clone.
fn like_a_clone(repository: &Path, folder: &Path, within: &str) -> io::Result<()> {
    fs::create_dir(folder)?;
    for entry in fs::read_dir(repository)? {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let (name, to) = (name.to_string_lossy(), folder.join(&name));
        let path = format!("{within}{name}");
        if WRITTEN.contains(&path.as_str()) {
            copy(&from, &to)?;
        } else if WRITTEN.iter().any(|written| written.starts_with(&format!("{path}/"))) {
            like_a_clone(&from, &to, &format!("{path}/"))?;
        } else if !(name.starts_with('.') || NOT_IN_A_CLONE.contains(&path.as_str())) {
            symlink(&from, to)?;
        }
    }
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => fs::copy(entry.path(), &to).map(drop)?,
        }
    }
    Ok(())
}
