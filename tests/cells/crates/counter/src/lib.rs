//! A dependency for the tests of `:dep`: a static, a private path, a feature, a macro, a figure in evcxr's form.
use std::sync::atomic::{AtomicU32, Ordering};

pub use shout::{Echo, Shout, depends_on};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Counts calls; with the feature `double`, twice.
pub fn count() -> u32 {
    let step = if cfg!(feature = "double") { 2 } else { 1 };
    COUNT.fetch_add(step, Ordering::SeqCst) + step
}

mod private {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Pair<T>(pub T, pub T);
}
pub use private::Pair;

mod deep {
    pub mod inside {
        #[derive(Debug)]
        pub struct Gauge(pub i32);
    }
    pub struct Hidden(pub i32);
}
pub mod meters {
    pub mod fine {
        pub use crate::deep::inside::Gauge;
    }
}

/// Its type is public far from where it is defined.
pub fn gauge(n: i32) -> meters::fine::Gauge {
    meters::fine::Gauge(n)
}

/// Its type is public nowhere.
pub fn hidden(n: i32) -> deep::Hidden {
    deep::Hidden(n)
}

/// Its type is from a crate that only this one names.
pub fn tick(n: u8) -> tick::Tick {
    tick::Tick(n)
}

#[macro_export]
macro_rules! pair {
    ($a:expr, $b:expr) => {
        $crate::Pair($a, $b)
    };
}

pub struct Figure(pub &'static str);

impl Figure {
    pub fn evcxr_display(&self) {
        println!("EVCXR_BEGIN_CONTENT text/html\n<b>{}</b>\nEVCXR_END_CONTENT", self.0);
    }
}

/// Items of one of two sides, as `cfg_if!` has them.
#[macro_export]
macro_rules! either {
    (if #[$when:meta] { $($yes:item)* } else { $($no:item)* }) => { $(#[$when] $yes)* $(#[cfg(not(all()))] $no)* };
}

/// Statements.
#[macro_export]
macro_rules! twice {
    ($($s:stmt;)*) => { $($s;)* $($s;)* };
}

pub trait Tripled {
    fn tripled(&self) -> i32;
}
impl Tripled for i32 {
    fn tripled(&self) -> i32 {
        self * 3
    }
}

/// What is in it is said by who fills it.
#[derive(Debug)]
pub struct Bag<T>(Vec<T>);
impl<T> Bag<T> {
    pub fn new() -> Bag<T> {
        Bag(Vec::new())
    }

    pub fn put(&mut self, one: T) -> usize {
        self.0.push(one);
        self.0.len()
    }
}

/// Functions in a module, which words of its own name: `words!(colors: red, green)`.
#[macro_export]
macro_rules! words {
    ($who:vis $name:ident: $($word:ident),*) => {
        $who mod $name { $(pub fn $word() -> &'static str { stringify!($word) })* }
    };
}

pub trait Named {
    fn name(&self) -> String;
}

/// An `impl`, which stands beside its type.
#[macro_export]
macro_rules! named {
    ($of:ident) => {
        impl $crate::Named for $of {
            fn name(&self) -> String {
                stringify!($of).into()
            }
        }
    };
}

/// The items in the braces.
#[macro_export]
macro_rules! versioned {
    ($n:literal { $($one:item)* }) => { $($one)* };
}

mod registry {
    #[derive(Debug, Default)]
    pub struct Registry<'a>(pub Vec<&'a str>);
    #[derive(Debug, Default)]
    pub struct Shelf<T>(pub Vec<T>);
}
pub use registry::{Registry as Board, Shelf as Rack};

/// Units, which are written as functions are.
pub mod unit {
    #[allow(non_camel_case_types)]
    #[derive(Debug)]
    pub struct mole;
}

#[derive(Debug)]
pub struct Amount<U>(pub f64, pub U);

pub fn amount(n: f64) -> Amount<unit::mole> {
    Amount(n, unit::mole)
}

pub mod all {
    /// xlazy has one of that name.
    pub trait Context {
        fn found(&self) -> i32;
    }
    impl Context for i32 {
        fn found(&self) -> i32 {
            self + 1
        }
    }
}

/// What looks by names that others take by.
#[derive(Debug)]
pub struct Handle(pub u8);
impl Handle {
    pub fn expect(&self, n: u8) -> bool {
        self.0 == n
    }

    pub fn into_inner(self) -> u8 {
        self.0
    }
}
