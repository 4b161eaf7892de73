//! Rules over names, which say how a tensor lies over a mesh.
use super::state::fit;

/// How a tensor of that name and so many dimensions is to lie.
///
/// Errors: the first rule that fits is of other dimensions.
pub(super) fn spec_of<'a>(
    name: &str,
    dims: usize,
    rules: &[(&str, &[Option<&'a str>])],
) -> std::result::Result<Vec<Option<&'a str>>, String> {
    match rules.iter().find(|(pattern, _)| fit(pattern, name).is_some()) {
        None => Ok(vec![None; dims]),
        Some((_, spec)) if spec.len() == dims => Ok(spec.to_vec()),
        Some((pattern, spec)) => Err(format!(
            "the rule for {pattern:?} is of {} dimensions, and `{name}` has {dims}: give it a rule of its own before",
            spec.len()
        )),
    }
}
