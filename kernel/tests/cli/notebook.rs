//! `xlazy run`: what it writes into a notebook.
use crate::mock::Mock;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use xlazy_kernel::cli::notebook::Notebook;
use xlazy_kernel::cli::run::{Settings, execute};
use xlazy_kernel::engine::{Engine, Reply};

/// A notebook of code cells.
fn document(cells: &[&str]) -> Value {
    let cell = |code: &&str| json!({"cell_type": "code", "source": code, "metadata": {}, "outputs": [], "execution_count": null});
    json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells.iter().map(cell).collect::<Vec<_>>()})
}

fn run_with(document: &Value, settings: &Settings) -> (Value, String, String, Reply) {
    let engine: Arc<dyn Engine> = Arc::new(Mock::default());
    let mut notebook = Notebook::parse(&document.to_string()).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let reply = execute(&engine, &mut notebook, settings, &mut out, &mut err);
    let written = serde_json::from_str(&notebook.to_text()).unwrap();
    validate(&written);
    (written, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), reply)
}

fn run(document: &Value) -> (Value, String, Reply) {
    let (written, _, err, reply) = run_with(document, &Settings::default());
    (written, err, reply)
}

/// What nbformat 4.5's schema asks of a document, cell by cell and output by output.
fn validate(document: &Value) {
    assert_eq!(document["nbformat"], 4);
    assert!(document["nbformat_minor"].as_u64().unwrap() >= 5);
    assert!(document["metadata"]["kernelspec"]["name"].is_string());
    let mut ids = Vec::new();
    let multiline = |v: &Value| v.is_string() || v.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    let keys = |v: &Value, expected: &[&str]| {
        let mut found: Vec<&str> = v.as_object().unwrap().keys().map(String::as_str).collect();
        found.sort();
        assert_eq!(found, expected);
    };
    for cell in document["cells"].as_array().unwrap() {
        let id = cell["id"].as_str().unwrap();
        assert!((1..=64).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
        assert!(!ids.contains(&id), "id {id} twice");
        ids.push(id);
        assert!(multiline(&cell["source"]));
        if cell["cell_type"] != "code" {
            continue;
        }
        assert!(cell["execution_count"].is_null() || cell["execution_count"].is_u64());
        for output in cell["outputs"].as_array().unwrap() {
            match output["output_type"].as_str().unwrap() {
                "stream" => {
                    keys(output, &["name", "output_type", "text"]);
                    assert!(multiline(&output["text"]));
                }
                "display_data" => keys(output, &["data", "metadata", "output_type"]),
                "execute_result" => keys(output, &["data", "execution_count", "metadata", "output_type"]),
                "error" => {
                    keys(output, &["ename", "evalue", "output_type", "traceback"]);
                    assert!(output["traceback"].as_array().unwrap().iter().all(Value::is_string));
                }
                other => panic!("an output of type {other}"),
            }
            for (mime, content) in output["data"].as_object().into_iter().flatten() {
                assert!(mime.ends_with("json") || multiline(content), "{mime}: {content}");
            }
        }
    }
}

fn check_outputs(code: &str, expected: Expect) {
    let (written, _, _) = run(&document(&[code]));
    expected.assert_eq(&format!("{:#}\n", written["cells"][0]["outputs"]));
}

#[test]
fn adjacent_streams_are_one_output() {
    check_outputs(
        "out a\\nb\nout c\\n\nerr x\\n\nout d\n",
        expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "a\n",
              "bc\n"
            ]
          },
          {
            "name": "stderr",
            "output_type": "stream",
            "text": [
              "x\n"
            ]
          },
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "d"
            ]
          }
        ]
    "#]],
    );
}

