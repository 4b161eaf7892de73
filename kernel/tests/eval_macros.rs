//! Macros in the forms that widely used crates have, each in cells and in a program that rustc compiles: both print the same.
mod eval_support;

use eval_support::{engine, plain, run};
use std::path::Path;
use std::process::Command;
use xlazy_kernel::engine::Reply;

/// A macro, a call of it that makes items, and statements that print a line.
const FORMS: &[(&str, &str, &str)] = &[
    // Hygiene: variables of the macro's own and of its caller.
    ("macro_rules! a0 { ($e:expr) => {{ let x = 10; $e + x }} }", "", "let x = 1; println!(\"{}\", a0!(x));"),
    (
        "macro_rules! a1 { ($a:ident, $b:ident) => { let t = $a; $a = $b; $b = t; } }",
        "",
        "let mut p = 1; let mut t = 2; a1!(p, t); println!(\"{p} {t}\");",
    ),
    (
        "macro_rules! a2 { ($n:ident, $x:ident, $e:expr) => { fn $n($x: i32) -> i32 { let x = 100; $e + x } } }",
        "a2!(f2, x, x * 2);",
        "println!(\"{}\", f2(4));",
    ),
    (
        "macro_rules! a3 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 7; format!(\"{x} {}\", $x) } } }",
        "a3!(f3, x);",
        "println!(\"{}\", f3(4));",
    ),
    (
        "macro_rules! a4 { ($n:ident, $x:ident, $s:literal) => { fn $n($x: i32) -> String { let x = 7; format!($s) + &x.to_string() } } }",
        "a4!(f4, x, \"{x:>4}|\");",
        "println!(\"{}\", f4(4));",
    ),
    (
        "macro_rules! a5 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 7; let _ = x; [\"{x}\", r\"{x}\", concat!(\"{x}\", 1)].concat() + &$x.to_string() } } }",
        "a5!(f5, x);",
        "println!(\"{}\", f5(4));",
    ),
    (
        "macro_rules! a6 { ($n:ident, $w:ident) => { fn $n($w: usize) -> String { let w = 6; format!(\"{:w$}|{w}|{}|\", 1, $w) } } }",
        "a6!(f6, w);",
        "let w = 3; println!(\"{:w$}|{w:?} {}\", 1, f6(2));",
    ),
    (
        "macro_rules! a7 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 7; format!(\"{x} {y}\", y = $x, x = x) } } }",
        "a7!(f7, x);",
        "println!(\"{}\", f7(2));",
    ),
    (
        "macro_rules! a8 { ($n:ident, $x:ident) => { fn $n($x: i32) -> i32 { match $x { x if x > 3 => x + $x, _ => { let x = 1; x - $x } } } } }",
        "a8!(f8, x);",
        "println!(\"{} {}\", f8(5), f8(1));",
    ),
    (
        "macro_rules! a9 { ($n:ident, $x:ident) => { fn $n(v: &[i32]) -> i32 { let mut $x = 0; for x in v { $x += x; } $x } } }",
        "a9!(f9, x);",
        "println!(\"{}\", f9(&[1, 2, 3]));",
    ),
    // Errors returned early, as in error libraries.
    (
        "macro_rules! b0 { ($($t:tt)*) => { return Err(format!($($t)*)) } }",
        "fn g0(x: i32) -> Result<i32, String> { if x > 1 { b0!(\"too large: {x}, {}\", x + 1); } Ok(x) }",
        "println!(\"{:?} {:?}\", g0(1), g0(2));",
    ),
    (
        "macro_rules! b1 { ($c:expr, $($t:tt)*) => { if !$c { return Err(format!($($t)*)); } }; ($c:expr) => { b1!($c, \"{} fails\", stringify!($c)) } }",
        "fn g1(x: i32) -> Result<i32, String> { b1!(x > 0); b1!(x < 9, \"{x} is too large\"); Ok(x) }",
        "println!(\"{:?} {:?} {:?}\", g1(0), g1(9), g1(1));",
    ),
    (
        "macro_rules! b2 { ($e:expr, $d:expr) => { match $e { Some(v) => v, None => return $d } } }",
        "fn g2(v: Option<i32>) -> i32 { b2!(v, -1) * 2 }",
        "println!(\"{} {}\", g2(None), g2(Some(4)));",
    ),
    (
        "macro_rules! b3 { ($n:ident { $($v:ident($m:literal)),* $(,)? }) => { #[derive(Debug)] enum $n { $($v),* } impl std::fmt::Display for $n { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(match self { $($n::$v => $m),* }) } } impl std::error::Error for $n {} } }",
        "b3!(Fault { Missing(\"{missing}\"), Wrong(\"wrong\"), });",
        "println!(\"{} {:?} {}\", Fault::Missing, Fault::Wrong, Fault::Wrong);",
    ),
    (
        "macro_rules! b4 { ($t:ty => $($f:ty: $v:ident),*) => { $(impl From<$f> for $t { fn from(e: $f) -> Self { <$t>::$v(e.to_string()) } })* } }",
        "#[derive(Debug)] enum Many { I(String), F(String) } b4!(Many => std::num::ParseIntError: I, std::num::ParseFloatError: F);",
        "println!(\"{:?}\", Many::from(\"x\".parse::<i32>().unwrap_err()));",
    ),
    // Collections.
    (
        "macro_rules! c0 { ($($k:expr => $v:expr),* $(,)?) => {{ let mut m = std::collections::BTreeMap::new(); $(m.insert($k, $v);)* m }} }",
        "",
        "let m = 3; println!(\"{:?}\", c0! { 1 => m, 2 => m + 1, });",
    ),
    (
        "macro_rules! c1b { (@one $x:expr) => { () }; ($($x:expr),*) => { <[()]>::len(&[$(c1b!(@one $x)),*]) } }",
        "const COUNT: usize = c1b!(1, 2, 3);",
        "println!(\"{COUNT} {}\", c1b!());",
    ),
    (
        "macro_rules! c2 { () => { 0 }; ($h:tt $($t:tt)*) => { 1 + c2!($($t)*) } }",
        "const LONG: usize = c2!(a b (c d) => 5);",
        "println!(\"{LONG}\");",
    ),
    (
        "macro_rules! c3 { ($x:expr; $n:expr) => { vec![$x; $n] }; ($($x:expr),+ $(,)?) => { vec![$($x),+] }; () => { Vec::<i32>::new() } }",
        "",
        "println!(\"{:?} {:?} {:?}\", c3![1; 3], c3![1, 2,], c3![]);",
    ),
    (
        "macro_rules! c4 { ($($x:expr),* $(; $last:expr)?) => {{ let mut v = vec![$($x),*]; $(v.push($last);)? v }} }",
        "",
        "println!(\"{:?} {:?}\", c4![1, 2; 3], c4![1]);",
    ),
    (
        "macro_rules! c5 { ($first:expr $(, $rest:expr)*) => {{ let m = $first; $(let m = if $rest < m { $rest } else { m };)* m }} }",
        "",
        "let m = 2; println!(\"{}\", c5!(5, m, 4));",
    ),
    (
        "macro_rules! c6 { ([$($x:expr),*] [$($y:expr),*]) => { vec![$(($x, $y)),*] } }",
        "",
        "println!(\"{:?}\", c6!([1, 2] ['a', 'b']));",
    ),
    (
        "macro_rules! c7 { ($([$($x:expr),*]),*) => { [$([$($x * 2),*]),*] } }",
        "",
        "println!(\"{:?}\", c7!([1, 2 + 1], [3, 4]));",
    ),
    (
        "macro_rules! c8 { ($e:expr; for $p:pat in $i:expr $(; if $c:expr)?) => {{ let mut out = Vec::new(); for $p in $i { $(if !$c { continue; })? out.push($e); } out }} }",
        "",
        "println!(\"{:?}\", c8!(a * b; for (a, b) in [(1, 2), (3, 4), (5, 6)]; if a > 1));",
    ),
    // Types that many impls are written for.
    (
        "macro_rules! d0 { ($t:ident { $($n:ty => $v:expr),* }) => { trait $t { fn bits(&self) -> u32; } $(impl $t for $n { fn bits(&self) -> u32 { $v } })* } }",
        "d0!(Bits { u8 => 8, u16 => 16, [u8; 2] => 16, (u8, u8) => 16, &str => 0 });",
        "println!(\"{} {} {}\", 1u8.bits(), [1u8, 2].bits(), \"\".bits());",
    ),
    (
        "macro_rules! d1 { ($($n:ident: $t:ty),*) => { $(#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)] struct $n($t); impl std::ops::Add for $n { type Output = $n; fn add(self, o: $n) -> $n { $n(self.0 + o.0) } } impl From<$t> for $n { fn from(x: $t) -> Self { Self(x) } })* } }",
        "d1!(Metres: f64, Counts: u32);",
        "println!(\"{:?} {:?}\", Metres(1.5) + Metres::from(2.0), Counts(1) + Counts(2));",
    ),
    (
        "macro_rules! d2 { ($t:ident: $($op:ident $f:ident $s:tt),*) => { $(impl std::ops::$op for $t { type Output = $t; fn $f(self, o: $t) -> $t { $t(self.0 $s o.0, self.1 $s o.1) } })* } }",
        "#[derive(Debug, Clone, Copy)] struct Pair(i32, i32); d2!(Pair: Add add +, Sub sub -, Mul mul *, Shl shl <<);",
        "let p = Pair(1, 2); println!(\"{:?} {:?} {:?}\", p + p, p * p, p << p);",
    ),
    (
        "macro_rules! d3 { ($($T:ident)+) => { impl<$($T: Total),+> Total for ($($T,)+) { #[allow(non_snake_case)] fn total(&self) -> i32 { let ($($T,)+) = self; 0 $(+ $T.total())+ } } } }",
        "trait Total { fn total(&self) -> i32; } impl Total for i32 { fn total(&self) -> i32 { *self } } d3!(A3); d3!(A3 B3); d3!(A3 B3 C3);",
        "println!(\"{} {}\", (1,).total(), (1, 2, (3, 4)).total());",
    ),
    (
        "macro_rules! d4 { ($v:vis struct $n:ident<$($g:ident),*> { $($f:ident: $t:ty = $d:expr),* $(,)? }) => { #[derive(Debug)] $v struct $n<$($g),*> { $($f: $t),* } impl<$($g: Default),*> Default for $n<$($g),*> { fn default() -> Self { $n { $($f: $d),* } } } } }",
        "d4!(pub struct Config<K> { size: usize = 4, key: K = K::default(), name: String = \"{size}\".into(), });",
        "println!(\"{:?}\", Config::<u8>::default());",
    ),
    (
        "macro_rules! d5 { ($(#[$m:meta])* enum $n:ident: $r:ident { $($(#[$vm:meta])* $v:ident = $e:expr),* $(,)? }) => { $(#[$m])* #[repr($r)] enum $n { $($(#[$vm])* $v = $e),* } impl $n { const ALL: &'static [$n] = &[$($n::$v),*]; fn name(self) -> &'static str { match self { $($n::$v => stringify!($v)),* } } fn of(x: $r) -> Option<$n> { Self::ALL.iter().copied().find(|v| *v as $r == x) } } } }",
        "d5!(#[derive(Clone, Copy, Debug)] enum Level: u8 { /// low\n Low = 1, High = 1 << 3, });",
        "println!(\"{:?} {} {}\", Level::of(8), Level::Low.name(), Level::ALL.len());",
    ),
    (
        "macro_rules! d6 { ($n:ident { $($f:ident = $b:expr;)* }) => { #[derive(Clone, Copy, PartialEq, Debug)] struct $n(u32); #[allow(non_upper_case_globals)] impl $n { $(const $f: $n = $n($b);)* fn names(self) -> Vec<&'static str> { let mut out = Vec::new(); $(if self.0 & $b != 0 { out.push(stringify!($f)); })* out } } impl std::ops::BitOr for $n { type Output = $n; fn bitor(self, o: $n) -> $n { $n(self.0 | o.0) } } } }",
        "d6!(Flags { READ = 1; WRITE = 1 << 1; RUN = 0b100; });",
        "println!(\"{:?} {:?}\", (Flags::READ | Flags::RUN).names(), Flags::WRITE);",
    ),
    (
        "macro_rules! d7 { ($n:ident, $($f:ident: $t:ty),*) => { #[derive(Default, Debug)] struct $n { $($f: Option<$t>),* } impl $n { $(fn $f(mut self, $f: impl Into<$t>) -> Self { self.$f = Some($f.into()); self })* } } }",
        "d7!(Builder, name: String, size: u64);",
        "println!(\"{:?}\", Builder::default().name(\"n\").size(3u32));",
    ),
    (
        "macro_rules! d8 { ($t:ident => $($f:ident),*) => { impl PartialEq for $t { fn eq(&self, other: &$t) -> bool { true $(&& self.$f == other.$f)* } } } }",
        "struct Part8 { a: i32, b: i32, c: i32 } d8!(Part8 => a, b);",
        "let (x, y) = (Part8 { a: 1, b: 2, c: 3 }, Part8 { a: 1, b: 2, c: 4 }); println!(\"{} {}\", x == y, x.c == y.c);",
    ),
    (
        "macro_rules! d9 { ($t:ty, $($m:ident -> $r:ty),*; $inner:ident) => { impl $t { $(fn $m(&self) -> $r { self.$inner.$m() })* } } }",
        "struct Wrap9 { inner: String } d9!(Wrap9, len -> usize, is_empty -> bool, to_uppercase -> String; inner);",
        "let w = Wrap9 { inner: \"ab\".into() }; println!(\"{} {} {}\", w.len(), w.is_empty(), w.to_uppercase());",
    ),
    // Fragments.
    (
        "macro_rules! e0 { ($($l:lifetime $x:ident),*) => { fn longest<$($l),*>($($x: &$l str),*) -> usize { 0 $(+ $x.len())* } } }",
        "e0!('a one, 'b two);",
        "println!(\"{}\", longest(\"ab\", \"cde\"));",
    ),
    (
        "macro_rules! e1b { ($v:expr, $p:pat $(if $g:expr)? => $e:expr) => { match $v { $p $(if $g)? => $e, _ => -1 } } }",
        "",
        "println!(\"{} {}\", e1b!(Some(4), Some(n) if n > 3 => n), e1b!(Some(1), Some(n) if n > 3 => n));",
    ),
    (
        "macro_rules! e2 { ($b:block $(or $o:block)?) => {{ let r: Option<i32> = (|| $b)(); $(let r = r.or_else(|| $o);)? r }} }",
        "",
        "println!(\"{:?} {:?}\", e2!({ None } or { Some(2) }), e2!({ Some(1) }));",
    ),
    (
        "macro_rules! e3 { ($($i:item)*) => { $(#[allow(dead_code)] $i)* } }",
        "e3! { fn h3() -> i32 { 3 } struct I3 { x: i32 } impl I3 { fn new() -> Self { I3 { x: h3() } } } const J3: i32 = 4; }",
        "println!(\"{} {J3}\", I3::new().x);",
    ),
    (
        "macro_rules! e4 { ($p:path, $m:ident $(::<$t:ty>)?) => { <$p>::$m$(::<$t>)?() } }",
        "",
        "println!(\"{:?} {:?}\", e4!(Vec::<u8>, new), e4!(String, new));",
    ),
    (
        "macro_rules! e5 { (-$l:literal) => { -$l }; ($l:literal) => { $l } }",
        "",
        "println!(\"{} {} {} {:?}\", e5!(1), e5!(-2), e5!(\"{x}\"), e5!('c'));",
    ),
    ("macro_rules! e6 { ($s:stmt; $e:expr) => {{ $s; $e }} }", "", "println!(\"{}\", e6!(let y6 = 3; 4));"),
    (
        "macro_rules! e7 { ($t:ty as $u:ty) => { std::mem::size_of::<$t>() * 100 + std::mem::size_of::<$u>() } }",
        "const SIZES: usize = e7!([u16; 3] as Option<Box<dyn Fn(u8) -> u8 + Send>>);",
        "println!(\"{SIZES}\");",
    ),
    (
        "macro_rules! e8 { ($a:expr) => { $a * 2 } }",
        "const TWICE: i32 = e8!(1 + 2);",
        "println!(\"{TWICE} {}\", -e8!(3 - 1));",
    ),
    (
        "macro_rules! e9 { ($v:vis $n:ident) => { mod $n { $v fn get() -> &'static str { stringify!($v $n) } } } }",
        "e9!(pub open9);",
        "println!(\"{}\", open9::get());",
    ),
    // Recursion, internal rules, callbacks.
    (
        "macro_rules! g10 { (@acc [$($a:tt)*]) => { [$($a)*] }; (@acc [$($a:tt)*] $h:expr $(, $t:expr)*) => { g10!(@acc [$h, $($a)*] $($t),*) }; ($($t:expr),*) => { g10!(@acc [] $($t),*) } }",
        "",
        "println!(\"{:?}\", g10!(1, 2, 3));",
    ),
    (
        "macro_rules! g11 { ($a:expr) => { $a }; ($a:expr, $op:tt $($rest:tt)*) => { $a $op g11!($($rest)*) } }",
        "",
        "println!(\"{}\", g11!(1, + 2, * 3));",
    ),
    (
        "macro_rules! g12 { ($cb:ident, $($x:tt)*) => { $cb!(a $($x)* b) } } macro_rules! g12b { ($($x:tt)*) => { stringify!($($x)*) } }",
        "",
        "println!(\"{}\", g12!(g12b, 1 + {x}));",
    ),
    (
        "macro_rules! g13 { ($n:ident, $v:expr) => { macro_rules! $n { () => { $v }; ($e:expr) => { $v + $e } } } }",
        "g13!(five13, 5);",
        "println!(\"{} {}\", five13!(), five13!(2));",
    ),
    (
        "macro_rules! g14 { ($($n:ident),*) => { g14!(@step 0; $($n),*); }; (@step $i:expr; ) => {}; (@step $i:expr; $n:ident $(, $r:ident)*) => { const $n: usize = $i; g14!(@step $i + 1; $($r),*); } }",
        "g14!(ZERO14, ONE14, TWO14);",
        "println!(\"{ZERO14} {ONE14} {TWO14}\");",
    ),
    (
        "macro_rules! g15 { ($($a:ident: $b:expr),*) => { $(let $a = $b;)* } }",
        "",
        "g15!(u15: 1, v15: u15 + 1); println!(\"{}\", v15);",
    ),
    (
        "macro_rules! g16 { (if $c:expr => $a:block else $b:block) => { if $c $a else $b }; (while $c:expr => $a:block) => { while $c $a } }",
        "",
        "let mut n = 0; g16!(while n < 3 => { n += 1; }); println!(\"{}\", g16!(if n == 3 => { \"three\" } else { \"no\" }));",
    ),
    (
        "macro_rules! g17 { ($f:ident($($a:ident: $t:ty),*) -> $r:ty = $e:expr) => { fn $f($($a: $t),*) -> $r { let out = $e; out } } }",
        "g17!(k17(out: i32, y: i32) -> i32 = out * 10 + y);",
        "println!(\"{}\", k17(1, 2));",
    ),
    (
        "macro_rules! g18 { ($($name:ident => $s:literal;)*) => { $(fn $name(name: &str) -> String { let s = $s; s.replace(\"{name}\", name) })* } }",
        "g18!(hello18 => \"hello {name}\"; bye18 => \"bye {name}\";);",
        "println!(\"{} {}\", hello18(\"a\"), bye18(\"b\"));",
    ),
    (
        "macro_rules! g19 { ($l:expr, $($a:tt)+) => { format!(\"[{}] {}\", $l, format_args!($($a)+)) } }",
        "fn log19(x: i32) -> String { let level = \"info\"; g19!(level, \"{x} {level} {:?} {y}\", x, y = 5) }",
        "println!(\"{}\", log19(3));",
    ),
    (
        "macro_rules! g20 { ($n:ident, $x:ident, $($a:tt)+) => { fn $n($x: i32) -> String { let message = 0; let _ = message; g20b!($($a)+) } } } macro_rules! g20b { ($($a:tt)+) => {{ let message = format!($($a)+); message + \"{message}\" }} }",
        "g20!(log20, message, \"{message:03} {}\", message);",
        "println!(\"{}\", log20(7));",
    ),
    // Statics, tests at compile time, documentation.
    (
        "macro_rules! h0 { ($(static $n:ident: $t:ty = $e:expr;)*) => { $(static $n: std::sync::LazyLock<$t> = std::sync::LazyLock::new(|| $e);)* } }",
        "h0! { static TABLE0: Vec<i32> = vec![1, 2]; static NAME0: String = format!(\"{}\", TABLE0.len()); }",
        "println!(\"{:?} {}\", *TABLE0, *NAME0);",
    ),
    (
        "macro_rules! h1 { ($($t:tt)*) => { const _: () = { assert!($($t)*); }; } }",
        "h1!(std::mem::size_of::<u32>() == 4, \"a message\");",
        "println!(\"checked\");",
    ),
    (
        "macro_rules! h2 { ($(#[doc = $d:literal] $n:ident),*) => { fn docs2() -> Vec<(&'static str, &'static str)> { vec![$((stringify!($n), $d)),*] } } }",
        "h2!(/// one {x}\n a2x, #[doc = \"two\"] b2x);",
        "println!(\"{:?}\", docs2());",
    ),
    (
        "macro_rules! h3m { ($n:ident: $t:ty = $e:expr) => { thread_local! { static $n: std::cell::RefCell<$t> = std::cell::RefCell::new($e); } } }",
        "h3m!(LOCAL3: Vec<u8> = vec![1]);",
        "LOCAL3.with(|l| l.borrow_mut().push(2)); println!(\"{:?}\", LOCAL3.with(|l| l.borrow().clone()));",
    ),
    (
        "macro_rules! h4 { ($($k:ident: $v:tt),*) => { concat!(\"{\", $(stringify!($k), \":\", h4!(@ $v), \";\",)* \"}\") }; (@ { $($i:tt)* }) => { h4!($($i)*) }; (@ $l:literal) => { $l } }",
        "",
        "println!(\"{}\", h4!(a: 1));",
    ),
    (
        "macro_rules! h5 { (null) => { J5::Null }; ([$($v:tt),*]) => { J5::List(vec![$(h5!($v)),*]) }; ({$($k:literal: $v:tt),*}) => { J5::Map(vec![$(($k, h5!($v))),*]) }; ($e:expr) => { J5::from($e) } }",
        "#[derive(Debug)] #[allow(dead_code)] enum J5 { Null, Num(i64), List(Vec<J5>), Map(Vec<(&'static str, J5)>) } impl From<i64> for J5 { fn from(x: i64) -> Self { J5::Num(x) } }",
        "let x = 3; println!(\"{:?}\", h5!({\"{x}\": [1, null, (x + 1)], \"b\": {\"c\": x}}));",
    ),
    (
        "macro_rules! h6 { ($a:expr, $b:expr $(, $($m:tt)+)?) => { if $a != $b { format!(\"{} != {}{}\", stringify!($a), stringify!($b), String::new() $(+ \": \" + &format!($($m)+))?) } else { \"same\".to_string() } } }",
        "",
        "let q = 2; println!(\"{} {} {}\", h6!(1 + 1, q), h6!(1, q), h6!(1, q, \"{q} {}\", q + 1));",
    ),
    (
        "macro_rules! h7 { ($n:ident = $($f:expr)=>+) => { fn $n(x: i32) -> i32 { $(let x = $f(x);)+ x } } }",
        "fn inc7(x: i32) -> i32 { x + 1 } h7!(chain7 = inc7 => |x| x * 10 => inc7);",
        "println!(\"{}\", chain7(1));",
    ),
    // Literals of every shape; then names, format strings and repetitions where items are made.
    (
        "macro_rules! i0 { ($($l:literal),*) => { [$(stringify!($l)),*].join(\" \") } }",
        "",
        "println!(\"{}\", i0!(1e-3, 2.5E+7, 1., b'x', b\"y\", c\"z\", -4u8, 0x_ff, r#\"{q}\"#, '\\u{41}', true));",
    ),
    (
        "macro_rules! i1 { ($n:ident = $l:literal) => { const $n: f64 = $l; } }",
        "i1!(SMALL1 = 1e-3); i1!(LARGE1 = 2.5e+3_f64); i1!(DOT1 = 4.);",
        "println!(\"{SMALL1} {LARGE1} {DOT1}\");",
    ),
    (
        "macro_rules! i2 { ($($n:ident $l:literal)*) => { $(const $n: u8 = $l;)* } }",
        "i2!(A2X b'a' QUOTE2 b'\\'' BRACE2 b'{');",
        "println!(\"{A2X} {QUOTE2} {BRACE2}\");",
    ),
    (
        "macro_rules! i3 { ($n:ident $($t:tt)*) => { const $n: &[&str] = &[$(stringify!($t)),*]; } }",
        "i3!(TOKENS3 1e-3 b'x' ..= 'a 'b' x.0.1 r#type >>= $ (1, 2));",
        "println!(\"{TOKENS3:?}\");",
    ),
    (
        "macro_rules! i4 { ($n:ident, $v:expr) => { fn $n() -> (i32, (i32, i32)) { let v = $v; (v.0.1, v.1) } } }",
        "i4!(nested4, ((1, 2), (3, 4)));",
        "println!(\"{:?}\", nested4());",
    ),
    (
        "macro_rules! j0 { ($n:ident($($a:ident),*) $b:block) => { fn $n($($a: i64),*) -> i64 { let out = 1000; let r = $b; out + r } } }",
        "j0!(mix0(out, r) { out * 10 + r });",
        "println!(\"{}\", mix0(1, 2));",
    ),
    (
        "macro_rules! j1 { ($n:ident, $v:ident, $e:expr) => { fn $n(items: &[i32]) -> Vec<i32> { let mut out = Vec::new(); for $v in items { let item = $v; out.push($e + item * 0); } out } } }",
        "j1!(each1, item, item * 2);",
        "println!(\"{:?}\", each1(&[1, 2]));",
    ),
    (
        "macro_rules! j2 { ($n:ident, |$a:ident| $e:expr) => { fn $n(x: i32) -> i32 { let f = |$a: i32| $e; let a = 5; f(x) + a } } }",
        "j2!(closure2, |a| a * 100);",
        "println!(\"{}\", closure2(3));",
    ),
    (
        "macro_rules! j3 { ($n:ident, $l:lifetime, $b:expr) => { fn $n(limit: i32) -> i32 { let mut i = 0; $l: loop { i += 1; if i > limit { break $l; } if $b(i) { continue $l; } } i } } }",
        "j3!(label3, 'outer, |i| i % 2 == 0);",
        "println!(\"{}\", label3(4));",
    ),
    (
        "macro_rules! j4 { ($n:ident, $x:ident, $p:pat => $e:expr) => { fn $n($x: Option<(i32, i32)>) -> i32 { if let $p = $x { let a = 7; let _ = a; $e } else { 0 } } } }",
        "j4!(bound4, x, Some((a, b)) => a * 10 + b);",
        "println!(\"{} {}\", bound4(Some((1, 2))), bound4(None));",
    ),
    (
        "macro_rules! j5 { ($s:ident { $($f:ident),* }) => { #[derive(Debug)] struct $s { $($f: i32),* } impl $s { fn new($($f: i32),*) -> Self { let total = 0 $(+ $f)*; let _ = total; $s { $($f),* } } fn sum(&self) -> i32 { let $s { $($f),* } = self; 0 $(+ $f)* } } } }",
        "j5!(Fields5 { total, other });",
        "let f = Fields5::new(1, 2); println!(\"{f:?} {}\", f.sum());",
    ),
    (
        "macro_rules! j6 { ($n:ident, $v:ident) => { fn $n() -> i32 { let $v = 1; { let $v = $v + 1; let x = $v; x + $v } } } }",
        "j6!(shadow6, x);",
        "println!(\"{}\", shadow6());",
    ),
    (
        "macro_rules! j7 { ($n:ident, $e:expr) => { fn $n(n: u32) -> u32 { fn helper(n: u32) -> u32 { n + 1 } helper(n) + $e } } }",
        "j7!(inner7, 3 * 2);",
        "println!(\"{}\", inner7(1));",
    ),
    (
        "macro_rules! j8 { ($($n:ident: $e:expr;)*) => { fn all8() -> Vec<i32> { let mut v = Vec::new(); $(let $n = $e; v.push($n);)* v } } }",
        "j8!(v: 1; w: v + 1; v2: w * 10;);",
        "println!(\"{:?}\", all8());",
    ),
    (
        "macro_rules! j9 { ($n:ident, $x:ident, $m:expr) => { fn $n($x: &str) -> String { let mut s = String::new(); { use std::fmt::Write; let x = \"own\"; write!(s, \"{x}-{}\", $m).unwrap(); } s } } }",
        "j9!(written9, x, x.len());",
        "println!(\"{}\", written9(\"abc\"));",
    ),
    (
        "macro_rules! k0 { ($n:ident, $x:ident, $f:literal) => { fn $n($x: f64) -> String { let x = 2; let w = 9; format!($f) + &format!(\"{x:>w$}\") } } }",
        "k0!(fmt0, x, \"{x:.2}|{x:e}|{{x}}|\");",
        "println!(\"{}\", fmt0(1.5));",
    ),
    (
        "macro_rules! k1 { ($n:ident, $x:ident, $f:literal, $($a:tt)*) => { fn $n($x: i32) -> String { let x = \"own\"; let s = format!($f, $($a)*); format!(\"{s}{x}{}\", \"{x}\") } } }",
        "k1!(fmt1, x, \"{x} {} {0} {y}\", x + 1, y = x * 2);",
        "println!(\"{}\", fmt1(1));",
    ),
    (
        "macro_rules! k2 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 1; let text = \"{x}\"; let raw = r#\"{x} \"quoted\"\"#; let bytes = b\"{x}\"; format!(\"{text}{raw}{}{x}{}\", bytes.len(), $x) } } }",
        "k2!(fmt2, x);",
        "println!(\"{}\", fmt2(5));",
    ),
    (
        "macro_rules! k3 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 1; let replaced = \"a {x} b\".replace(\"{x}\", &$x.to_string()); match replaced.as_str() { \"{x}\" => \"never\".into(), other => format!(\"{other}{x}\") } } } }",
        "k3!(template3, x);",
        "println!(\"{}\", template3(5));",
    ),
    (
        "macro_rules! k4 { ($n:ident, $x:ident) => { fn $n($x: i32) -> Result<(), String> { let x = 0; if $x == x { Err(format!(\"{x} is {x:?}, not {}\", stringify!({x}))) } else { Ok(()) } } } }",
        "k4!(refused4, x);",
        "println!(\"{:?} {:?}\", refused4(0), refused4(1));",
    ),
    (
        "macro_rules! k5 { ($n:ident, $x:ident) => { #[doc = \"{x} is not a variable\"] #[must_use = \"{x}\"] fn $n($x: i32) -> &'static str { let x = $x; let _ = x; concat!(\"{x}\", stringify!($x), \"{x}\") } } }",
        "k5!(attributes5, x);",
        "println!(\"{}\", attributes5(1));",
    ),
    (
        "macro_rules! k6 { ($n:ident, $x:ident, $($t:tt)*) => { fn $n($x: i32) -> String { let inner = 3; k6a!(inner, $($t)*) } } } macro_rules! k6a { ($i:ident, $f:literal) => { format!(concat!(\"[\", \"{}\", \"] \", \"{}\"), $i, format!($f)) } }",
        "k6!(through6, inner, \"{inner}\");",
        "println!(\"{}\", through6(8));",
    ),
    (
        "macro_rules! k8 { ($n:ident, $x:ident) => { fn $n($x: i32) -> i32 { let x = 4; assert!($x < 100, \"{x} too large: {}\", $x); assert_eq!($x, $x, \"{x}\"); debug_assert!(x == 4, \"{x}\"); x + $x } } }",
        "k8!(asserted8, x);",
        "println!(\"{}\", asserted8(5));",
    ),
    (
        "macro_rules! k9 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 4; std::panic::catch_unwind(|| { if $x > 3 { panic!(\"{x} and {}\", $x) } \"none\".to_owned() }).unwrap_or_else(|e| e.downcast::<String>().map_or(\"?\".into(), |s| *s)) } } }",
        "k9!(panics9, x);",
        "println!(\"{}\", panics9(1));",
    ),
    (
        "macro_rules! l0 { (@fields $n:ident [$($f:ident: $t:ty),*]) => { #[derive(Debug, Default)] struct $n { $($f: $t),* } }; (@fields $n:ident [$($d:tt)*] $f:ident $($r:tt)*) => { l0!(@fields $n [$($d)* $f: u8] $($r)*); }; (@fields $n:ident [$($d:tt)*], $($r:tt)*) => { l0!(@fields $n [$($d)*,] $($r)*); }; ($n:ident: $($r:tt)*) => { l0!(@fields $n [] $($r)*); } }",
        "l0!(Munched0: a, b, c);",
        "println!(\"{:?}\", Munched0::default());",
    ),
    (
        "macro_rules! l1 { ($($m:ident { $($n:ident = [$($v:expr),*]),* })*) => { $(mod $m { $(pub const $n: &[i32] = &[$($v),*];)* })* } }",
        "l1!(one1 { A = [1, 2], B = [] } two1 { C = [3] });",
        "println!(\"{:?} {:?} {:?}\", one1::A, one1::B, two1::C);",
    ),
    (
        "macro_rules! l2 { ($cb:ident; $($n:ident),*) => { $cb! { $($n)* } } } macro_rules! l2a { ($($n:ident)*) => { $(fn $n() -> &'static str { stringify!($n) })* } }",
        "l2!(l2a; first2, second2);",
        "println!(\"{} {}\", first2(), second2());",
    ),
    (
        "macro_rules! l3 { ($($(#[$a:meta])* $v:vis fn $n:ident($($p:ident: $t:ty),* $(,)?) $(-> $r:ty)? $b:block)*) => { $($(#[$a])* $v fn $n($($p: $t),*) $(-> $r)? { let _traced = stringify!($n); $b })* } }",
        "l3! { #[inline] pub fn traced3(a: i32, b: i32,) -> i32 { let _x = a; _x + b } fn unit3() {} }",
        "unit3(); println!(\"{}\", traced3(1, 2));",
    ),
    (
        "macro_rules! l4 { ($t:ident<$($g:ident $(: $b:path)?),*> where $($w:tt)*) => { struct $t<$($g),*>($($g),*) where $($w)*; impl<$($g $(: $b)?),*> $t<$($g),*> where $($w)* { fn describe(&self) -> &'static str { concat!($(stringify!($g), $(\":\", stringify!($b),)? \" \"),*) } } } }",
        "l4!(Bounded4<A4: Clone, B4> where A4: Clone, B4: Copy);",
        "println!(\"{}\", Bounded4(1, 2).describe());",
    ),
    (
        "macro_rules! l5 { ($($from:ident => $to:ident),+ $(,)?) => { trait Next5 { fn next(self) -> Self; } #[derive(Debug, Clone, Copy, PartialEq)] enum State5 { $($from),+ } impl Next5 for State5 { fn next(self) -> Self { match self { $(State5::$from => State5::$to),+ } } } } }",
        "l5!(Red => Green, Green => Yellow, Yellow => Red,);",
        "println!(\"{:?}\", State5::Red.next().next());",
    ),
    (
        "macro_rules! l6 { ($n:ident: $($k:literal => $v:expr),* $(; else $d:expr)?) => { fn $n(key: &str) -> Option<i32> { match key { $($k => Some($v),)* $(_ => Some($d),)? #[allow(unreachable_patterns)] _ => None } } } }",
        "l6!(lookup6: \"a\" => 1, \"{key}\" => 2); l6!(other6: \"a\" => 1; else 9);",
        "println!(\"{:?} {:?} {:?} {:?}\", lookup6(\"{key}\"), lookup6(\"b\"), other6(\"b\"), other6(\"a\"));",
    ),
    (
        "macro_rules! l7 { ($($x:ident),* => $($y:ident),*) => { fn l7pairs() -> Vec<(&'static str, &'static str)> { let mut v = vec![]; $(v.push((stringify!($x), stringify!($y)));)* v } } }",
        "l7!(a, b => c, d);",
        "println!(\"{:?}\", l7pairs());",
    ),
    (
        "macro_rules! l8 { ($n:ident $(<$l:lifetime>)? ($t:ty)) => { struct $n $(<$l>)? ($t); impl $(<$l>)? $n $(<$l>)? { fn get(&self) -> &$t { &self.0 } } } }",
        "l8!(Plain8(u8)); l8!(Borrowed8<'a>(&'a str));",
        "println!(\"{} {}\", Plain8(1).get(), Borrowed8(\"b\").get());",
    ),
    (
        "macro_rules! l9 { ($a:ty, $b:ty) => { impl From9<$a> for $b { fn from9(a: $a) -> $b { a as $b } } }; ($($a:ty => $($b:ty),+;)+) => { $($(l9!($a, $b);)+)+ } }",
        "trait From9<T> { fn from9(t: T) -> Self; } l9!(u8 => u16, u32; i8 => i64;);",
        "println!(\"{} {}\", <u32 as From9<u8>>::from9(7), <i64 as From9<i8>>::from9(-7));",
    ),
    // Words of the macro's own that name fields, or are shown.
    (
        "macro_rules! m7 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 1; let y = $x; let all = vec![P7 { x, y }, P7 { x: y, y: x }]; let ok = matches!(all[0], P7 { x, .. } if x == 1); format!(\"{} {} {ok} {} {}\", all[0].x, all[1].x, stringify!(x), P7 { x: 5, y }.x) } } }",
        "struct P7 { x: i32, y: i32 } m7!(fields7, x);",
        "println!(\"{}\", fields7(8));",
    ),
    (
        "macro_rules! m8 { ($n:ident, $x:ident) => { fn $n($x: i32) -> String { let x = 2; format!(\"{:?} {x} {w}\", (0..3).map(|x| x + $x).collect::<Vec<_>>(), w = x + 1) + concat!(stringify!(x), \"{x}\") } } }",
        "m8!(closures8, x);",
        "println!(\"{}\", closures8(8));",
    ),
    (
        "macro_rules! m9 { ($n:ident, $x:ident) => { fn $n($x: usize) -> usize { let x = 2; let w = 0; let _ = w; format!(\"{:w$}{}\", x, $x, w = 5).len() } } }",
        "m9!(widths9, x);",
        "println!(\"{}\", widths9(8));",
    ),
];

