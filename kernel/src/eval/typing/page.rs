//! How what is found is shown: as text, and as Markdown.
use super::catalog::{Entry, Kind, Member, TypeDef};
use super::ty::last;
use super::world::{Found, World};
use xlazy_mime::Bundle;

/// `owner` is the type or trait of a method.
pub fn shown(owner: &str, signature: &str, doc: &str) -> Bundle {
    let doc = without_links(doc);
    let of = if owner.is_empty() { String::new() } else { format!("{owner}\n") };
    let behind = if doc.is_empty() { String::new() } else { format!("\n\n{doc}") };
    let plain = format!("{of}{signature}{behind}");
    let head = if owner.is_empty() { String::new() } else { format!("// {owner}\n") };
    Bundle::text(plain).with("text/markdown", format!("```rust\n{head}{signature}\n```{behind}"))
}

/// What a path leads to.
pub fn found(world: &World, found: &Found) -> Option<Bundle> {
    match found {
        Found::Module(path) => {
            let names: Vec<String> = world.entries(path).into_iter().map(|e| e.name).collect();
            Some(shown("", &format!("mod {path}"), &names.join(", ")))
        }
        Found::Type(path) => {
            let def = world.def(path)?;
            Some(shown("", &(with_parts(def) + &made_by(world, path)), &def.doc))
        }
        Found::Item(e) => Some(item(e)),
        Found::Member(owner, m) => Some(shown(last(owner), &m.signature, &m.doc)),
    }
}

pub fn item(e: &Entry) -> Bundle {
    let head = if e.signature.is_empty() { format!("{} {}", e.kind.word(), e.name) } else { e.signature.clone() };
    shown("", &head, &e.doc)
}

/// A type as its definition would begin, with the named fields or the variants that are public.
fn with_parts(def: &TypeDef) -> String {
    let is_part = |m: &&Member| match m.kind {
        Kind::Field => !m.name.starts_with(|c: char| c.is_ascii_digit()),
        kind => kind == Kind::Variant,
    };
    let parts: Vec<String> = def.members.iter().filter(is_part).map(|m| format!("    {},\n", m.signature)).collect();
    let head = match def.text.split_once(" {") {
        _ if def.text.is_empty() => format!("{} {}", def.kind.word(), last(&def.path)),
        Some((head, _)) if !parts.is_empty() => head.to_owned(),
        _ => def.text.clone(),
    };
    if parts.is_empty() { head } else { format!("{head} {{\n{}}}", parts.concat()) }
}

/// The functions that make a type, as they are called.
fn made_by(world: &World, path: &str) -> String {
    const MOST: usize = 8;
    let name = last(path);
    let call = |signature: &str| {
        let (front, rest) = signature.split_once("fn ")?;
        let made = rest.rsplit_once("-> ").map(|(_, made)| made.trim())?;
        let of_name = made.strip_prefix("Self").or_else(|| made.strip_prefix(name))?;
        let makes = of_name.is_empty() || of_name.starts_with('<');
        let takes_self = rest.split_once('(').is_some_and(|(_, arguments)| {
            let first = arguments.split([',', ')']).next().unwrap_or_default();
            first.ends_with("self") || first.trim_start_matches("mut ").starts_with("self:")
        });
        (makes && !takes_self && !front.contains("unsafe")).then(|| format!("\n{name}::{rest}"))
    };
    let mut all: Vec<String> = world.associated(path).iter().filter_map(|h| call(&h.member.signature)).collect();
    all.truncate(MOST);
    all.concat()
}

/// Documentation with the words of rustdoc's links to items, ``[`Vec`](std::vec::Vec)``, in their place: nobody could follow them.
fn without_links(doc: &str) -> String {
    let mut fenced = false;
    let line = |line: &str| {
        fenced ^= line.trim_start().starts_with("```");
        if fenced { line.to_owned() } else { plain_links(line) }
    };
    doc.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn plain_links(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(open) = rest.find('[') {
        let (before, link) = rest.split_at(open);
        out.push_str(before);
        // A place in a list is no link, nor what is written as code.
        let apart = !before.ends_with(|c: char| c.is_alphanumeric() || c == ')') && out.matches('`').count() % 2 == 0;
        let words = link[1..].find(']').map(|end| &link[1..1 + end]).filter(|words| apart && !words.contains('['));
        let behind = words.map_or("", |words| &link[words.len() + 2..]);
        let target = behind.strip_prefix('(').and_then(|b| b.split_once(')')).map(|(to, _)| to);
        let code = words.is_some_and(|w| w.len() > 2 && w.starts_with('`') && w.ends_with('`'));
        let length = match (words, target) {
            (Some(words), Some(to)) if !to.contains("://") => words.len() + 2 + to.len() + 2,
            (Some(words), None) if code => words.len() + 2,
            _ => {
                out.push('[');
                rest = &link[1..];
                continue;
            }
        };
        out.push_str(words.unwrap_or_default());
        rest = &link[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_their_words() {
        for (doc, want) in [
            ("[`parts!`](crate::parts) writes it, [`Vec`] holds it.", "`parts!` writes it, `Vec` holds it."),
            ("See [the list](crate::list#here): [n, m] and `v[0](x)`.", "See the list: [n, m] and `v[0](x)`."),
            ("[Rust](https://rust-lang.org) stays.", "[Rust](https://rust-lang.org) stays."),
            ("```\nv[0](x); [`a`]\n```\n[`a`]", "```\nv[0](x); [`a`]\n```\n`a`"),
            ("[open, [`a`](b)", "[open, `a`"),
        ] {
            assert_eq!(without_links(doc), want);
        }
    }
}
