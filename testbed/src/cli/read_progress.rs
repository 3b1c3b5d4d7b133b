//! Progress of reading a large file, on standard error.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Size in bytes above which progress is shown: smaller files are read in a moment.
const LARGE: u64 = 64 << 20;

/// A file that shows how much of it was read, if it is large and standard error is a terminal.
#[derive(Debug)]
pub(super) struct ReadProgress {
    file: File,
    bar: ProgressBar,
}

impl ReadProgress {
    /// Opens a file for reading, with a progress line.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata().map_or(0, |about| about.len());
        let bar = match size >= LARGE && io::stderr().is_terminal() {
            true => {
                ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(4))
            }
            false => ProgressBar::hidden(),
        };
        let template = "{prefix}: {bytes} of {total_bytes} read {bar:24} {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        Ok(Self { file, bar })
    }
}

impl Read for ReadProgress {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(to)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl Drop for ReadProgress {
    /// Removes the progress line.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
