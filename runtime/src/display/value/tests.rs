//! What values look like that have nothing but `Debug`.
use super::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

fn shown(value: impl Debug) -> Bundle {
    bundle(format!("{value:?}"), false, Vec::new())
}

fn html(value: impl Debug) -> String {
    shown(value).get("text/html").unwrap_or_default().to_owned()
}

#[derive(Clone, Debug)]
#[allow(dead_code)]
struct Row {
    name: &'static str,
    loss: f64,
    at: Option<(u8, u8)>,
}

#[test]
fn rows_of_one_kind_are_tables() {
    let row = |loss| Row { name: "<b>, {x", loss, at: Some((1, 2)) };
    let table = html(vec![row(1.0 / 3.0), row(2.0)]);
    assert_eq!(table.matches("<tr>").count(), 3, "{table}");
    assert!(
        table.contains("&lt;b&gt;, {x") && table.contains(">0.3333<") && table.contains(">Some((1, 2))<"),
        "{table}"
    );
    assert!(table.contains(">loss</th>"), "{table}");
    let map = html(BTreeMap::from([("a", row(1.0)), ("b", row(2.0))]));
    assert!(map.contains(">key</th>") && map.contains(">loss</th>") && map.contains(">b</td>"), "{map}");
    assert!(html(BTreeMap::from([("a", 1)])).contains(">value</th>"));
    assert_eq!(html(vec![vec![1.0, 2.0], vec![3.0]]).matches("<td").count(), 4);
    assert_eq!(html(vec![(0, "a"), (1, "b")]).matches("<tr>").count(), 3);
    // Inside of something else, too.
    assert!(html((5, Some(vec![row(1.0)]))).contains(">loss</th>"));
}

