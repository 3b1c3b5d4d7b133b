//! The progress page: a file in which a running task publishes its progress.
//!
//! One file of exactly [`PAGE_BYTES`] bytes, mapped shared by the task and read by the agent.
//! There is no pipe or socket to lose and no file that grows, so the task can be dumped and
//! restored by CRIU at any moment, also on another host, as long as a file of that size is
//! at that path. What the file holds at a restore does not matter: the task keeps its own
//! counts and writes absolute values at its next unit of work.
//!
//! Layout, version 1, all fields little-endian 64-bit words:
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic, the bytes `DORMPROG`; zero until the task has set the page up |
//! | 8 | layout version, 1 |
//! | 16 | [`State`] |
//! | 24 | progress in parts per million |
//! | 32 | CPU time spent by the work, nanoseconds |
//! | 40 | units of work done |
//! | 48 | heartbeat, one more at every unit of work |
//! | 56 | hold: while it is 1 the task waits before its first unit of work |
//! | 64 | ranks: how many processes a parallel job has; 0 until they are there, and for others |
//! | 72… | the PID of each rank in the task's PID namespace; 256 words |
//! | 2120… | what each rank has computed in all, 10 µs of CPU time: 256 half words |
//! | 4080 | own clock: what the task's clock showed when it was last stopped, nanoseconds |
//! | 4088 | foreign: what of its thread's CPU time is not its own, nanoseconds, signed |
//!
//! Three words are written from outside the task. The creator of the file may set the hold before the task starts
//! ([`create_held`]), and clears it ([`let_go`]) once all is ready for the work, such as the task's quota. A process
//! that stops the task and has other code run in the task's thread, as CRIU does, records how much of the thread's CPU
//! time that code used ([`set_clock`]) before the task continues: the task's clock is its thread's clock less that
//! time. A restored task is another thread, whose clock starts again, so the foreign part may be negative. The rest of
//! the page is zero. Each word is written at once and only ever grows, except that a restore goes back to the counts of
//! the checkpoint. A reader may see one word of a unit and another of the unit before.

mod error;
mod outside;
mod reader;
mod value;
mod writer;

pub use error::ProgressError;
pub use outside::{Clock, create_held, let_go, set_clock};
pub use reader::ProgressReader;
pub use value::{MAX_RANKS, PAGE_BYTES};
pub use value::{Progress, State};
pub use writer::ProgressWriter;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::time::Duration;

    use super::value::AT_RANKS;
    use super::*;

    fn progress(units: u64) -> Progress {
        Progress {
            state: State::Running,
            ppm: 250_000,
            cpu: Duration::from_nanos(1_234_567_891),
            units,
            heartbeat: units + 1,
        }
    }

    #[test]
    fn the_reader_sees_what_was_written_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        let writer = ProgressWriter::create(&path).unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        for units in [0, 1, 99] {
            writer.write(&progress(units));
            assert_eq!(reader.read().unwrap(), progress(units));
        }
        drop(writer);
        assert_eq!(reader.read().unwrap(), progress(99));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), PAGE_BYTES as u64);
    }

    #[test]
    fn the_words_are_where_the_layout_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        ProgressWriter::create(&path).unwrap().write(&progress(7));
        let bytes = std::fs::read(&path).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(&bytes[..8], b"DORMPROG");
        let words = [8, 16, 24, 32, 40, 48].map(word);
        assert_eq!(words, [1, 1, 250_000, 1_234_567_891, 7, 8]);
        assert!(bytes[56..].iter().all(|b| *b == 0));
    }

    #[test]
    fn the_ranks_of_a_job_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        std::fs::write(&path, "").unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        assert_eq!(reader.ranks().unwrap(), [0; 0]);
        let page = ProgressWriter::create(&path).unwrap();
        assert_eq!(reader.ranks().unwrap(), [0; 0]);
        page.write_ranks(&[2, 3, 40_000]);
        assert_eq!(reader.ranks().unwrap(), [2, 3, 40_000]);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes[64], bytes[72], bytes[80]), (3, 2, 3));
        for (rank, ms) in [(0, 7), (1, 30_000), (MAX_RANKS - 1, 9)] {
            page.write_work(rank, Duration::from_millis(ms));
        }
        assert_eq!(reader.ranks().unwrap(), [2, 3, 40_000], "they are apart");
        let work = reader.work(MAX_RANKS).unwrap();
        assert_eq!(work[..3], [7, 30_000, 0].map(Duration::from_millis));
        assert_eq!(work[MAX_RANKS - 1], Duration::from_millis(9));
        page.store_word(AT_RANKS, 600);
        assert!(reader.ranks().unwrap_err().to_string().contains("names 600 ranks"));
    }

    #[test]
    fn a_stopped_tasks_clock_is_set_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        std::fs::write(&path, "").unwrap();
        assert_eq!(ProgressReader::open(&path).unwrap().clock().unwrap(), Clock::default());
        let page = ProgressWriter::create(&path).unwrap();
        let clock = Clock { own: 7, foreign: -3 };
        set_clock(&path, clock).unwrap();
        assert_eq!(page.foreign_ns(), -3);
        assert_eq!(ProgressReader::open(&path).unwrap().clock().unwrap(), clock);
        page.write(&progress(1));
        assert_eq!(page.foreign_ns(), -3);
        assert!(set_clock(&dir.path().join("none"), clock).is_err());
    }

    #[test]
    fn a_held_task_waits_until_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        create_held(&path).unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        assert_eq!(reader.read().unwrap().state, State::Starting);
        std::thread::scope(|scope| {
            let task = scope.spawn(|| ProgressWriter::create(&path).unwrap().wait_while_held());
            let begun = std::time::Instant::now();
            while reader.read().unwrap().heartbeat == 0 {
                assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", reader.read());
                std::thread::yield_now();
            }
            assert!(!task.is_finished());
            let_go(&path).unwrap();
            task.join().unwrap();
        });
        // Nobody holds the next one.
        ProgressWriter::create(&path).unwrap().wait_while_held();
    }

    #[test]
    fn a_page_that_its_task_has_made_a_link_is_neither_written_nor_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("progress"), dir.path().join("victim"));
        std::fs::write(&victim, [0; PAGE_BYTES]).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(set_clock(&path, Clock { own: 7, foreign: 7 }).is_err());
        assert!(let_go(&path).is_err() && create_held(&path).is_err());
        assert!(ProgressReader::open(&path).is_err());
        assert_eq!(std::fs::read(&victim).unwrap(), [0; PAGE_BYTES]);
    }

    #[test]
    fn a_page_that_is_not_set_up_is_starting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        for content in [vec![], vec![0; PAGE_BYTES]] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(ProgressReader::open(&path).unwrap().read().unwrap(), Progress::default());
        }
    }

    #[test]
    fn anything_else_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        let read = || ProgressReader::open(&path).unwrap().read().unwrap_err().to_string();
        std::fs::write(&path, [b'x'; PAGE_BYTES]).unwrap();
        assert!(read().contains("is not a progress page"), "{}", read());
        let mut page = vec![0; PAGE_BYTES];
        page[..8].copy_from_slice(b"DORMPROG");
        page[8] = 9;
        std::fs::write(&path, &page).unwrap();
        assert!(read().contains("layout version 9"), "{}", read());
        page[8] = 1;
        page[16] = 77;
        std::fs::write(&path, &page).unwrap();
        assert!(read().contains("unknown state 77"), "{}", read());
        assert!(read().contains(&*path.to_string_lossy()));
        let missing = ProgressReader::open(dir.path().join("none")).unwrap_err();
        assert!(matches!(missing, ProgressError::Io { what: "opened", .. }));
    }
}
