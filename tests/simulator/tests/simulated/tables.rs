//! The tables of docs/reliability.md are those that `simulate --table` prints.

use std::fs;
use std::path::Path;

use dormouse_simulator::cli::tables;

#[test]
fn the_page_has_the_tables_as_they_are_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md");
    let text = fs::read_to_string(&page).expect("the page is there");
    let printed = tables();
    let tables: Vec<_> = printed.split("\n\n").map(str::trim_end).collect();
    assert_eq!(tables.len(), 4, "faults, conditions, states and invariants");
    for table in tables {
        let missing: Vec<_> = table.lines().filter(|line| !text.contains(line)).collect();
        assert!(
            text.contains(&format!("\n\n{table}\n\n")),
            "docs/reliability.md has another table; replace it by that of simulate --table, where \
             these lines are other ones:\n{}",
            missing.join("\n")
        );
    }
}
