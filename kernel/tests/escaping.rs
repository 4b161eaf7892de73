//! Text of the user is text in HTML, wherever it is shown.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use process::Process;
use serde_json::json;

#[test]
fn text_of_the_user_is_escaped_in_every_html() {
    let mut kernel = Process::start(|_, _| {});
    let cells = [
        "let evil = String::from(\"<script>alert(1)</script>\"); struct Kind<T>(T); let kind = Kind(evil.clone());",
        "%vars",
        "let y = (tensor([1.0, 2.0]) * 2.0).exp(); // <script>alert(2)</script>",
        "%graph y",
        "%ir y",
        "%pending",
        "y",
        "let y = (tensor([1.0, 2.0, 3.0]) * 2.0).exp(); // <script>alert(3)</script>\ny",
        "%compiles",
        "%why",
        "%stablehlo y",
        "%help <script>",
        "evil",
        "panic!(\"<script>\")",
        "<script>alert(4)</script>",
    ];
    let (mut pages, mut escaped) = (0, 0);
    for code in cells {
        let (reply, outputs) = kernel.client.execute(json!({"code": code, "stop_on_error": false}));
        let payload = reply["content"]["payload"].as_array().cloned().unwrap_or_default();
        let shown = outputs.iter().map(|m| &m["content"]).chain(&payload);
        for html in shown.filter_map(|c| c["data"]["text/html"].as_str()) {
            // A drawn graph has one script, which is ours.
            let of_user = match html.split_once("<script>(function (id, D) {") {
                Some((before, ours)) => format!("{before}{}", ours.replacen("</script>", "", 1)),
                None => html.to_owned(),
            };
            assert!(!of_user.contains("<script") && !of_user.contains("</script"), "{code}: {html}");
            pages += 1;
            escaped += usize::from(html.contains("&lt;script"));
        }
    }
    assert!(pages > 6 && escaped > 0, "{escaped} of {pages} pages show such text");
}
