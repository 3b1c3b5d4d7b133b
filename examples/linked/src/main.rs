//! A `dormouse` with one scheduler more: `my-dormouse run j60 --scheduler one-vm`.

mod one_vm;

use std::process::ExitCode;

fn main() -> ExitCode {
    dormouse::schedulers::link("one-vm", |hello| Box::new(one_vm::OneVm::new(hello)));
    dormouse::cli::main()
}
