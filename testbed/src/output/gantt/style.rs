//! How the Gantt chart looks.

/// How many colours there are for kinds of tasks.
pub(crate) const COLOURS: usize = 6;

/// Definitions and style: light, and dark where the reader prefers it.
pub(crate) const HEAD: &str = r##"<defs>
<pattern id="boot" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" fill="#8a94a6" fill-opacity=".45"/></pattern>
<pattern id="ice" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="7" height="7" fill="#7cc4f5" fill-opacity=".35"/><rect width="2" height="7" fill="#2f8fd8" fill-opacity=".55"/></pattern>
<pattern id="slow" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.2" height="5" fill="#ffffff" fill-opacity=".55"/></pattern>
<pattern id="lost" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="5" fill="#d4351c" fill-opacity=".75"/></pattern>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#b3261e"/></marker>
</defs>
<style>
.gantt{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.gantt .bg{fill:#ffffff}
.gantt text{fill:#1d2433;font-size:11px}
.gantt .title{font-size:15px;font-weight:600}
.gantt .sub{fill:#5b6577}
.gantt .name{font-weight:600}
.gantt .small{font-size:9.5px;fill:#5b6577}
.gantt .mid{text-anchor:middle}
.gantt .end{text-anchor:end}
.gantt .in{font-size:9px;fill:#ffffff}
.gantt .grid{stroke:#d9dee7;stroke-width:1}
.gantt .life{fill:#eef1f6}
.gantt .boot{fill:url(#boot)}
.gantt .ice{fill:url(#ice);stroke:#2f8fd8;stroke-opacity:.6;stroke-width:.7}
.gantt .task{stroke:#ffffff;stroke-width:.8}
.gantt .c0{fill:#3566b8}.gantt .c1{fill:#2a8c6a}.gantt .c2{fill:#b4632a}.gantt .c3{fill:#7a4fb0}.gantt .c4{fill:#ab3b6d}.gantt .c5{fill:#5f7a1f}
.gantt .slow{fill:url(#slow);pointer-events:none}
.gantt .lost{fill:url(#lost);pointer-events:none}
.gantt .ckpt{fill:#ffffff;stroke:#1d2433;stroke-width:.7}
.gantt .move{fill:none;stroke:#b3261e;stroke-width:1.3;stroke-opacity:.75;marker-end:url(#tip)}
.gantt .steal{fill:#ffd54a;stroke:#7a5b00;stroke-width:.6}
.gantt .credit{fill:#e2b93b;fill-opacity:.3;stroke:#b08a12;stroke-width:1.2}
.gantt .due{stroke:#c62828;stroke-width:1.6}
.gantt .spot{stroke:#e07b00;stroke-width:1.4;stroke-dasharray:5 4}
.gantt .done{stroke:#1b7f4b;stroke-width:1.4;stroke-dasharray:2 3}
.gantt .due-t{fill:#c62828}.gantt .spot-t{fill:#b86400}.gantt .done-t{fill:#1b7f4b}
.gantt .job{stroke:#ffffff;stroke-width:.5}
.gantt .below{fill-opacity:.5;stroke:none}
.gantt .hop{stroke:#b3261e;stroke-width:1.1;stroke-opacity:.8}
.gantt .gone{stroke:#c62828;stroke-width:2.4}
@media (prefers-color-scheme:dark){
.gantt .bg{fill:#12161f}
.gantt text{fill:#e4e8f0}
.gantt .sub,.gantt .small{fill:#9aa5b8}
.gantt .grid{stroke:#2a3242}
.gantt .life{fill:#1c2331}
.gantt .in{fill:#ffffff}
.gantt .task,.gantt .job{stroke:#12161f}
.gantt .hop{stroke:#ff8a80}
.gantt .c0{fill:#4f83da}.gantt .c1{fill:#35a881}.gantt .c2{fill:#cd7a3d}.gantt .c3{fill:#9468cc}.gantt .c4{fill:#c8578a}.gantt .c5{fill:#7b9a2f}
.gantt .due-t{fill:#ff7b72}.gantt .spot-t{fill:#ffb454}.gantt .done-t{fill:#56d08f}
}
</style>
"##;
