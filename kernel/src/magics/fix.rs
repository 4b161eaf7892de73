//! `%fix`: the cell as an explanation would have it.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use serde_json::Value;
use xlazy_mime::{Bundle, Question};

pub const FIX: Magic = Magic {
    name: "fix",
    aliases: &[],
    usage: "%fix [N]",
    summary: "makes the cell with the fix that an explanation advises",
    help: r#"Takes the fix in code that `%why` shows (of compilation N, or of the last one that has such a fix) and makes the
cell as it is with it: in a notebook as the next cell, to be read and run; in a terminal it is printed. Nothing is
run and the old cell stays. Where the fix is in several cells, each is made.

```
let w = Tensor::ones([8]);
for rows in [4, 4, 2] {
    let x = Tensor::from_vec(vec![0.5f32; rows * 8], [rows, 8]);
    let y = (x * &w).tanh().mean();
    xlazy::sync();
}
%fix
```"#,
    scope: Scope::Line,
    takes: Takes::Number("compilation"),
    json: true,
    reads: Reads::Bare,
    run: |call, events| {
        if call.json {
            return answer::ask(Question::Fix, call, events);
        }
        let made = match call.host.call(Question::Fix, &format!("{} --json", call.args)) {
            Ok(bundle) => bundle,
            Err(failure) => return Reply::Error(failure),
        };
        let made: Value = made.get("application/json").and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
        for cell in made["cells"].as_array().into_iter().flatten() {
            let text = cell["text"].as_str().unwrap_or_default();
            let said = format!("cell {} with the fix of compilation {}:", cell["cell"], made["compilation"]);
            answer::display(Bundle::text(said), events);
            events(Event::NextInput(text.to_owned()));
        }
        Reply::Ok
    },
};
