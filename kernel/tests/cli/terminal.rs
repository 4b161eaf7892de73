//! `xlazy eval` and the REPL in a pipe.
use crate::mock::Mock;
use expect_test::{Expect, expect};
use std::fs::File;
use std::io::{Read, Seek};
use xlazy_kernel::cli::eval::run_cells;
use xlazy_kernel::engine::Reply;
use xlazy_kernel::repl::{Front, run_piped};

/// A file of our own that is gone when the test is.
fn scratch() -> File {
    let path = std::env::temp_dir().join(format!("xlazy-cli-{}-{:?}", std::process::id(), std::thread::current().id()));
    let file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn text_of(mut file: File) -> String {
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

fn eval(cells: &[&str], json: bool) -> (String, String, Reply) {
    let cells: Vec<String> = cells.iter().map(|c| c.to_string()).collect();
    let (mut out, mut err) = (scratch(), scratch());
    let reply = run_cells(&Mock::default(), &cells, json, &mut out, &mut err);
    (text_of(out), text_of(err), reply)
}

fn check_eval(cells: &[&str], json: bool, expected: Expect) {
    let (out, err, reply) = eval(cells, json);
    let err = if err.is_empty() { err } else { format!("--- stderr\n{err}") };
    let ended = match reply {
        Reply::Ok => "ok",
        Reply::Error(_) => "error",
        Reply::Interrupted => "interrupted",
    };
    // Times differ from run to run.
    let out = out.lines().map(|l| match l.split_once("\"ms\":") {
        Some((head, tail)) if l.contains("\"event\":\"reply\"") => {
            format!("{head}\"ms\":…{}\n", tail.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
        }
        _ => format!("{l}\n"),
    });
    expected.assert_eq(&format!("{}{err}--- {ended}\n", out.collect::<String>()));
}

#[test]
fn eval_prints_what_a_terminal_user_expects() {
    check_eval(
        &["out working…\\n\nerr careful\\n\n= 42", "show a first\nupdate a second\npng"],
        false,
        expect![[r#"
        working…
        42
        first
        a picture
        second
        --- stderr
        careful
        --- ok
    "#]],
    );
}

#[test]
fn eval_stops_at_the_first_error() {
    check_eval(
        &["= 1", "out half a line\nfail shapes differ", "= 3"],
        false,
        expect![[r#"
        1
        half a line
        --- stderr
        TensorError: shapes differ
          cell 1, line 1
        --- error
    "#]],
    );
}

#[test]
fn eval_prints_json_by_the_line() {
    check_eval(
        &[
            "out hi\\n\nerr oh\\n\n= 42\njson {\"a\": [1]}\npng\nshow a b\nupdate a c\nclear\npage p\ninsight compile\nask name?",
            "fail no",
        ],
        true,
        expect![[r#"
            {"cell":1,"event":"stream","name":"stdout","text":"hi\n"}
            {"cell":1,"event":"stream","name":"stderr","text":"oh\n"}
            {"cell":1,"data":{"text/html":"<b>42</b>\n<i>","text/plain":"42"},"event":"result"}
            {"cell":1,"data":{"application/json":{"a":[1]},"text/plain":"json"},"event":"result"}
            {"cell":1,"data":{"image/png":"iVBORw==","text/plain":"a picture"},"event":"display","id":null,"update":false}
            {"cell":1,"data":{"text/plain":"b"},"event":"display","id":"a","update":false}
            {"cell":1,"data":{"text/plain":"c"},"event":"display","id":"a","update":true}
            {"cell":1,"event":"clear_output","wait":false}
            {"cell":1,"data":{"text/plain":"p"},"event":"page"}
            {"cell":1,"data":{"ms":1.5},"event":"insight","kind":"compile"}
            {"cell":1,"event":"input","password":false,"prompt":"name?"}
            {"cell":1,"event":"stream","name":"stdout","text":"no answer: xlazy eval --json has nobody to ask\n"}
            {"cell":1,"event":"reply","ms":…,"status":"ok"}
            {"cell":2,"ename":"TensorError","evalue":"no","event":"reply","ms":…,"status":"error","traceback":["\u001b[31mTensorError\u001b[0m: no","  cell 1, line 1"]}
            --- error
        "#]],
    );
}

#[test]
fn a_pipe_is_cut_into_cells_where_they_are_complete() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut front = Front {
        out: Box::new(&mut out),
        err: Box::new(&mut err),
        colours: (false, false),
        interactive: false,
        pictures: None,
    };
    let mut input = "= 1\n\nfn f() {\n= inside\n}\nask who\nfail here\n= never\n".as_bytes();
    let reply = run_piped(&Mock::default(), &mut input, &mut front);
    drop(front);
    assert!(matches!(reply, Reply::Error(_)));
    expect![[r#"
        1
        inside
        whono answer: there is nobody to ask: standard input is not a terminal
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
    expect![[r#"
        TensorError: here
          cell 1, line 1
    "#]]
    .assert_eq(&String::from_utf8(err).unwrap());
}
