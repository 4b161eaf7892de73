//! Programs as text to look at: HTML that scrolls and does not wrap, with what is beside the point set back.
use xlazy_mime::{Bundle, escape_html};

/// Text of a program with its HTML form. A first line of explanation is shown above it.
pub(crate) fn program(head: &str, text: &str) -> Bundle {
    let lines: Vec<String> = text.lines().map(line).collect();
    let html = format!(
        "<div><div style=\"opacity:.75;font-size:.9em\">{}</div><pre style=\"overflow:auto;max-height:560px;white-space:pre;\
         color:inherit;background:none;margin:2px 0;font-size:.88em;line-height:1.4\">{}</pre></div>",
        escape_html(head),
        lines.join("\n")
    );
    Bundle::html(html, format!("{head}\n{}", text.trim_end())).passing()
}

fn line(text: &str) -> String {
    let aside = ["  # ", ", metadata={", "} : ("].iter().filter_map(|mark| text.find(mark)).min();
    let faint = |s: &str| format!("<span style=\"opacity:.55\">{}</span>", escape_html(s));
    match aside {
        Some(at) => escape_html(&text[..at]) + &faint(&text[at..]),
        None => escape_html(text),
    }
}
