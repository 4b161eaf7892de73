//! `%help`: the table of magics, or everything about one of them.
use super::{Magic, Scope, Session, TABLE, answer, find, names, nearest};
use crate::engine::{Event, Reply};
use xlazy_mime::{Bundle, escape_html};

pub struct Help;

impl Magic for Help {
    fn name(&self) -> &'static str {
        "help"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["magics"]
    }

    fn usage(&self) -> &'static str {
        "%help [--json] [MAGIC]"
    }

    fn summary(&self) -> &'static str {
        "lists the magics, or explains one"
    }

    fn help(&self) -> &'static str {
        r#"Lists every magic with one line each; with a name, explains that magic.

```
%help
%help time
%help !
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, _args: &str) -> bool {
        true
    }

    fn run(&self, args: &str, _body: Option<&str>, _session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        let (json, topic) = answer::json_flag(args);
        let topic = topic.trim_start_matches('%');
        let magics = match topic {
            "" => TABLE,
            "!" => std::slice::from_ref(find("!").expect("the shell is in the table")),
            name => match find(name) {
                Some(magic) => std::slice::from_ref(magic),
                None => {
                    let hint = nearest(name, names()).map(|n| format!(" Did you mean %{n}?")).unwrap_or_default();
                    return answer::usage(self, &format!("there is no magic %{name} to explain.{hint}"));
                }
            },
        };
        if json {
            answer::display(answer::json(&as_json(magics)), events);
        } else {
            events(Event::Page(if topic.is_empty() { listing(magics) } else { page(magics[0]) }));
        }
        Reply::Ok
    }
}

/// How the name is written in a cell: `%vars`, `%time %%time`, `!`.
fn written(magic: &dyn Magic) -> String {
    let name = magic.name();
    match magic.scope() {
        _ if name == "!" => "!command".to_owned(),
        Scope::Line => format!("%{name}"),
        Scope::Cell => format!("%%{name}"),
        Scope::Both => format!("%{name} %%{name}"),
    }
}

fn listing(magics: &[&dyn Magic]) -> Bundle {
    let width = magics.iter().map(|m| written(*m).len()).max().unwrap_or(0);
    let mut text = String::from("Magics (%help NAME explains one):\n");
    let mut html = String::from("<table><thead><tr><th>Magic</th><th>What it does</th></tr></thead><tbody>");
    for magic in magics {
        let written = written(*magic);
        text.push_str(&format!("  {written:width$}  {}\n", magic.summary()));
        html.push_str(&format!(
            "<tr><td style=\"text-align:left\"><code>{}</code></td><td style=\"text-align:left\">{}</td></tr>",
            escape_html(&written),
            escape_html(magic.summary())
        ));
    }
    html.push_str("</tbody></table><p><code>%help NAME</code> explains one.</p>");
    Bundle::html(html, text)
}

fn page(magic: &dyn Magic) -> Bundle {
    let mut text = format!("{}\n\n{}", magic.usage(), magic.help());
    if !magic.aliases().is_empty() {
        let aliases: Vec<String> = magic.aliases().iter().map(|a| format!("%{a}")).collect();
        text.push_str(&format!("\n\nAlso written: {}", aliases.join(" ")));
    }
    // The fences are Markdown's; a terminal shows the example by its indent.
    let mut plain = String::new();
    let mut example = false;
    for line in text.lines() {
        match (line == "```", example) {
            (true, _) => example = !example,
            (false, true) => plain.push_str(&format!("    {line}\n")),
            (false, false) => plain.push_str(&format!("{line}\n")),
        }
    }
    Bundle::html(format!("<pre>{}</pre>", escape_html(&plain)), plain)
}

fn as_json(magics: &[&dyn Magic]) -> serde_json::Value {
    let one = |m: &&dyn Magic| {
        serde_json::json!({
            "name": m.name(), "aliases": m.aliases(), "usage": m.usage(), "summary": m.summary(), "help": m.help(),
            "line": m.scope() != Scope::Cell, "cell": m.scope() != Scope::Line,
        })
    };
    magics.iter().map(one).collect()
}
