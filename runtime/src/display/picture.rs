//! Drawings in HTML. Who strips scripts - GitHub, JupyterLab of a notebook that is not trusted - takes inline SVG apart, too, and leaves
//! its words; so a drawing is an image on a card, which a script puts into the page, in the colours around it.
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use xlazy_mime::{Bundle, Content, escape_html};

/// What drawings are drawn with: dark, and the colour of the text where the page has them.
pub(crate) const INK: &str = "#2D2D32";

const SCRIPT: &str = include_str!("picture.js");

/// The ground that reads on light and on dark pages; the page's own takes its place.
pub(crate) fn card(width: impl Display, height: impl Display) -> String {
    format!("<rect data-card=\"1\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#f7f7f8\"/>")
}

/// A drawing as an image, for good or until a script puts something in its place.
pub(crate) fn still(svg: &str, alt: &str) -> String {
    image(svg, alt, "")
}

/// A drawing in the colours of the page around it where scripts run, else as an image.
pub(crate) fn drawing(svg: &str, alt: &str) -> String {
    let id = fresh_id("drawing");
    let image = image(svg, alt, &format!("id=\"{id}\" "));
    format!("{image}<script>{}(\"{id}\",\"{INK}\");</script>", script(SCRIPT))
}

/// What a display shows in HTML, if that is more than text.
pub(crate) fn of_bundle(bundle: &Bundle) -> Option<String> {
    let alt = bundle.plain().lines().next().unwrap_or_default();
    let one = |(mime, content): &(String, Content)| match content {
        Content::Text(text) if mime == "text/html" => Some((0, text.clone())),
        Content::Text(text) if mime == "image/svg+xml" => Some((1, still(text, alt))),
        Content::Bytes(bytes) if mime.starts_with("image/") => Some((2, embedded(mime, bytes, alt, ""))),
        _ => None,
    };
    bundle.entries.iter().filter_map(one).min_by_key(|(order, _)| *order).map(|(_, html)| html)
}

fn image(svg: &str, alt: &str, id: &str) -> String {
    embedded("image/svg+xml", svg.as_bytes(), alt, id)
}

fn embedded(mime: &str, image: &[u8], alt: &str, id: &str) -> String {
    let data = BASE64_STANDARD.encode(image);
    format!("<img {id}alt=\"{}\" src=\"data:{mime};base64,{data}\" style=\"max-width:100%\">", escape_html(alt))
}

/// An element's id that no other output has, also of other sessions: a notebook shows them all on one page.
pub(crate) fn fresh_id(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut h = DefaultHasher::new();
    (COUNT.fetch_add(1, Ordering::Relaxed), std::process::id(), SystemTime::now()).hash(&mut h);
    format!("xlazy-{what}-{:016x}", h.finish())
}

/// A script without its first line, which is for who reads the source.
pub(crate) fn script(code: &'static str) -> &'static str {
    code.split_once('\n').map_or(code, |(_, code)| code).trim_end()
}

/// JSON that can stand in a script: nothing in it ends one, or begins a comment.
pub(crate) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
