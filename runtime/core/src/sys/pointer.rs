//! Pointers to functions of any number of arguments, whose types have names where a function's own type has none.

/// A function, by its own type; `M` tells functions of several numbers of arguments apart.
pub trait Function<M> {
    type Pointer;
    fn pointer(self) -> Self::Pointer;
}

macro_rules! functions {
    ($(($($argument:ident)*))*) => {$(
        impl<F: Fn($($argument),*) -> R + Copy + 'static, $($argument: 'static,)* R: 'static> Function<fn($($argument),*) -> R>
            for F
        {
            type Pointer = fn($($argument),*) -> R;
            #[allow(non_snake_case)]
            fn pointer(self) -> Self::Pointer {
                const { assert!(size_of::<F>() == 0, "a function, or a closure that takes nothing along") };
                // SAFETY: there is such a value, `self`, which is `Copy`, and what has no size is read nowhere.
                |$($argument),*| (unsafe { std::ptr::NonNull::<F>::dangling().read() })($($argument),*)
            }
        }
    )*};
}
functions! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) }

/// A pointer to a function.
pub fn pointer<M, F: Function<M>>(function: F) -> F::Pointer {
    function.pointer()
}

#[cfg(test)]
mod tests {
    use super::pointer;

    #[test]
    fn functions_of_all_kinds_have_pointers() {
        fn length(text: &str) -> usize {
            text.len()
        }
        let least: fn(i32, i32) -> i32 = pointer(std::cmp::min);
        assert_eq!((least(3, 2), pointer(length)("four"), pointer(f64::sqrt)(9.0), pointer(|| 1)()), (2, 4, 3.0, 1));
    }
}
