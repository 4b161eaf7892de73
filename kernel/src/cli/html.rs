//! A notebook as one page of HTML, for readers without Jupyter: no network, no script of its own, light or dark as the reader has it.
use super::notebook::{Notebook, joined};
use crate::repl::coloured;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html::push_html};
use serde_json::Value;
use xlazy_mime::escape_html;

const STYLE: &str = include_str!("html.css");

/// The page. `name` is its title where the notebook begins with no heading.
pub fn page(notebook: &Notebook, name: &str) -> String {
    let cells = notebook.cells();
    let heading = |c: &Value| {
        let text = joined(&c["source"]);
        let title = text.lines().find_map(|l| l.strip_prefix("# "))?;
        (c["cell_type"] == "markdown").then(|| title.trim().to_owned())
    };
    let title = cells.first().and_then(heading).unwrap_or_else(|| name.to_owned());
    let body: String = cells
        .iter()
        .map(|cell| match cell["cell_type"].as_str() {
            Some("markdown") => {
                format!("<section>{}</section>\n", prose(&joined(&cell["source"]), &cell["attachments"]))
            }
            Some("code") => code(cell),
            _ => format!("<pre class=\"raw\">{}</pre>\n", escape_html(&joined(&cell["source"]))),
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape_html(&title)
    )
}

/// A code cell and what it has shown.
fn code(cell: &Value) -> String {
    let source = joined(&cell["source"]);
    if source.trim().is_empty() {
        return String::new();
    }
    let number = cell["execution_count"].as_u64().map_or_else(String::new, |n| n.to_string());
    let outputs: String = cell["outputs"].as_array().into_iter().flatten().filter_map(output).collect();
    format!(
        "<section class=\"code\">\n<pre class=\"source\" data-count=\"{number}\">{}</pre>\n{outputs}</section>\n",
        ansi(&coloured(&source))
    )
}

fn output(output: &Value) -> Option<String> {
    match output["output_type"].as_str()? {
        "stream" => {
            let name = if output["name"] == "stderr" { "stderr" } else { "stdout" };
            Some(format!("<pre class=\"{name}\">{}</pre>\n", ansi(&joined(&output["text"]))))
        }
        "error" => {
            let lines: Vec<&str> = output["traceback"].as_array()?.iter().filter_map(Value::as_str).collect();
            Some(format!("<pre class=\"stderr\">{}</pre>\n", ansi(&lines.join("\n"))))
        }
        _ => shown(&output["data"]).map(|html| format!("<div class=\"output\">{html}</div>\n")),
    }
}

/// The richest form that a page can have.
fn shown(data: &Value) -> Option<String> {
    let text = |mime: &str| data.get(mime).map(joined);
    if let Some(html) = text("text/html") {
        return Some(html);
    }
    if let Some(svg) = text("image/svg+xml") {
        return Some(picture("image/svg+xml", &STANDARD.encode(svg)));
    }
    for mime in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
        if let Some(base64) = text(mime) {
            return Some(picture(mime, &base64.split_whitespace().collect::<String>()));
        }
    }
    if let Some(markdown) = text("text/markdown") {
        return Some(prose(&markdown, &Value::Null));
    }
    text("text/plain").filter(|t| !t.is_empty()).map(|t| format!("<pre>{}</pre>", ansi(&t)))
}

fn picture(mime: &str, base64: &str) -> String {
    format!("<img alt=\"\" src=\"data:{mime};base64,{}\">", escape_html(base64))
}

fn prose(markdown: &str, attachments: &Value) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let attached = |url: &str| {
        let (mime, base64) = attachments.get(url.strip_prefix("attachment:")?)?.as_object()?.iter().next()?;
        Some(format!("data:{mime};base64,{}", joined(base64)))
    };
    let events = Parser::new_ext(markdown, options).map(|event| match event {
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let dest_url = attached(&dest_url).map_or(dest_url, CowStr::from);
            Event::Start(Tag::Image { link_type, dest_url, title, id })
        }
        other => other,
    });
    let mut html = String::new();
    push_html(&mut html, events);
    html
}

/// Text with colours of terminals as HTML.
fn ansi(text: &str) -> String {
    ansi_to_html::Converter::new()
        .four_bit_var_prefix(Some("t-".to_owned()))
        .convert(text)
        .unwrap_or_else(|_| escape_html(text))
}
