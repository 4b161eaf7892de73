//! Python's pictures: several calls of `plt` are one plot here, which a block shows where it stands.
use super::instead::rewritten;
use super::ours::Ours;
use super::words::Words;

const PLOT: &str = "Plot::new(\"\")";

/// What calls of `plt` one behind the other show, each picture as a statement; none where one of them is something else.
pub(super) fn shown(lines: &[&str], ours: &Ours) -> Option<String> {
    let (mut out, mut title, mut drawn, mut labels) = (Vec::new(), "\"\"".to_owned(), String::new(), String::new());
    for line in lines {
        let words = Words::of(line);
        let name = (words.word(0) == "plt" && words.word(1) == ".").then(|| words.word(2))?;
        let given = words.listed(words.arguments(2)?)?;
        match (name, given.first().map(|given| given.replace('\'', "\""))) {
            ("title", Some(text)) => title = text,
            ("xlabel", Some(text)) => labels += &format!(".x_label({text})"),
            ("ylabel", Some(text)) => labels += &format!(".y_label({text})"),
            ("figure" | "subplot" | "subplots" | "legend" | "show" | "close" | "axis" | "tight_layout" | "grid", _) => {
            }
            _ => match rewritten(line, ours) {
                code if code == **line => return None,
                code => match code.strip_prefix(PLOT) {
                    Some(of) if !of.starts_with(".save(") => drawn += of,
                    Some(_) => return None,
                    None => out.push(format!("display(&{code});")),
                },
            },
        }
    }
    if !drawn.is_empty() {
        out.push(format!("display(&Plot::new({title}){drawn}{labels});"));
    }
    Some(out.join(" "))
}

/// How many lines from the first on are calls of `plt`.
pub(super) fn count(lines: &[&str]) -> usize {
    lines.iter().take_while(|line| line.trim_start().starts_with("plt.")).count()
}
