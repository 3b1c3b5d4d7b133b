//! What a program of the user's own left, on its way home.

use std::{collections::BTreeMap, sync::Arc};

use dormouse_proto::v1::{File, StartTask};
use dormouse_units::Bytes;
use tokio::task::spawn_blocking;

use crate::{
    agent::{
        gate::Pass,
        host::Host,
        report::{explain, key},
        transfer::Open,
    },
    directory::{self, Leavings, open_leaving},
    workspace::TaskName,
};

/// What is kept of a program that has ended.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The program's standard output and error, and its outputs; their contents are with the coordinator.
    pub(crate) files: Vec<File>,
    /// Why a file that was to be kept was not.
    pub(crate) not_kept: Vec<String>,
    /// What its directory held in the end.
    pub(crate) directory_bytes: u64,
}

impl Kept {
    fn nothing(why: String) -> Self {
        Self { not_kept: vec![why], ..Self::default() }
    }
}

/// Keeps what a program left whose order was this: sends it to the coordinator, for as long as its VM is there.
pub(crate) async fn keep(host: &Host, pass: &Pass, name: &TaskName, order: &StartTask) -> Kept {
    let Some(own) = order.own.clone() else { return Kept::default() };
    let folder = host.workspace().task(name);
    let read = spawn_blocking({
        let folder = folder.clone();
        move || {
            let held = directory::size(&folder).map_or(0, Bytes::get);
            let mut leavings = Leavings::read(&folder, &own.outputs, own.directory_bytes);
            if directory::is_full(&folder).unwrap_or(false) {
                let most = Bytes::new(own.directory_bytes);
                leavings.not_kept.insert(0, format!("its directory is full: it may hold {most}"));
            }
            (leavings, held)
        }
    });
    let (leavings, directory_bytes) = match read.await {
        Ok(read) => read,
        Err(panic) => return Kept::nothing(explain(&panic)),
    };
    let paths: BTreeMap<_, _> =
        leavings.files.iter().map(|it| (*it.digest.as_bytes(), it.path.clone())).collect();
    let open: Open = Arc::new(move |digest| {
        let path = paths.get(digest.as_bytes()).map(String::as_str).unwrap_or_default();
        open_leaving(&folder, path).map_err(|e| explain(&e))
    });
    let contents = leavings.files.iter().map(|it| (it.digest, it.bytes)).collect();
    let (task, attempt) = key(order.task);
    let of = (&*host.run, task.get(), attempt.get());
    let (mut files, mut not_kept) = (Vec::new(), leavings.not_kept);
    match host.transfers.put_contents(pass, of, contents, open).await {
        Ok(_) => files.extend(leavings.files.into_iter().map(|it| File {
            path: it.path,
            digest: it.digest.as_bytes().to_vec().into(),
            bytes: it.bytes,
            executable: it.executable,
        })),
        Err(why) => not_kept.insert(0, format!("its files: {why}")),
    }
    Kept { files, not_kept, directory_bytes }
}
