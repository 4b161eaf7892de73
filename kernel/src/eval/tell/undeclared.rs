//! Names that nobody declared: what is to be written to declare one, and those that are the prelude's for that.
use super::retold::{About, Known, Retold};
use super::texts::Texts;
use crate::eval::parse::syntax::apart;
use crate::eval::text::scan::Kind;
use crate::eval::text::source::CellText;
use crate::eval::text::{depth, scan};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// How what declares a name begins.
pub(super) const DECLARE: &str = "to declare it, write `let`: ";

/// An assignment to what is nowhere declared, as a declaration.
pub(super) fn declaration(error: &Diagnostic, texts: &Texts) -> Option<String> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    assigned_first(text, &at)
}

/// The assignment to what stands there, as a declaration.
fn assigned_first(text: &CellText, at: &Range<usize>) -> Option<String> {
    #[derive(Default)]
    struct Names(Vec<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
            self.0.extend(e.path.get_ident().map(|name| name.to_string()));
        }
        fn visit_macro(&mut self, m: &'ast syn::Macro) {
            self.0.extend(scan::mentions(&m.tokens.to_string()));
        }
    }
    struct Assignments<'t>(&'t Range<usize>, Option<[Range<usize>; 2]>);
    impl<'ast> Visit<'ast> for Assignments<'_> {
        fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
            let (mut named, mut others) = (Vec::new(), Vec::new());
            apart(&e.left, false, &mut named, &mut others);
            let mut value = Names::default();
            value.visit_expr(&e.right);
            // An index or a field of something is no pattern, and what it is made of may be what it is to be.
            let declares = others.is_empty() && !named.iter().any(|(name, _)| value.0.iter().any(|v| *name == v));
            if declares && named.iter().any(|(name, _)| name.span().byte_range() == *self.0) {
                self.1 = Some([e.left.span().byte_range(), e.span().byte_range()]);
            }
            syn::visit::visit_expr_assign(self, e);
        }
    }
    let text = &*text.text;
    let [pattern, all] = depth::as_people_write(text, || {
        let statements = depth::fits(text).then(|| syn::Block::parse_within.parse_str(text).ok())??;
        let mut found = Assignments(at, None);
        statements.iter().for_each(|s| found.visit_stmt(s));
        found.1
    })?;
    let fits = !["Some(", "Ok(", "Err("].iter().any(|of| text[pattern.clone()].contains(of));
    let line = text[all].lines().next()?;
    // Python's dictionaries and lists grow.
    let grows = [(" = {}", "std::collections::HashMap::new()"), (" = []", "vec![]")];
    if let Some((name, new)) = grows.iter().find_map(|(empty, new)| Some((line.strip_suffix(empty)?, new))) {
        return Some(format!("let mut {name} = {new}"));
    }
    Some(if fits { format!("let {line}") } else { format!("let {line} else {{ todo!() }}") })
}