#[test]
fn macros_do_what_they_do_in_a_program() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("macros");
    std::fs::create_dir_all(&dir).unwrap();
    let part =
        |of: fn(&(&'static str, &'static str, &'static str)) -> String| -> String { FORMS.iter().map(of).collect() };
    let (rules, items) = (part(|f| format!("{}\n", f.0)), part(|f| format!("{}\n", f.1)));
    let statements = part(|f| format!("{{ {} }}\n", f.2));
    let (source, binary) = (dir.join("program.rs"), dir.join("program"));
    std::fs::write(&source, format!("#![allow(unused)]\n{rules}{items}fn main() {{\n{statements}}}\n")).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled =
        Command::new(rustc).args(["--edition=2024", "-Copt-level=0", "-o"]).arg(&binary).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let wanted = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    assert!(FORMS.len() >= 100);
    let engine = engine();
    let mut cell = 0;
    let mut ran = |code: &str| {
        cell += 1;
        match run(&engine, cell, code) {
            (out, Reply::Ok) => out,
            (out, Reply::Error(failure)) => panic!("{code}\n{out}{}", plain(&failure)),
            (out, reply) => panic!("{code}\n{out}{reply:?}"),
        }
    };
    ran(&rules);
    ran(&items);
    let found = ran(&statements);
    let lines = wanted.lines().zip(found.lines()).zip(FORMS);
    for ((wanted, found), form) in lines {
        assert_eq!(found, wanted, "{form:?}");
    }
    assert_eq!(found.lines().count(), wanted.lines().count());
}
