//! Facts as the kernel writes them, and what is asked of them.
use super::*;

fn at(file: &str, line: u32, column: u32) -> Spot {
    Spot { file: file.into(), line, column }
}

fn read(file: &str, words: &str) {
    register_facts(file, Facts::read(words.split_whitespace()).expect("facts"));
}

#[test]
fn places_say_what_they_are() {
    // let y = images.interpolate(2);
    read("facts-1", "C;1:16-1:27;interpolate;in;y B;1:16-1:27;y");
    let here = at("facts-1", 1, 16);
    assert_eq!(called(&here).as_deref(), Some("interpolate"));
    assert_eq!(binding(&here).as_deref(), Some("y"));
    assert_eq!(called(&at("facts-1", 1, 17)), None);
    let goes = Goes::Into(vec!["y".into()]);
    assert_eq!(flows(&here), Some(FlowFact { goes, in_condition: false }));
    assert!(known(&here) && !known(&at("nowhere", 1, 1)));
    read("facts-1", "B;1:16-1:27;z");
    assert_eq!(binding(&here).as_deref(), Some("z"), "the later facts");
    assert!(Facts::read(["C;1:1"]).is_none() && Facts::read(["X;1:1-1:2;a"]).is_none());
}

#[test]
fn conditions_are_followed_to_the_callers() {
    // 1 fn helper(x) {
    // 2     if deep { op(x) }
    // 3 }
    read("facts-2", "F;1:1-3:2;helper;;f G;2:8-2:12,2:13-2:24;then;;deep C;2:15-2:21;op;out");
    // 1 for i in v {
    // 2     if coin() {
    // 3         helper(x);
    // 4     }
    // 5 }
    read("facts-3", "L;1:10-1:11,1:12-5:2;for G;2:8-2:14,2:15-4:6;then;c;coin C;3:9-3:18;helper;in");
    let op = at("facts-2", 2, 15);
    let f = function(&op).unwrap();
    assert_eq!((f.name.as_str(), &f.of, f.closure, &f.to), ("helper", &None, false, &at("facts-2", 3, 2)));
    assert_eq!(calls(&f), [at("facts-3", 3, 9)]);
    let near = guards(&op);
    assert_eq!((near.len(), near[0].names.as_slice(), near[0].rounds.len()), (1, &["deep".to_owned()][..], 0));
    let all = guards_deep(&op);
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].at.clone(), all[1].rounds.len(), all[1].calls), (at("facts-3", 2, 8), 1, true));
    assert_eq!(all[1].chain, [at("facts-3", 3, 9)]);
    assert_eq!(loops(&at("facts-3", 3, 9))[0].kind, LoopKind::For);
    assert_eq!(loops(&op), [], "the caller's loops are not the function's own");
    // A function that calls itself is followed once.
    read("facts-4", "F;1:1-9:2;again;;f C;3:9-3:18;again;in G;2:8-2:14,2:15-4:6;then;;a");
    assert_eq!(guards_deep(&at("facts-4", 3, 9)).len(), 2);
}

#[test]
fn a_call_is_of_the_function_of_its_own_cell_or_of_the_latest_before_it() {
    read("facts-10", "F;1:1-3:2;made;;f C;5:1-5:9;made;out");
    read("facts-11", "C;1:1-1:9;made;out");
    read("facts-12", "F;1:1-3:2;made;;f C;5:1-5:9;made;out");
    read("facts-13", "C;1:1-1:9;made;out");
    let of = |file| calls(&function(&at(file, 2, 1)).unwrap());
    assert_eq!(of("facts-10"), [at("facts-11", 1, 1), at("facts-10", 5, 1)]);
    assert_eq!(of("facts-12"), [at("facts-13", 1, 1), at("facts-12", 5, 1)]);
}

#[test]
fn rounds_go_different_ways_where_they_change_what_is_asked() {
    // 1 for k in v {
    // 2     for i in w {
    // 3         if deep { op(x) }
    // 4         if i > k { op(x) }
    // 5         if k > 1 { op(x) }
    // 6     }
    // 7 }
    let loops = "L;1:10-1:11,1:12-7:2;for;i;k;x L;2:14-2:15,2:16-6:6;for;i;x";
    let guards = ["3:12-3:16,3:17-3:26;then;;deep", "4:12-4:17,4:18-4:27;then;;i;k", "5:12-5:17,5:18-5:27;then;;k"];
    read("facts-8", &format!("{loops} G;{}", guards.join(" G;")));
    let rounds = |line: u32| -> Vec<u32> {
        self::guards(&at("facts-8", line, 20))[0].rounds.iter().map(|l| l.head.line).collect()
    };
    assert_eq!([rounds(3), rounds(4), rounds(5)], [vec![], vec![2, 1], vec![1]]);
}

#[test]
fn what_is_read_decides_what_it_guards() {
    // 1 let a = x.item();
    // 2 if a > 1.0 { op() }
    // 3 other();
    read("facts-5", "C;1:11-1:15;item;in;a D;2:4-2:11,2:4-2:20;;a");
    let (read_at, op, other) = (at("facts-5", 1, 11), at("facts-5", 2, 14), at("facts-5", 3, 1));
    assert!(may_decide(&read_at, &[&op]) && !decides(&read_at));
    assert!(may_decide(&read_at, &[&other]), "nothing else decides it");
    assert!(may_decide(&at("unknown", 1, 1), &[&op]), "nothing is known");
    // 1 let a = x.item(); println!(a)
    read("facts-6", "C;1:11-1:15;item;in;a");
    assert!(!may_decide(&at("facts-6", 1, 11), &[&at("facts-6", 3, 1)]));
    // while x.item() > 1.0 { op() }: a condition for rounds begins before it
    read("facts-7", "C;1:9-1:13;item;in D;1:7-1:20,1:1-1:30;cr;item;x");
    assert!(decides(&at("facts-7", 1, 9)) && decides_rounds(&at("facts-7", 1, 9)));
    assert!(may_decide(&at("facts-7", 1, 9), &[&at("facts-7", 1, 24)]));
}