#[test]
fn results_and_pictures_keep_their_types() {
    check_outputs(
        "= 7\njson {\"b\": 1}\npng",
        expect![[r#"
        [
          {
            "data": {
              "text/html": [
                "<b>7</b>\n",
                "<i>"
              ],
              "text/plain": [
                "7"
              ]
            },
            "execution_count": 1,
            "metadata": {},
            "output_type": "execute_result"
          },
          {
            "data": {
              "application/json": {
                "b": 1
              },
              "text/plain": [
                "json"
              ]
            },
            "execution_count": 1,
            "metadata": {},
            "output_type": "execute_result"
          },
          {
            "data": {
              "image/png": "iVBORw==",
              "text/plain": [
                "a picture"
              ]
            },
            "metadata": {},
            "output_type": "display_data"
          }
        ]
    "#]],
    );
}

#[test]
fn updates_and_clears_change_what_is_there() {
    check_outputs(
        "show a old\nupdate a new\nupdate unknown x",
        expect![[r#"
        [
          {
            "data": {
              "text/plain": [
                "new"
              ]
            },
            "metadata": {},
            "output_type": "display_data"
          }
        ]
    "#]],
    );
    check_outputs(
        "out gone\nclear\nout stays",
        expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "stays"
            ]
          }
        ]
    "#]],
    );
    check_outputs(
        "out gone\nclear-at-next\nout stays",
        expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "stays"
            ]
          }
        ]
    "#]],
    );
    check_outputs(
        "out stays\nclear-at-next",
        expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "stays"
            ]
          }
        ]
    "#]],
    );
    // An id lives as long as the notebook: a later cell may change an earlier one's display.
    let (written, _, _) = run(&document(&["show a old", "update a new"]));
    assert_eq!(written["cells"][0]["outputs"][0]["data"]["text/plain"], json!(["new"]));
    assert_eq!(written["cells"][1]["outputs"], json!([]));
}

#[test]
fn nobody_is_asked_and_pages_are_shown() {
    check_outputs(
        "ask name\npage help",
        expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "no answer: a notebook that runs headless has nobody to ask\n"
            ]
          },
          {
            "data": {
              "text/plain": [
                "help"
              ]
            },
            "metadata": {},
            "output_type": "display_data"
          }
        ]
    "#]],
    );
}

/// `%fix` and its like make the next cell, for which there is no place.
#[test]
fn what_would_be_the_next_cell_is_told_and_written_down() {
    let (written, progress, _) = run(&document(&["next let x = 1;\\nx", "out a"]));
    assert_eq!(written["cells"][0]["outputs"][0]["data"]["text/plain"], json!(["let x = 1;\n", "x"]));
    let lines: Vec<&str> = progress.lines().collect();
    assert_eq!(lines[1..3], ["let x = 1;", "x"], "{progress}");
    assert!(lines[3].starts_with("[2/2]"), "{progress}");
}