#[test]
fn texts_in_tables_are_shown_as_they_are() {
    let table = html(vec![("3.14159265358979", 1.23456789012), ("a\\b\nc'", 2.0)]);
    assert!(table.contains(">3.14159265358979<") && table.contains(">1.2346<"), "{table}");
    assert!(table.contains(">a\\b\\nc"), "{table}");
    assert_eq!(unquoted(r#""a\"q\n""#), r#"a"q\n"#);
    assert_eq!(unquoted("1.5"), "1.5");
    // Only numbers of one column go together.
    let digits = html(vec![("3.14159265358979", 1), ("2.71828182845905", 2)]);
    assert!(digits.contains(">3.14159265358979<") && digits.contains(">2.71828182845905<"), "{digits}");
}

#[test]
fn a_mark_that_is_cut_is_left_out_and_nothing_is_told_twice() {
    assert_eq!(with_parts(&format!("[1, {OPEN}0"), &[], true), "[1, ");
}

#[test]
fn what_is_no_table_is_text() {
    assert_eq!(
        [html(vec![1, 2]), html("[(1, 2)]"), html(row_of_two()), html(Vec::<Row>::new())],
        [""; 4].map(String::from)
    );
    fn row_of_two() -> (i32, String) {
        (1, "a".into())
    }
    #[derive(Debug)]
    #[allow(dead_code)]
    enum Either {
        A { x: i32 },
        B { y: i32 },
    }
    assert_eq!(html(vec![Either::A { x: 1 }, Either::B { y: 2 }]), "");
}

#[test]
fn long_tables_show_their_edges() {
    let rows: Vec<Row> = (0..500).map(|i| Row { name: "n", loss: i as f64, at: None }).collect();
    let shown = shown(&rows);
    assert!(shown.get("text/html").unwrap().contains("500 rows, 3 columns"));
    let plain = shown.plain();
    assert_eq!(plain.lines().count(), 63, "{plain}");
    assert!(
        plain.starts_with("     name   loss  at\n0    n       0.0  None") && plain.ends_with("500 rows, 3 columns"),
        "{plain}"
    );
    assert_eq!(shown.what_lasts(), format!("{rows:?}"));
}

#[test]
fn what_is_long_shows_its_edges_and_how_much_there_is() {
    let plain = |text: String, cut: bool| bundle(text, cut, Vec::new()).plain().to_owned();
    let long = format!("{:?}", (0..4000).collect::<Vec<i32>>());
    let shown = plain(long.clone(), false);
    assert!(shown.starts_with("[0, 1, 2, ") && shown.ends_with("3998, 3999] (4000 elements)"), "{shown}");
    assert!(shown.len() < MOST_TEXT && bundle(long.clone(), false, Vec::new()).what_lasts() == long);
    // Cut off in the middle of a number.
    let shown = plain(long[..long.len() - 9].to_owned(), true);
    assert!(shown.ends_with("3997, …] (more than 3998 elements)"), "{shown}");
    let nested = format!("P {{ a: 1, b: {:?}, c: \"{}\" }}", vec![0.5; 9000], "x".repeat(100));
    let shown = plain(nested, false);
    assert!(
        shown.starts_with("P { a: 1, b: [0.5, 0.5, ") && shown.contains("…, 0.5") && shown.ends_with("xxx\" }"),
        "{shown}"
    );
    // Short ones stay as they are, and texts are read whole for longer.
    let short = format!("{:?}", (0..1000).collect::<Vec<i32>>());
    assert_eq!(plain(short.clone(), false), short);
    let text = format!("{:?}", "word, ".repeat(5000));
    assert_eq!(plain(text.clone(), false), text);
    let text = format!("{:?}", "word, ".repeat(500_000));
    let shown = plain(text[..500_000].to_owned(), true);
    assert!(shown.starts_with("\"word, ") && shown.ends_with(CUT) && shown.len() < 11 * MOST_TEXT);
    let odd = plain(format!("odd ) {}", "y".repeat(30_000)), false);
    assert!(odd.ends_with(CUT) && odd.len() < 2 * MOST_TEXT);
}

#[test]
fn a_table_that_was_cut_off_shows_its_first_rows() {
    let rows: Vec<Row> = (0..30_000).map(|i| Row { name: "n", loss: i as f64, at: None }).collect();
    let text = format!("{rows:?}");
    for end in [text.len() - 1, text.len() - 20, text.len() - 33, text.len() / 2] {
        let shown = bundle(text[..end].to_owned(), true, Vec::new());
        let html = shown.get("text/html").unwrap();
        assert!(html.contains("more than ") && html.matches("<tr>").count() == MOST_ROWS + 2, "{end}: {}", html.len());
        assert!(shown.plain().contains("\n59  n") && !shown.plain().contains("\n60 "), "{}", shown.plain());
    }
    let map = format!("{:?}", (0..30_000).map(|i| (i, "x")).collect::<BTreeMap<_, _>>());
    let shown = bundle(map[..map.len() - 3].to_owned(), true, Vec::new());
    assert!(shown.plain().ends_with("more than 29999 rows, 2 columns"), "{}", shown.plain());
}

#[test]
fn what_shows_itself_does_so_inside_of_others() {
    let picture = Bundle::text("a picture").with_bytes("image/png", vec![1, 2, 3]);
    let inside = |value: &dyn Debug| {
        let (text, found) = xlazy_mime::gather::gathering(|| format!("{value:?}"));
        bundle(text, false, found)
    };
    for value in [&vec![picture.clone()] as &dyn Debug, &Some(&picture), &(1, Ok::<_, ()>(picture.clone()))] {
        let shown = inside(value);
        assert!(
            shown.get("text/html").unwrap().contains("data:image/png;base64,AQID")
                && shown.plain().contains("a picture")
        );
    }
    let plot = crate::display::Plot::new("losses").line("", [1.0, 2.0]);
    let shown = inside(&vec![Some(plot.clone()), None]);
    assert!(
        shown.get("text/html").unwrap().contains("<img ") && !shown.plain().contains("x_label"),
        "{}",
        shown.plain()
    );
    assert!(format!("{plot:?}").contains("x_label"), "where text is wanted it is text");
}

#[test]
fn arrays_of_one_length_are_a_table() {
    let batch = "RecordBatch { schema: Schema { fields: [Field { name: \"a\", data_type: Int64 }, Field { name: \"b\", \
                 data_type: Utf8 }], metadata: {} }, columns: [PrimitiveArray<Int64>\n[\n  1,\n  null,\n], StringArray\n[\n  \
                 \"x\",\n  \"y\",\n]], row_count: 2 }";
    let html = bundle(batch.into(), false, Vec::new()).get("text/html").unwrap().to_owned();
    assert!(
        html.contains(">a</th>") && html.contains(">b</th>") && html.contains(">null<") && html.contains(">y<"),
        "{html}"
    );
    assert_eq!(html.matches("<tr>").count(), 3, "{html}");
}
