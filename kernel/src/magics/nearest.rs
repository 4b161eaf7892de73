//! The name somebody probably meant, for "did you mean".

/// The candidate nearest to what was typed, if any is near enough to be a likely slip of the fingers.
pub fn nearest<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    candidates
        .map(|c| (distance(&typed, c), c))
        .filter(|(distance, c)| *distance <= 1 + c.len().min(typed.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Edits between the two; a beginning of the name (`%met`) counts as one edit.
fn distance(typed: &str, candidate: &str) -> usize {
    if typed.len() >= 2 && candidate.starts_with(typed) {
        return 1;
    }
    strsim::damerau_levenshtein(typed, candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_understood_and_strangers_are_not() {
        let names = ["metrics", "graph", "ir", "vars", "time"];
        let find = |typed| nearest(typed, names.into_iter());
        assert_eq!(find("metircs"), Some("metrics"));
        assert_eq!(find("metric"), Some("metrics"));
        assert_eq!(find("met"), Some("metrics"));
        assert_eq!(find("Vars"), Some("vars"));
        assert_eq!(find("grpah"), Some("graph"));
        assert_eq!(find("elephant"), None);
        assert_eq!(find("q"), None);
    }
}