#[test]
fn the_first_error_ends_it_and_is_written_down() {
    let (written, err, reply) = run(&document(&["= 1", "out x\nfail shapes differ", "= 3", "= 4"]));
    assert!(matches!(reply, Reply::Error(_)));
    expect![[r#"
        [1/4] = 1  … s
        [2/4] out x
        [2/4]  … s TensorError
        TensorError: shapes differ
          cell 1, line 1
        stopped at cell 2 of 4; 2 more not run
    "#]]
    .assert_eq(&steady(&err));
    expect![[r#"
        [
          {
            "name": "stdout",
            "output_type": "stream",
            "text": [
              "x"
            ]
          },
          {
            "ename": "TensorError",
            "evalue": "shapes differ",
            "output_type": "error",
            "traceback": [
              "\u001b[31mTensorError\u001b[0m: shapes differ",
              "  cell 1, line 1"
            ]
          }
        ]
    "#]]
    .assert_eq(&format!("{:#}\n", written["cells"][1]["outputs"]));
    assert_eq!(written["cells"][1]["execution_count"], 2);
    assert_eq!(written["cells"][2]["execution_count"], Value::Null);
}

#[test]
fn what_cells_print_is_shown_as_it_comes() {
    let cells = ["out a\\nb\nerr warned", "= 1", "let x = 1;", "out c\nupdate late x"];
    let (_, out, err, reply) = run_with(&document(&cells), &Settings::default());
    assert_eq!(reply, Reply::Ok);
    // without the results, which a document has
    assert_eq!(out, "a\nb\nc\n");
    expect![[r#"
        [1/4] out a\nb
        warned
        [1/4]  … s
        [2/4] = 1  … s
        [3/4] let x = 1;  … s
        [4/4] out c
        [4/4]  … s
        4 cells in … s
    "#]]
    .assert_eq(&steady(&err));
}

#[test]
fn results_are_shown_where_no_document_has_them() {
    let long = format!("= {}", (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join("\\n"));
    let settings = Settings { results: true, ..Settings::default() };
    let (_, out, err, _) = run_with(&document(&["out a\n= 7\npng", &long, "ask name?"]), &settings);
    let first = (1..=12).map(|n| format!("{n}\n")).collect::<String>();
    let nobody = "no answer: a notebook that runs headless has nobody to ask\n";
    assert_eq!(out, format!("a\n7\na picture\n{first}… 28 more lines, which `-o FILE` writes\n{nobody}"));
    assert!(err.starts_with("[1/3] out a\n[1/3]  "), "{err}");
    // a program reads what is printed: nothing but JSON
    let json = Settings { json: true, ..settings };
    let (_, out, err, _) = run_with(&document(&["out a\nerr b\n= 7"]), &json);
    assert!(out.lines().all(|l| l.starts_with('{')) && !err.contains("b\n"), "{out}{err}");
}

/// Progress without the times.
fn steady(progress: &str) -> String {
    let words = progress.split(' ').map(|w| match w.parse::<f64>() {
        Ok(_) if w.contains('.') => "…",
        _ => w,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn tags_allow_errors_and_skip_cells() {
    let mut notebook = document(&["fail expected", "fail skipped", "= 3"]);
    notebook["cells"][0]["metadata"]["tags"] = json!(["raises-exception"]);
    notebook["cells"][1]["metadata"]["tags"] = json!(["skip-execution"]);
    notebook["cells"][1]["outputs"] = json!([{"output_type": "stream", "name": "stdout", "text": ["kept"]}]);
    let (written, err, reply) = run(&notebook);
    assert_eq!(reply, Reply::Ok);
    expect![[r#"
        [1/2] fail expected  … s (TensorError, as its tag allows)
        [2/2] = 3  … s
        2 cells in … s
    "#]]
    .assert_eq(&steady(&err));
    assert_eq!(written["cells"][0]["outputs"][0]["ename"], "TensorError");
    assert_eq!(written["cells"][1]["outputs"], notebook["cells"][1]["outputs"]);
    assert_eq!(written["cells"][2]["execution_count"], 2);
}

#[test]
fn everything_else_stays_and_ids_are_given() {
    let mut notebook = document(&["out x", "  \n"]);
    notebook["nbformat_minor"] = 2.into();
    notebook["metadata"]["custom"] = json!({"z": 1.5, "a": [true, null]});
    notebook["metadata"]["language_info"] = json!({"version": "9"});
    notebook["cells"][0]["id"] = "cell-2".into();
    notebook["cells"][0]["metadata"] = json!({"collapsed": true});
    let markdown =
        json!({"cell_type": "markdown", "source": ["# Größe\n", "x"], "metadata": {}, "attachments": {"a": {}}});
    notebook["cells"].as_array_mut().unwrap().push(markdown);
    let (written, _, _) = run(&notebook);
    assert_eq!(written["metadata"]["custom"], notebook["metadata"]["custom"]);
    assert_eq!(written["metadata"]["language_info"]["version"], "9");
    assert_eq!(written["metadata"]["language_info"]["name"], "rust");
    let ids: Vec<&Value> = written["cells"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, ["cell-2", "cell-2x", "cell-3"]);
    assert_eq!(written["cells"][0]["metadata"], json!({"collapsed": true}));
    assert_eq!(written["cells"][1]["execution_count"], Value::Null);
    assert_eq!(written["cells"][2]["source"], json!(["# Größe\n", "x"]));
    assert_eq!(written["cells"][2]["attachments"], json!({"a": {}}));
}

#[test]
fn a_written_notebook_is_laid_out_as_jupyter_does_it() {
    let mut notebook = Notebook::parse(&document(&["= 1"]).to_string()).unwrap();
    let engine: Arc<dyn Engine> = Arc::new(Mock::default());
    execute(&engine, &mut notebook, &Settings::default(), &mut Vec::new(), &mut Vec::new());
    expect![[r#"
        {
         "cells": [
          {
           "cell_type": "code",
           "execution_count": 1,
           "id": "cell-1",
           "metadata": {},
           "outputs": [
            {
             "data": {
              "text/html": [
               "<b>1</b>\n",
               "<i>"
              ],
              "text/plain": [
               "1"
              ]
             },
             "execution_count": 1,
             "metadata": {},
             "output_type": "execute_result"
            }
           ],
           "source": [
            "= 1"
           ]
          }
         ],
         "metadata": {
          "kernelspec": {
           "display_name": "xlazy (Rust, lazy tensors on XLA)",
           "language": "rust",
           "name": "xlazy"
          },
          "language_info": {
           "codemirror_mode": "rust",
           "file_extension": ".rs",
           "mimetype": "text/rust",
           "name": "rust",
           "pygments_lexer": "rust"
          }
         },
         "nbformat": 4,
         "nbformat_minor": 5
        }
    "#]]
    .assert_eq(&notebook.to_text());
    // A second run of what was written changes nothing.
    let mut again = Notebook::parse(&notebook.to_text()).unwrap();
    execute(&engine, &mut again, &Settings::default(), &mut Vec::new(), &mut Vec::new());
    assert_eq!(again.to_text(), notebook.to_text());
}

#[test]
fn a_cell_that_takes_too_long_is_an_error() {
    let settings = Settings { timeout: Some(Duration::from_millis(30)), ..Settings::default() };
    let mut notebook = document(&["hang"]);
    notebook["cells"][0]["metadata"]["tags"] = json!(["raises-exception"]);
    let (written, _, err, reply) = run_with(&notebook, &settings);
    assert!(matches!(reply, Reply::Error(_)), "{err}");
    assert_eq!(written["cells"][0]["outputs"][0]["ename"], "Timeout");
}

#[test]
fn json_tells_what_happened_cell_by_cell() {
    let settings = Settings { json: true, ..Settings::default() };
    let (_, out, _, _) = run_with(&document(&["= 1", "fail no"]), &settings);
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.iter().map(|l| &l["event"]).collect::<Vec<_>>(), ["result", "reply", "reply"]);
    assert_eq!(
        (&lines[2]["status"], &lines[2]["id"], &lines[2]["cell"]),
        (&"error".into(), &"cell-2".into(), &2.into())
    );
}

/// Puts a value at every place of a document, one at a time.
fn spoil(document: &Value, value: &Value, at: &str, look: &mut dyn FnMut(&str, Value), whole: &Value) {
    let children: Vec<String> = match document {
        Value::Object(fields) => fields.keys().map(|k| k.replace('/', "~1")).collect(),
        Value::Array(items) => (0..items.len()).map(|i| i.to_string()).collect(),
        _ => Vec::new(),
    };
    for child in children {
        let at = format!("{at}/{child}");
        let mut spoilt = whole.clone();
        *spoilt.pointer_mut(&at).expect("it is there") = value.clone();
        look(&at, spoilt);
        spoil(whole.pointer(&at).expect("it is there"), value, &at, look, whole);
    }
}

#[test]
fn whatever_stands_where_something_else_should_ends_no_run() {
    let mut good = document(&["= 1", "print 2"]);
    good["metadata"] = json!({"kernelspec": {"name": "x"}, "language_info": {"name": "rust", "version": "1"}});
    good["cells"][0]["metadata"] = json!({"tags": ["raises-exception"]});
    good["cells"][1]["outputs"] = json!([{"output_type": "stream", "name": "stdout", "text": ["a\n"]}, {"output_type": "display_data", "data": {"text/plain": "x"}}]);
    let mut seen = (0, 0);
    for value in [json!(null), json!(7), json!("text"), json!([]), json!([1]), json!({}), json!({"a": 1}), json!(true)]
    {
        let mut look = |at: &str, spoilt: Value| match Notebook::parse(&spoilt.to_string()) {
            Ok(mut notebook) => {
                let engine: Arc<dyn Engine> = Arc::new(Mock::default());
                execute(&engine, &mut notebook, &Settings::default(), &mut Vec::new(), &mut Vec::new());
                assert!(serde_json::from_str::<Value>(&notebook.to_text()).is_ok(), "{at}");
                seen.0 += 1;
            }
            Err(why) => {
                assert!(why.contains("notebook") || why.contains("nbformat"), "{at}: {why}");
                seen.1 += 1;
            }
        };
        spoil(&good, &value, "", &mut look, &good);
    }
    assert!(seen.0 > 50 && seen.1 > 5, "{seen:?}");
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let output = |data: Value| json!({"output_type": "display_data", "metadata": {}, "data": data});
    let outputs = json!([
        {"output_type": "stream", "name": "stdout", "text": ["a < b\n", "\u{1b}[32mgreen\u{1b}[0m"]},
        output(json!({"text/plain": "a table", "text/html": "<table><tr><td>1</td></tr></table>"})),
        output(json!({"text/plain": "a picture", "image/svg+xml": "<svg/>"})),
        output(json!({"text/plain": "a photo", "image/png": "iVBO\nRw0K"})),
        output(json!({"text/plain": "1 < 2"})),
        output(json!({"text/plain": ""})),
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[1;31mE\u{1b}[0m: <v>", "at line 1"]},
    ]);
    let document = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "# Title & more\n\n`code`, ![it](attachment:a.png)\n\n|a|\n|-|\n|1|",
         "attachments": {"a.png": {"image/png": "AAAA"}}},
        {"cell_type": "code", "metadata": {}, "execution_count": 3, "source": "let x = \"<b>\";", "outputs": outputs},
        {"cell_type": "code", "metadata": {}, "execution_count": null, "source": "  ", "outputs": []},
        {"cell_type": "raw", "metadata": {}, "source": "<raw>"},
    ]});
    let page = xlazy_kernel::cli::html::page(&Notebook::parse(&document.to_string()).unwrap(), "file");
    assert!(page.contains("<title>Title &amp; more</title>") && !page.contains("http") && !page.contains("<script"));
    let body = page.split_once("<body>\n").unwrap().1.split_once("</body>").unwrap().0;
    expect![[r#"
        <section><h1>Title &amp; more</h1>
        <p><code>code</code>, <img src="data:image/png;base64,AAAA" alt="it" /></p>
        <table><thead><tr><th>a</th></tr></thead><tbody>
        <tr><td>1</td></tr>
        </tbody></table>
        </section>
        <section class="code">
        <pre class="source" data-count="3"><span style='color:var(--t-magenta,#a0a)'>let</span> x = <span style='color:var(--t-green,#0a0)'>&quot;&lt;b&gt;&quot;</span>;</pre>
        <pre class="stdout">a &lt; b
        <span style='color:var(--t-green,#0a0)'>green</span></pre>
        <div class="output"><table><tr><td>1</td></tr></table></div>
        <div class="output"><img alt="" src="data:image/svg+xml;base64,PHN2Zy8+"></div>
        <div class="output"><img alt="" src="data:image/png;base64,iVBORw0K"></div>
        <div class="output"><pre>1 &lt; 2</pre></div>
        <pre class="stderr"><b><span style='color:var(--t-red,#a00)'>E</span></b>: &lt;v&gt;
        at line 1</pre>
        </section>
        <pre class="raw">&lt;raw&gt;</pre>
    "#]]
    .assert_eq(body);
}
