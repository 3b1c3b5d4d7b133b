//! `dormouse reproduce all`: every paper, one after the other, with the time that each took.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use dormouse_reproduce::papers::{ClaimList, RunOrigin};
use dormouse_view::{TableColumn, TypedTable};

use super::failure::Failure;
use super::many::Common;
use super::terminal;

#[derive(Debug, Args)]
pub(crate) struct AllPapersArgs {
    /// A folder of records of spot prices, for acc
    #[arg(long, value_name = "DIR")]
    prices: Option<PathBuf>,
    /// The recorded lifetimes of preemptible VMs, for bathtub
    #[arg(long, value_name = "FILE")]
    lifetimes: Option<PathBuf>,
    /// The log of KTH-SP2, for measy
    #[arg(long, value_name = "FILE")]
    kth: Option<PathBuf>,
    /// Run every cell under seeds 1 to N, in place of each paper's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    common: Common,
}

/// A reproduced paper: results of its claims, or the reason why none was judged, and the time and disk that it took.
struct MadePaper {
    name: &'static str,
    counts: Result<[usize; 4], String>,
    took: Duration,
    origin: Option<RunOrigin>,
    /// Bytes of the files in the paper's folder.
    disk: u64,
}

impl AllPapersArgs {
    /// Name of each paper, with the option for its data, if it needs data.
    fn papers(&self) -> [(&'static str, Option<(&'static str, &PathBuf)>); 5] {
        [
            ("burst-hads", None),
            ("opie", None),
            ("acc", self.prices.as_ref().map(|path| ("--data", path))),
            ("bathtub", self.lifetimes.as_ref().map(|path| ("--data", path))),
            ("measy", self.kth.as_ref().map(|path| ("--kth", path))),
        ]
    }

    /// The words of the command that reproduces one paper.
    fn words(&self, paper: &str, data: Option<(&str, &PathBuf)>, out: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["reproduce", paper, "--quiet", "--out"].map(OsString::from).into();
        words.push(out.into());
        words.extend(["--threads".into(), self.common.threads().to_string().into()]);
        if let Some((option, path)) = data {
            words.extend([option.into(), path.into()]);
        }
        if let Some(seeds) = self.seeds {
            words.extend(["--seeds".into(), seeds.to_string().into()]);
        }
        words
    }
}

/// Reproduces every paper with its own command, and prints how many claims of each hold and how long it took.
pub(super) fn reproduce_all(
    args: &AllPapersArgs,
    reproduce: impl Fn(Vec<OsString>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let out = args.common.folder("reproduce-all", None);
    let mut made = Vec::new();
    for (name, data) in args.papers() {
        let (begin, folder) = (Instant::now(), out.join(name));
        let counts = match reproduce(args.words(name, data, &folder)) {
            Ok(()) => Ok(ClaimList::read(&folder)?.counts()),
            Err(Failure::BadInput(why)) => Err(why),
            Err(other) => return Err(other),
        };
        let origin = counts.as_ref().ok().map(|_| RunOrigin::read(&folder)).transpose()?;
        made.push(MadePaper {
            name,
            counts,
            took: begin.elapsed(),
            origin,
            disk: bytes_in(&folder),
        });
    }
    let table = table(&made);
    let mut text = table.to_text(terminal::stdout());
    for paper in &made {
        if let Err(why) = &paper.counts {
            text += &format!("\n  {}: {why}", paper.name);
        }
    }
    args.common.report(&out, (text, table.to_json()))
}

/// Bytes of all files below a folder; files that can't be read count as zero.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => bytes_in(&entry.path()),
        Ok(of) => of.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}

/// Whole MiB, rounded up.
const fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn table(made: &[MadePaper]) -> TypedTable {
    let origin = |paper: &MadePaper| paper.origin.clone();
    let count = |paper: &MadePaper, n: usize| paper.counts.as_ref().ok().map(|all| all[n] as u64);
    TypedTable::with_rows(made)
        .column(TableColumn::text("paper"), |paper| paper.name)
        .column(TableColumn::count("claims that hold").named("hold"), move |paper| count(paper, 0))
        .column(TableColumn::count("fail"), move |paper| count(paper, 1))
        .column(TableColumn::count("open"), move |paper| count(paper, 2))
        .column(TableColumn::count("undecidable"), move |paper| count(paper, 3))
        .column(TableColumn::seconds("took").named("took_s"), |paper| paper.took.as_secs_f64())
        .column(TableColumn::count("memory, MiB").named("peak_memory_mib"), move |paper| {
            origin(paper)?.peak_memory_bytes.map(mebibytes)
        })
        .column(TableColumn::count("disk, MiB").named("disk_mib"), |paper| mebibytes(paper.disk))
        .column(TableColumn::count("runs reused").named("runs_reused"), move |paper| {
            Some(origin(paper)?.runs_reused as u64)
        })
        .into()
}
