"""What the protocol suite sends: Rust for the real kernel, the toy language of mock_engine.rs for the mock."""

import os

REAL = {
    "prepare": "/// Adds one.\nfn add_one(n: i64) -> i64 {\n    n + 1\n}",
    "code_hello_world": 'println!("hello, world");',
    "code_stderr": 'eprintln!("test");',
    "completion_samples": [{"text": "%hel"}, {"text": "add_o", "matches": ["add_one"]}],
    "complete_code_samples": ["1 + 1", "let x = 5;", "fn f() -> i32 {\n    1\n}", "%help"],
    "incomplete_code_samples": ["fn f() {", "let x = (1,", 'let s = "abc'],
    "invalid_code_samples": ["fn f() }", "let x = 1);"],
    "code_page_something": "%help",
    "code_generate_error": "compile_error_on_purpose",
    "code_execute_result": [
        {"code": "6 * 7", "result": "42"},
        {"code": '"a".repeat(3)', "result": '"aaa"'},
        {"code": "1 + 1", "result": "2"},
    ],
    "code_display_data": [{"code": 'display(&xlazy::mime::Bundle::html("<b>bold</b>", "bold"));', "mime": "text/html"}],
    "code_history_pattern": "6 ?*",
    "code_inspect_sample": "add_one",
    "code_clear_output": "clear_output(false);",
    "loop_forever": "let mut n = 0u64; loop { n = n.wrapping_add(1); }",
    "ask_for_input": 'let name = input("name?");',
    "good": "1 + 1",
    "flood": 'for n in 0..10_000_000 { println!("line {n}"); }',
    "raw_bytes": r'use std::io::Write; std::io::stdout().write_all(b"\xff\xfe ok\n").unwrap();',
    "ask_in_vain": ['input("name?")?;', 'input_password("secret?")?;'],
}

MOCK = {
    "prepare": "let it be",
    "code_hello_world": "print hello, world",
    "code_stderr": "eprint test",
    "completion_samples": [{"text": "pri", "matches": ["print", "println"]}, {"text": "zz", "matches": []}],
    "complete_code_samples": ["1+1"],
    "incomplete_code_samples": ["loop {"],
    "invalid_code_samples": [")"],
    "code_page_something": "page help",
    "code_generate_error": "error boom",
    "code_execute_result": [{"code": "6+7", "result": "13"}, {"code": "1+1", "result": "2"}, {"code": "cell"}],
    "code_display_data": [{"code": "display x", "mime": "text/html"}],
    "code_history_pattern": "6?*",
    "code_inspect_sample": "print",
    "code_clear_output": "clear",
    "loop_forever": "wait",
    "ask_for_input": "input name?",
    "good": "1+1",
    "flood": "flood 10000000",
    "ask_in_vain": ["input name?", "password secret?"],
}

SAMPLES = REAL if os.environ.get("XLAZY_KERNEL", "real") == "real" else MOCK
