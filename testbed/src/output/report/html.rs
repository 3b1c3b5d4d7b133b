//! Small pieces of HTML.

use crate::output::Header;
use crate::output::gantt::escaped;

/// A whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
         <style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n",
        escaped(title)
    )
}

/// What a run is: its title, what its experiment is about, and how it was run.
pub(crate) fn heading(run: &Header, title: &str) -> String {
    let experiment = &run.experiment;
    let how = match run.live_speedup() {
        None => "in virtual time".to_owned(),
        Some(x) => format!("live, {x} emulated seconds a second"),
    };
    let about = format!("{}. Run {how}, seed {}.", experiment.description, experiment.setup.seed);
    format!("<header><h1>{}</h1>{}</header>\n", escaped(title), paragraph(&about))
}

/// A table; the first `left` columns are text, the others numbers.
pub(crate) fn table(head: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    let class = |n: usize| if n < left { "" } else { " class=\"n\"" };
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = (usize, &str)>| {
        cells
            .map(|(n, text)| format!("<{tag}{}>{}</{tag}>", class(n), escaped(text)))
            .collect::<String>()
    };
    let head = cells("th", &mut head.iter().copied().enumerate());
    let body: String = rows
        .iter()
        .map(|row| {
            let row = cells("td", &mut row.iter().map(String::as_str).enumerate());
            format!("<tr>{row}</tr>\n")
        })
        .collect();
    format!(
        "<div class=\"wide\"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )
}

/// A section with a heading.
pub(crate) fn section(title: &str, content: &str) -> String {
    format!("<section><h2>{}</h2>\n{content}</section>\n", escaped(title))
}

/// A paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// How a run is made again: its command, what made it and how, and the digest of its decisions.
pub(crate) fn reproduce(run: &Header, how: &str, digest: &str) -> String {
    let version = format!(
        "Made by dormouse {}{how}. Digest of the decisions, equal for equal runs:",
        run.dormouse
    );
    let (command, version) = (escaped(&run.command), paragraph(&version));
    format!("<pre>{command}</pre>\n{version}<pre>{digest}</pre>\n")
}

/// Whether a live run was faithful, with its worst error.
pub(crate) fn emulation_card(faithful: bool, worst: &str) -> String {
    let (word, class) = if faithful { ("faithful", "good") } else { ("not faithful", "bad") };
    card("Emulation", word, worst, class)
}

/// A figure with its name and a remark.
pub(crate) fn card(name: &str, value: &str, remark: &str, class: &str) -> String {
    format!(
        "<div class=\"card {class}\"><span>{}</span><b>{}</b><small>{}</small></div>\n",
        escaped(name),
        escaped(value),
        escaped(remark)
    )
}

/// The style of the page: light or dark as the reader prefers, and fit for paper.
const STYLE: &str = r"
:root{color-scheme:light dark;--bg:#fff;--fg:#1d2433;--dim:#5b6577;--line:#d9dee7;--soft:#f4f6fa;--good:#1b7f4b;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#12161f;--fg:#e4e8f0;--dim:#9aa5b8;--line:#2a3242;--soft:#1a2130;--good:#56d08f;--bad:#ff7b72}}
*{box-sizing:border-box}
body{margin:0 auto;padding:28px 32px;max-width:1680px;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
h1{font-size:26px;margin:0 0 2px}h2{font-size:18px;margin:34px 0 8px;border-bottom:1px solid var(--line);padding-bottom:4px}
p{margin:6px 0;max-width:75em}.dim,header p{color:var(--dim)}
.cards{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}
.card{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:10px 16px;min-width:150px}
.card span,.card small{display:block;color:var(--dim);font-size:13px}.card b{font-size:22px}
.good b{color:var(--good)}.bad b{color:var(--bad)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:16px}
.chart svg{max-width:100%;height:auto}
.wide{overflow-x:auto}.wide svg{max-width:none;height:auto;min-width:1100px;width:100%}
table{border-collapse:collapse;margin:0 0 14px;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:4px 14px 4px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--dim);font-weight:600}.n{text-align:right}td.n,td:first-child{white-space:nowrap}
summary{cursor:pointer;padding:3px 0}code,pre{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:10px 14px;overflow-x:auto;white-space:pre-wrap}
@media print{body{padding:0;font-size:11px}.wide{overflow:visible}.wide svg{min-width:0}section,.card{break-inside:avoid}table{font-size:10px}}
";
