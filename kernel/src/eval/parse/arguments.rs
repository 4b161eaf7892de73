//! Names in the arguments of a macro that nobody takes apart: which of them may be the value of a variable.
use proc_macro2::{Delimiter, Ident, Literal, TokenStream, TokenTree};

/// What a macro's arguments name.
#[derive(Default)]
pub(super) struct Named {
    /// Where a variable would be an expression, as far as the words around it tell.
    pub values: Vec<Ident>,
    /// Where it is something else: declared, assigned, interpolated, the name of an argument.
    pub others: Vec<Ident>,
    /// Texts, which may have names in them.
    pub texts: Vec<Literal>,
}

/// Macros for which the words themselves matter, and words that matter to how variables are taken along.
const LITERALLY: &[&str] = &["stringify", "concat", "move", "async", "await"];
const DECLARES: &[&str] = &["as", "const", "fn", "for", "let", "mod", "mut", "ref", "static", "struct", "type", "use"];

/// `None` where all that is mentioned has to stay as it is written.
pub(super) fn named(macro_name: &str, tokens: &TokenStream) -> Option<Named> {
    let mut named = Named::default();
    let literal = macro_name.contains("quote") || LITERALLY.contains(&macro_name) || macro_name == "paste";
    (!literal && named.add(tokens.clone())).then_some(named)
}

impl Named {
    fn add(&mut self, tokens: TokenStream) -> bool {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        let sign = |i: Option<usize>, c: char| matches!(i.and_then(|i| all.get(i)), Some(TokenTree::Punct(p)) if p.as_char() == c);
        for (i, token) in all.iter().enumerate() {
            let (before, next) = (i.checked_sub(1), Some(i + 1));
            match token {
                TokenTree::Group(g) => {
                    // What is between invisible delimiters is another macro's.
                    if g.delimiter() == Delimiter::None || !self.add(g.stream()) {
                        return false;
                    }
                }
                TokenTree::Literal(text) => self.texts.push(text.clone()),
                TokenTree::Punct(_) => {}
                TokenTree::Ident(ident) if LITERALLY.contains(&&*ident.to_string()) => return false,
                TokenTree::Ident(ident) => {
                    let range = sign(before, '.') && sign(i.checked_sub(2), '.');
                    let path =
                        sign(next, ':') && sign(Some(i + 2), ':') || sign(before, ':') && sign(i.checked_sub(2), ':');
                    let is_macro = sign(next, '!') && !sign(Some(i + 2), '=');
                    if path || is_macro || sign(before, '.') && !range {
                        continue;
                    }
                    let word = match before.and_then(|i| all.get(i)) {
                        Some(TokenTree::Ident(word)) => word.to_string(),
                        _ => String::new(),
                    };
                    let assigned = sign(next, '=') && !sign(Some(i + 2), '=');
                    let other = ['#', '$', '\'', '|', '@'].iter().any(|c| sign(before, *c))
                        || sign(next, ':')
                        || sign(next, '@')
                        || assigned
                        || DECLARES.contains(&&*word);
                    if other { self.others.push(ident.clone()) } else { self.values.push(ident.clone()) }
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_names_are_values() {
        let of = |name: &str, tokens: &str| {
            let all = named(name, &tokens.parse().unwrap())?;
            let words = |idents: &[Ident]| idents.iter().map(Ident::to_string).collect::<Vec<_>>().join(" ");
            Some((words(&all.values), words(&all.others)))
        };
        let is = |tokens: &str, values: &str, others: &str| {
            assert_eq!(of("m", tokens), Some((values.to_owned(), others.to_owned())), "{tokens}");
        };
        is("\"{} {}\", a.len(), b.c.d(e)", "a b e", "");
        is("x > 3 && y == z && 0..n != k", "x y z n k", "");
        is("x = y, z: w, q => r", "y w r", "x z q");
        is("|a, b| a + b", "b b", "a a");
        is("let a = b; #c $d f::g() h! (i)", "let b i", "a c d");
        for literal in ["stringify", "quote_spanned", "paste"] {
            assert_eq!(of(literal, "x"), None);
        }
        assert_eq!(of("spawn", "move || x"), None);
    }
}
