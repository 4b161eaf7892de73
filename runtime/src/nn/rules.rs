//! Rules over names, which say how a tensor lies over a mesh.

/// How a tensor of that name and so many dimensions is to lie.
///
/// Errors: the first rule that fits is of other dimensions.
pub(super) fn spec_of<'a>(
    name: &str,
    dims: usize,
    rules: &[(&str, &[Option<&'a str>])],
) -> std::result::Result<Vec<Option<&'a str>>, String> {
    match rules.iter().find(|(pattern, _)| fits(pattern, name)) {
        None => Ok(vec![None; dims]),
        Some((_, spec)) if spec.len() == dims => Ok(spec.to_vec()),
        Some((pattern, spec)) => Err(format!(
            "the rule for {pattern:?} is of {} dimensions, and `{name}` has {dims}: give it a rule of its own before",
            spec.len()
        )),
    }
}

/// Whether a name fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => {
            name.starts_with(head)
                && (head.len()..=name.len()).any(|at| name.is_char_boundary(at) && fits(rest, &name[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_is_any_text() {
        let all = [("a.*", "a.b.c"), ("*.weight", "0.weight"), ("*", ""), ("a*b*c", "aXbYc"), ("é*", "éa")];
        assert!(all.iter().all(|(p, n)| fits(p, n)));
        let none = [("a.*", "b.a."), ("*.weight", "0.weights"), ("", "a"), ("a*b*c", "acb")];
        assert!(!none.iter().any(|(p, n)| fits(p, n)));
    }
}