/// A name that the user has not declared, and that is therefore the prelude's: to its author it is undefined.
pub(super) fn of_the_prelude(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<Retold> {
    let said = error.spans.iter().filter_map(|s| s.label.as_deref()).chain(error.children.iter().map(|c| &*c.message));
    let module = error.message.strip_prefix("expected value, found module `").and_then(|m| m.split('`').next());
    let module = module.filter(|m| error.code == "E0423" && !(known.is_type)(m) && !(known.is_imported)(m));
    let wants_a_function = error.message.contains("closure") || error.message.contains("Fn");
    let parts = [error.message.as_str()].into_iter().chain(said).flat_map(|text| text.split('`'));
    let function = || parts.filter_map(function_of_the_prelude).next();
    // What is assigned to is no function: rustc says no more than that.
    let assigned = || {
        let (text, at) =
            error.spans.iter().filter(|s| !s.primary && error.code == "E0070").find_map(|s| texts.map(s))?;
        let name = text.text.get(at)?;
        let plain = name.starts_with(char::is_lowercase) && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let ours = plain && !(known.is_value)(name) && !(known.is_imported)(name) && !known.vars.contains(&name);
        ours.then(|| name.to_owned())
    };
    // One that takes several types.
    let generic = || {
        let label = error.spans.iter().find(|s| s.primary && error.code == "E0283")?.label.as_deref()?;
        let name = label.split_once(" declared on the function `")?.1.split('`').next()?;
        let ours = !(known.is_value)(name) && !(known.is_imported)(name);
        ours.then(|| name.to_owned())
    };
    let (name, what) = match (module, assigned().or_else(generic)) {
        (Some(module), _) => (module.to_owned(), "module"),
        (None, Some(name)) => (name, "function"),
        (None, None) => (function().filter(|_| !wants_a_function)?, "function"),
    };
    let here = |(text, at): (&Arc<CellText>, Range<usize>)| {
        if let Some(range) = in_a_format_string(text, &at, &name) {
            return Some((text.clone(), range));
        }
        let start = text.text[..at.start].rfind('\n').map_or(0, |i| i + 1);
        let line = &text.text[start..text.text[at.end..].find('\n').map_or(text.text.len(), |i| at.end + i)];
        let tokens = scan::tokens(line);
        let word = |i: usize| tokens.get(i).map_or("", |t| &line[t.range.clone()]);
        let declares = ["use", "mod"].iter().any(|word| scan::follows(&text.text, &[word], &name));
        let alone = |i: &usize| {
            word(*i) == name
                && !matches!(i.checked_sub(1).map_or("", word), "." | ":" | "fn")
                && !matches!(word(i + 1), "(" | ":" | "!")
        };
        let found = (0..tokens.len()).find(alone).filter(|_| !declares)?;
        let range = tokens[found].range.clone();
        Some((text.clone(), start + range.start..start + range.end))
    };
    let (text, range) = error.spans.iter().filter_map(|s| texts.map(s)).find_map(here)?;
    let dotted = what == "module" && text.text[range.end..].trim_start().starts_with('.');
    let prelude = match dotted {
        true => format!("`{name}` is a module: its names stand behind `{name}::`, and a type is made by its `new`"),
        false => format!("no variable of that name is declared; without one, `{name}` is a {what} of xlazy's prelude"),
    };
    if let Some(what) = known.gone.get(&name) {
        let declared = assigned_first(&text, &range);
        let help = declared.map(|declared| format!("to give it another value, write `let`: `{declared}`"));
        let (title, about) = (format!("`{name}` {what}"), About::Part(text, range));
        return Some(Retold { title, help, with_labels: false, about, change: None });
    }
    let help = match assigned_first(&text, &range) {
        Some(declared) => {
            format!("to declare it, write `let`: `{declared}`; without one, `{name}` is a {what} of xlazy's prelude")
        }
        None => prelude,
    };
    Some(Retold {
        title: format!("cannot find value `{name}` in this scope"),
        help: Some(help),
        with_labels: false,
        about: About::Part(text, range),
        change: None,
    })
}

/// As rustc writes the type of a function, on its own: `fn(&Tensor) -> Bundle {xlazy::display::image}`.
fn function_of_the_prelude(ty: &str) -> Option<String> {
    let ty = ty.trim_start_matches("fn item ").trim_start_matches('&');
    let path = ["for<", "fn("].iter().any(|w| ty.starts_with(w)).then(|| ty.strip_suffix('}'))??;
    let path = path.split_once("{xlazy::")?.1.split("::<").next()?;
    path.rsplit("::").next().map(str::to_owned)
}

/// A name in a format string that rustc points at, as in `"{name:?}"` and `"{x:>name$}"`.
fn in_a_format_string(text: &CellText, at: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let inside = |t: &scan::Token| t.kind == Kind::Literal && t.range.start < at.start && at.end < t.range.end;
    scan::tokens(&text.text).iter().find(|t| inside(t))?;
    let mut words = scan::tokens(text.text.get(at.clone())?).into_iter();
    let word = words.find(|t| text.text[at.start..][t.range.clone()] == *name)?.range;
    Some(at.start + word.start..at.start + word.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_assigned_to_is_declared_by_its_names() {
        let declared = |text: &str, name: &str| {
            let at = scan::tokens(text).into_iter().find(|t| text[t.range.clone()] == *name).unwrap().range;
            assigned_first(&CellText::new(1, text), &at)
        };
        let patterns = "a|(a, b)|[a, b]|[b, .., a]|(b, [c, (a, _)])|P { x: a, .. }|P { a, y }|T(a, ..)|m::T(_, a)|((a))|(T(b), P { x: [a], y })";
        for pattern in patterns.split('|') {
            let whole = format!("{pattern} = f(1)");
            for text in [whole.clone(), format!("{whole};"), format!("fn g() {{ if x {{ {whole}; }} }}")] {
                assert_eq!(declared(&text, "a"), Some(format!("let {whole}")), "{text}");
            }
        }
        assert_eq!(
            declared("P { a, .. } = P { a: 1, b: 2 }", "a").as_deref(),
            Some("let P { a, .. } = P { a: 1, b: 2 }")
        );
        assert_eq!(declared("(b, Some(a)) = f()", "a").as_deref(), Some("let (b, Some(a)) = f() else { todo!() }"));
        for other in [
            "a.x = 1",
            "(a.x, b) = f()",
            "[b, v[a]] = f()",
            "*a = 1",
            "(a, b) = (b, a)",
            "x = a",
            "P { a: x } = f()",
            "[a, b] = vec![1, a][..]",
            "a = format!(\"{}\", a)",
        ] {
            assert_eq!(declared(other, "a"), None, "{other}");
        }
    }

    #[test]
    fn a_name_in_a_format_string_is_found_where_rustc_points() {
        for (text, at, found) in [
            (r#"print!("{image}")"#, "{image}", Some(9)),
            (r#"print!("é {x} {image:?}")"#, "{image:?}", Some(16)),
            (r##"print!(r#"{x:>image$}"#)"##, "{x:>image$}", Some(14)),
            (r#"print!("{images}")"#, "{images}", None),
            ("f(image)", "image", None),
        ] {
            let at = text.find(at).map(|start| start..start + at.len()).unwrap();
            let range = in_a_format_string(&CellText::new(1, text), &at, "image");
            assert_eq!(range.map(|r| r.start), found, "{text}");
        }
        let width = "&for<'a> fn(&'a [_], i64) -> xlazy::Tensor {xlazy::stack::<_>}";
        assert_eq!(function_of_the_prelude(width).as_deref(), Some("stack"));
        assert_eq!(function_of_the_prelude("fn(i32) -> i32 {stack}"), None);
    }
}
