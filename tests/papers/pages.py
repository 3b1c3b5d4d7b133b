"""Puts what `dormouse reproduce` left into the pages of docs/papers.

FOLDER is that of `dormouse reproduce all`, or a folder with those of single papers: FOLDER/acc, FOLDER/measy and so
on. The claims of each paper there become docs/papers/results/PAPER.json, its figures PAPER-figures.csv if that is
there already, and what each took results/all.json. In a page a table is known by its line of headings: its rows become
those of claims.md in the command's folder; a table that the page lacks is put where it belongs. The counts of verdicts
in words are replaced, too. What is said about them in prose is for a person to read again: the test
library::paper_results names each number there that is no result any more.

    python3 tests/papers/pages.py FOLDER
"""

import csv
import re
import shutil
import sys
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"
PAPERS = ["burst-hads", "opie", "acc", "bathtub", "measy"]
COUNTS = re.compile(r"\d+ of \d+ hold, \d+ fail, \d+ open(, \d+ undecidable)?")
COST = "| paper | samples | time | processor time | memory, at most | its folder |"
READINGS = "| paper | reading | before: hold, fail, open | now |"
FORMER = "| the claim | before | now | why |"


def tables_of(text):
    """The rows of each table of a text in Markdown, by its line of headings."""
    tables, lines = {}, text.splitlines()
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and re.fullmatch(r"\|(---\|)+", lines[at + 1]):
            rows = lines[at + 2:]
            end = next((n for n, row in enumerate(rows) if not row.startswith("|")), len(rows))
            tables[line] = rows[:end]
    return tables


def paper_of(row):
    """The paper that a row of a table of all papers is about: the first word of `| acc 3 | ...`."""
    return row.strip("| ").split(" ")[0]


class Page:
    """A page of the book, whose tables are replaced."""

    def __init__(self, name):
        self.path = PAGES / f"{name}.md"
        self.lines = self.path.read_text().splitlines()

    def place(self, head):
        """Lines of the table with these headings: the first row, and the line after the last one."""
        begin = self.lines.index(head) + 2
        end = begin
        while end < len(self.lines) and self.lines[end].startswith("|"):
            end += 1
        return begin, end

    def replace_rows(self, head, rows, before, about):
        """Replaces the rows of a table; one that the page lacks comes before a heading, below a sentence about it."""
        if head not in self.lines:
            if before not in self.lines:
                sys.exit(f"{self.path}: there is neither the table {head} nor the heading {before}")
            at = self.lines.index(before)
            rule = "|" + "---|" * (head.count(" | ") + 1)
            self.lines[at:at] = [about, "", head, rule, ""]
        begin, end = self.place(head)
        self.lines[begin:end] = rows

    def merge_rows(self, head, paper, rows, before, about):
        """Replaces the rows of one paper in a table of all papers."""
        kept = self.lines[slice(*self.place(head))] if head in self.lines else []
        rows = [row for row in kept if paper_of(row) != paper] + rows
        rows.sort(key=lambda row: PAPERS.index(paper_of(row)))
        self.replace_rows(head, rows, before, about)

    def replace_counts(self, counts, mark=""):
        """In the first line with counts that has the mark."""
        for at, line in enumerate(self.lines):
            if mark in line and COUNTS.search(line):
                self.lines[at] = COUNTS.sub(counts, line, count=1)
                return
        print(f"{self.path}: write there: {counts}", file=sys.stderr)

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")


def put_costs(made, index, pages):
    """What each paper took, on the page of all papers and on its own."""
    rows = tables_of((made / "claims.md").read_text())[COST]
    about = "What each took, measured by `dormouse reproduce all`:"
    index.replace_rows(COST, rows, "## What of it is real?", about)
    about = "What the whole paper takes, measured by `dormouse reproduce all` ([on which host](index.md)):"
    for row in rows:
        heading = "## Which function is which equation or algorithm?"
        pages[paper_of(row)].replace_rows(COST, [row], heading, about)


def put_claims(made, paper, index, page):
    """The claims of a paper on its page, and what the rule for verdicts changed on the page of all papers."""
    text = (made / paper / "claims.md").read_text()
    first = text.splitlines()[0]
    if first != f"# {paper}":
        sys.exit(f"{made / paper}: these are the claims of {first[2:]}, not of the whole paper")
    end = "## Where to go on"
    whole = {READINGS: "Claims that hold, fail and are open:", FORMER: "What the rule for verdicts changed:"}
    tables = tables_of(text)
    for head, about in whole.items():
        index.merge_rows(head, paper, tables.pop(head, []), end, about)
    # Where every claim has the figure that the text says there is no cause to show.
    for head, rows in tables.items():
        page.replace_rows(head, rows, end, "As that command leaves it in `claims.md`:")
    counts = COUNTS.search(text).group()
    page.replace_counts(counts)
    index.replace_counts(counts, f"]({paper}.md)")


def keep_figures(made, paper):
    """Our figures of the cells of a paper, of which its page has some in its prose."""
    columns = ["case", "metric", "ours_mean"]
    with open(made / paper / "table.csv", newline="") as table:
        figures = list(csv.DictReader(table))
    with open(PAGES / "results" / f"{paper}-figures.csv", "w", newline="") as kept:
        writer = csv.DictWriter(kept, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(figures)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: pages.py FOLDER, the one that dormouse reproduce all left")
    made = Path(sys.argv[1])
    there = [paper for paper in PAPERS if (made / paper / "claims.md").is_file()]
    if not there:
        sys.exit(f"{made}: no paper's claims.md; give the folder that dormouse reproduce all left")
    index, pages = Page("index"), {paper: Page(paper) for paper in PAPERS}
    is_whole = (made / "results.json").is_file()
    if is_whole:
        put_costs(made, index, pages)
    for paper in there:
        put_claims(made, paper, index, pages[paper])
    for page in [index, *pages.values()]:
        page.write()
    for paper in there:
        shutil.copyfile(made / paper / "claims.json", PAGES / "results" / f"{paper}.json")
        if (PAGES / "results" / f"{paper}-figures.csv").is_file():
            keep_figures(made, paper)
    if is_whole:
        shutil.copyfile(made / "results.json", PAGES / "results" / "all.json")
    print(f"put into docs/papers: {', '.join(there)}{' and what they took' if is_whole else ''}")


main()
