//! How an op is called, as its example on the page of all ops has it.
use super::words::Words;

/// The arguments of the first call of `name` in an example.
pub(super) fn arguments<'e>(example: &'e str, name: &str) -> Option<Vec<&'e str>> {
    let words = Words::of(example);
    let call = (0..words.len()).filter(|&i| words.word(i) == name).find_map(|i| words.arguments(i))?;
    words
        .between_commas(call.start, call.end)
        .into_iter()
        .map(|one| Some(&example[words.part(one.start, one.end)?.1]))
        .collect()
}

/// What torch would have got, as the example has it: lent what it lends, and behind that what has one plain value where torch
/// has an option. Nothing where they are not as many.
pub(super) fn like(given: &[String], example: &[&str]) -> Option<Vec<String>> {
    let lent = |text: &String| match text.starts_with(['&', '-']) || text.starts_with(|c: char| c.is_ascii_digit()) {
        true => text.clone(),
        false => format!("&{text}"),
    };
    if let [list] = example
        && list.starts_with("&[&")
        && given.iter().all(|g| !g.contains(['[', '(']))
    {
        return Some(vec![format!("&[{}]", given.iter().map(lent).collect::<Vec<_>>().join(", "))]);
    }
    let plain = |e: &&str| *e == "None" || *e == "Reduction::Mean" || e.ends_with("::default()");
    let rest = example.get(given.len()..)?;
    rest.iter().all(plain).then(|| {
        let first = given.iter().zip(example).map(|(g, e)| if e.starts_with('&') { lent(g) } else { g.clone() });
        first.chain(rest.iter().map(|e| (*e).to_owned())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(given: &[&str], example: &str, name: &str) -> Option<String> {
        let given: Vec<String> = given.iter().map(|g| (*g).to_owned()).collect();
        like(&given, &arguments(example, name)?).map(|all| all.join(", "))
    }

    #[test]
    fn arguments_become_as_the_example_has_them() {
        assert_eq!(called(&["w"], "tensor([1, 2]).outer(&tensor([3, 4]))", "outer").unwrap(), "&w");
        assert_eq!(
            called(&["a", "b"], "meshgrid(&[&tensor([1, 2]), &tensor([3])]).remove(1)", "meshgrid").unwrap(),
            "&[&a, &b]"
        );
        assert_eq!(
            called(&["w"], "x.conv2d(&k, None, ConvOptions::default())", "conv2d").unwrap(),
            "&w, None, ConvOptions::default()"
        );
        assert_eq!(called(&["1"], "x.normalize(2.0, 0, 1e-12)", "normalize"), None);
        assert_eq!(called(&["m", "0.0"], "x.masked_fill(&m, 0.5)", "masked_fill").unwrap(), "&m, 0.0");
    }
}
