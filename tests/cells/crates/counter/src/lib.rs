//! A dependency for the tests of `:dep`: a static, a private path, a feature, a macro, a figure in evcxr's form.
use std::sync::atomic::{AtomicU32, Ordering};

pub use shout::{Echo, Shout};

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
