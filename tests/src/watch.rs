//! A server of a run's page, as a separate process.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{dormouse, wait_for};

/// A process of `dormouse watch` that serves the page of a run; it is killed when its test ends.
#[derive(Debug)]
pub struct Watch {
    process: Child,
    address: String,
}

impl Watch {
    /// Starts `dormouse watch` on the run in this folder, with these further arguments.
    ///
    /// # Panics
    ///
    /// The server does not start.
    #[must_use]
    pub fn over(out: &Path, words: &[&str]) -> Self {
        let mut watch = Command::new(dormouse());
        watch.arg("watch").arg(out).args(["--http", "127.0.0.1:0"]).args(words);
        let mut process = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut said, mut other) =
            (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        let tell_too = tell.clone();
        std::thread::spawn(move || pass_on(&mut said, &tell));
        std::thread::spawn(move || pass_on(&mut other, &tell_too));
        let mut lines = Vec::new();
        let address = wait_for("the page is served", Duration::from_secs(60), || {
            lines.extend(told.try_iter());
            let all: String = lines.concat();
            let Some((_, after)) = all.split_once("http://") else { return Err(all) };
            let address: String =
                after.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
            if after.len() > address.len() { Ok(address) } else { Err(all) }
        });
        Self { process, address }
    }

    /// The page's address and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn pass_on(from: &mut impl std::io::Read, to: &std::sync::mpsc::Sender<String>) {
    let mut read = [0; 1_024];
    while let Ok(n @ 1..) = from.read(&mut read) {
        // Nobody may listen any more.
        let _ = to.send(String::from_utf8_lossy(&read[..n]).into_owned());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
