//! Stored values as the types that cells know them by, and the variables of a running cell in boxes that outlive its code.
//! It stands alone, so that Miri and sanitizers can run it (`tests/unbox.sh`).
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A stored value as the type `T` that a cell knows it by.
///
/// The store has compared the types. They may differ in one way, which only generated code asks for: `T` was compiled a
/// second time from the same definition (the kernel compares it, with everything it mentions), so its TypeId is another
/// one; name, size and alignment are compared once more by the store.
pub fn unbox<T: 'static>(value: Box<dyn Any>) -> T {
    debug_assert!(fits::<T>(&*value));
    // SAFETY: same type, or same definition, rustc and flags, hence the same layout: the box can be read, and later
    // dropped, as the new type.
    unsafe { *Box::from_raw(Box::into_raw(value).cast::<T>()) }
}

/// As [`unbox`], for a value that stays in the store.
pub fn unboxed_ref<T: 'static>(value: &dyn Any) -> &T {
    debug_assert!(fits::<T>(value));
    // SAFETY: as for `unbox`.
    unsafe { &*(value as *const dyn Any).cast::<T>() }
}

/// Whether a value could be a `T` of the same definition, as far as can be seen of it.
pub fn fits<T: 'static>(value: &dyn Any) -> bool {
    value.is::<T>() || size_of::<T>() == size_of_val(value) && align_of::<T>() == align_of_val(value)
}

/// A value that is lent until somebody has it back; where nobody does, it stays for good.
pub struct Away<T>(NonNull<T>);

impl<T: 'static> Away<T> {
    pub fn new(value: T) -> (Away<T>, &'static mut T) {
        let lent = Box::leak(Box::new(value));
        let raw = NonNull::from(&mut *lent);
        // SAFETY: this is the only loan of the box until `back`, and what it is had back by is made of the same place.
        (Away(raw), unsafe { &mut *raw.as_ptr() })
    }

    /// Looks at it, while all that borrows it does so, too, and for less long than until it is had back.
    pub fn look<'f>(&self) -> &'f T {
        // SAFETY: as said, which generated code sees to, as in `back`.
        unsafe { &*self.0.as_ptr() }
    }

    /// Has it back. Generated code alone asks for it, when it has nothing any more that borrows the value: what does so is a variable
    /// that cells have as a loan for the time of the cell, so that nothing else can have it.
    pub fn back(self) -> T {
        // SAFETY: the box is from `new`, once, and the loan is over.
        unsafe { *Box::from_raw(self.0.as_ptr()) }
    }
}

/// Values in boxes of their own, each lent to one place of the code that runs.
#[derive(Default)]
pub struct Boxes(RefCell<Vec<Option<NonNull<dyn Any>>>>);

/// What lends from [`Boxes`], for exactly `'f`: a shorter loan would let its value be taken while the longer one goes on.
#[derive(Clone, Copy)]
pub struct Lender<'f> {
    boxes: &'f Boxes,
    exactly: PhantomData<Cell<&'f ()>>,
}

/// A loan of what is not changed, whose type may be had with a shorter lifetime. There is one of each, so that the value can be taken
/// for it.
pub struct LookedAt<'f, T>(&'f T);

impl<'f, T> LookedAt<'f, T> {
    pub fn new(lent: &'f mut T) -> LookedAt<'f, T> {
        LookedAt(lent)
    }
}

impl<T: fmt::Debug> fmt::Debug for LookedAt<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for LookedAt<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> std::ops::Deref for LookedAt<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0
    }
}

impl Boxes {
    /// There is one lender at a time, since it borrows them for as long as anything is lent.
    pub fn lender(&mut self) -> Lender<'_> {
        Lender { boxes: self, exactly: PhantomData }
    }

    /// What is there, by the numbers that it was given when it was lent.
    pub fn values(&mut self) -> Vec<Option<Box<dyn Any>>> {
        // SAFETY: they are from `Box::into_raw`, once each, and what was lent of them no longer is.
        let value = |raw: Option<NonNull<dyn Any>>| raw.map(|raw| unsafe { Box::from_raw(raw.as_ptr()) });
        self.0.get_mut().drain(..).map(value).collect()
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        drop(self.values());
    }
}

impl<'f> Lender<'f> {
    /// Lends a value that stays in its box, and says its number.
    pub fn lend<T: 'static>(self, value: Box<T>) -> (usize, &'f mut T) {
        let raw: *mut T = Box::into_raw(value);
        let number = self.push(raw);
        // SAFETY: the box stays until `take` gets this loan back, or until `values`, when the loan is over.
        (number, unsafe { &mut *raw })
    }

    /// What needs no type is compiled here, not in every cell.
    #[inline(never)]
    fn push(self, raw: *mut dyn Any) -> usize {
        let mut boxes = self.boxes.0.borrow_mut();
        boxes.push(NonNull::new(raw));
        boxes.len() - 1
    }

    #[inline(never)]
    fn taken(self, number: usize, lent: *mut ()) -> *mut dyn Any {
        let of = |boxed: &mut Option<NonNull<dyn Any>>| boxed.take_if(|b| std::ptr::addr_eq(b.as_ptr(), lent));
        self.boxes.0.borrow_mut().get_mut(number).and_then(of).expect("a value is taken once").as_ptr()
    }

    /// The value itself, for the loan: it cannot be used again, which the compiler sees to.
    pub fn take<T: 'static>(self, number: usize, lent: &'f mut T) -> T {
        let lent: *mut T = lent;
        let boxed = self.taken(number, lent.cast());
        // SAFETY: it is the box that was lent as this type: nothing else has its number and its address.
        unsafe { *Box::from_raw(boxed.cast::<T>()) }
    }

    /// As [`Lender::take`], of what is looked at.
    pub fn take_looked_at<T: 'static, U>(self, number: usize, looked: LookedAt<'_, U>) -> T {
        let boxed = self.taken(number, std::ptr::from_ref(looked.0).cast_mut().cast());
        // SAFETY: it is the box that was lent, and nothing has a part of it: that would borrow what was handed in.
        *unsafe { Box::from_raw(boxed) }.downcast().expect("it is lent as this type")
    }

    /// The reference or the box in a box that was lent as what that points to, for the loan.
    pub fn take_through<T: ?Sized + 'static>(self, number: usize, lent: &mut T) -> Result<&'static mut T, Box<T>> {
        let boxed = self.boxes.0.borrow_mut().get_mut(number).and_then(Option::take).expect("a value is taken once");
        // SAFETY: nothing else has its number, and who hands the loan in names it no more.
        let value = unsafe { Box::from_raw(boxed.as_ptr()) };
        let through = value.downcast::<&'static mut T>().map(|reference| *reference);
        let through = through.map_err(|v| *v.downcast::<Box<T>>().expect("it is lent as what it points to"));
        let points_to = match &through {
            Ok(reference) => std::ptr::from_ref::<T>(reference),
            Err(owned) => std::ptr::from_ref::<T>(owned),
        };
        assert!(std::ptr::addr_eq(lent, points_to), "another loan was handed in");
        through
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap};
    use std::fmt::Debug;
    use std::rc::Rc;

    thread_local! {
        static ALIVE: Cell<i32> = const { Cell::new(0) };
    }

    /// Counts itself, so that a value that is dropped twice or never is seen.
    #[derive(Debug)]
    struct Counted(#[allow(dead_code)] Box<u32>);

    impl Counted {
        fn new(n: u32) -> Counted {
            ALIVE.set(ALIVE.get() + 1);
            Counted(Box::new(n))
        }
    }

    impl Clone for Counted {
        fn clone(&self) -> Counted {
            Counted::new(*self.0)
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            ALIVE.set(ALIVE.get() - 1);
        }
    }

    /// The same definitions, compiled twice.
    macro_rules! definitions {
        ($($name:ident)*) => {$(
            // Either is used in part.
            #[allow(dead_code)]
            mod $name {
                use super::Counted;
                use std::collections::{BTreeMap, HashMap};
                use std::rc::Rc;

                #[derive(Clone, Debug)]
                pub struct Nothing;
                #[derive(Clone, Copy, Debug)]
                pub struct Small(pub u8, pub u32, pub u16);
                #[derive(Clone, Debug)]
                pub struct Owning { pub text: String, pub flag: bool, pub counted: Counted, pub list: Vec<u64> }
                #[derive(Clone, Debug)]
                #[repr(align(64))]
                pub struct Aligned(pub Counted, pub u8);
                #[derive(Clone, Debug)]
                pub enum Choice { Empty, Text(String), Counted { of: Counted, n: u8 }, Boxed(Box<Choice>), Flag(bool) }
                #[derive(Clone, Debug)]
                pub struct Of<T, const N: usize> { pub all: [T; N], pub one: Option<Box<T>> }
                #[derive(Clone, Debug)]
                pub struct Shared { pub a: Rc<Owning>, pub b: Rc<Owning>, pub map: HashMap<u8, Choice> }
                pub type Tree = BTreeMap<String, Vec<Choice>>;

                pub fn owning() -> Owning {
                    Owning { text: "text".into(), flag: true, counted: Counted::new(1), list: vec![1, 2] }
                }
                pub fn choices() -> Vec<Choice> {
                    let counted = Choice::Counted { of: Counted::new(2), n: 3 };
                    let boxed = Choice::Boxed(Box::new(counted.clone()));
                    vec![Choice::Empty, Choice::Text("t".into()), counted, boxed, Choice::Flag(true)]
                }
                pub fn of() -> Of<Choice, 2> {
                    let [a, b] = [choices().remove(2), choices().remove(3)];
                    Of { one: Some(Box::new(a.clone())), all: [a, b] }
                }
                pub fn shared() -> Shared {
                    let a = Rc::new(owning());
                    Shared { b: a.clone(), a, map: [(1, choices().remove(1)), (2, choices().remove(2))].into() }
                }
                pub fn tree() -> Tree {
                    [("a".to_owned(), choices()), ("b".to_owned(), Vec::new())].into()
                }
            }
        )*};
    }
    definitions!(first second);

    /// A value of the first type becomes one of the second, by reference and by value, and all of it is dropped once.
    fn becomes<A: Debug + 'static, B: Clone + Debug + 'static>(value: A) {
        let shown = format!("{value:?}");
        let stored: Box<dyn Any> = Box::new(value);
        assert!(fits::<B>(&*stored) && !stored.is::<B>());
        let copy = unboxed_ref::<B>(&*stored).clone();
        assert_eq!(format!("{copy:?}"), shown);
        let now: B = unbox(stored);
        drop(copy);
        assert_eq!(format!("{now:?}"), shown);
        let again: Box<dyn Any> = Box::new(now);
        assert_eq!(format!("{:?}", unbox::<B>(again)), shown);
        assert_eq!(ALIVE.get(), 0, "{shown}");
    }

    #[test]
    fn a_value_of_the_same_definition_is_whole() {
        becomes::<_, second::Nothing>(first::Nothing);
        becomes::<_, second::Small>(first::Small(1, 2, 3));
        becomes::<_, second::Owning>(first::owning());
        becomes::<_, second::Aligned>(first::Aligned(Counted::new(4), 5));
        let choice = |n: usize| first::choices().remove(n);
        (0..5).for_each(|n| becomes::<_, second::Choice>(choice(n)));
        becomes::<_, second::Of<second::Choice, 2>>(first::of());
        becomes::<_, second::Tree>(first::tree());
        becomes::<_, Option<second::Choice>>(Some(choice(2)));
        becomes::<_, Option<second::Choice>>(None::<first::Choice>);
        becomes::<_, (u8, Vec<second::Small>, Rc<second::Owning>)>((
            1u8,
            vec![first::Small(1, 2, 3); 3],
            Rc::new(first::owning()),
        ));
        becomes::<_, Result<HashMap<u8, second::Nothing>, second::Choice>>(Ok::<_, first::Choice>(HashMap::from([(
            1u8,
            first::Nothing,
        )])));
        becomes::<_, BTreeMap<u8, [second::Aligned; 2]>>(BTreeMap::from([(
            1u8,
            [first::Aligned(Counted::new(1), 1), first::Aligned(Counted::new(2), 2)],
        )]));
    }

    #[test]
    fn what_is_shared_stays_shared() {
        let shared = first::shared();
        let outside = shared.a.clone();
        let now: second::Shared = unbox(Box::new(shared));
        assert_eq!(Rc::strong_count(&now.a), 3);
        assert!(Rc::ptr_eq(&now.a, &now.b) && now.map.len() == 2);
        drop(now);
        assert_eq!((Rc::strong_count(&outside), &*outside.text), (1, "text"));
        drop(outside);
        assert_eq!(ALIVE.get(), 0);
    }

    #[test]
    fn what_is_lent_is_taken_or_left_and_dropped_once() {
        let mut boxes = Boxes::default();
        {
            let lender = boxes.lender();
            let (first, mut a) = lender.lend(Box::new(Counted::new(1)));
            let (second, b) = lender.lend(Box::new(vec![Counted::new(2)]));
            let (_, left) = lender.lend(Box::new(Counted::new(3)));
            b.push(Counted::new(4));
            let of_b = &b[0];
            assert_eq!((*a.0, *of_b.0), (1, 2));
            let mut number = first;
            for n in 5..8 {
                let taken = lender.take(number, a);
                (number, a) = lender.lend(Box::new(Counted::new(*taken.0 + n)));
            }
            *left = Counted::new(9);
            assert_eq!((*a.0, lender.take(second, b).len()), (19, 2));
            assert_eq!(ALIVE.get(), 2);
        }
        let left: Vec<bool> = boxes.values().iter().map(Option::is_some).collect();
        assert_eq!((left, ALIVE.get()), (vec![false, false, true, false, false, true], 0));
        boxes.lender().lend(Box::new(Counted::new(1)));
        drop(boxes);
        assert_eq!(ALIVE.get(), 0);
    }

    #[test]
    fn what_is_lent_for_a_time_comes_back_as_it_was_changed() {
        let (away, lent) = Away::new(vec![Counted::new(1)]);
        lent.push(Counted::new(2));
        let mut boxes = Boxes::default();
        {
            let lender = boxes.lender();
            let (number, kept) = lender.lend(Box::new(lent));
            kept.push(Counted::new(3));
            let reference = lender.take_through::<Vec<Counted>>(number, kept).expect("a reference");
            // What borrows is lent itself.
            let (part, whole) = Away::new(reference);
            whole[0] = Counted::new(4);
            part.back().push(Counted::new(5));
            let mut calls: Box<dyn FnMut(u32) -> u32> = {
                let (mut sum, counted) = (0, Counted::new(6));
                Box::new(move |n| {
                    sum += n + *counted.0;
                    sum
                })
            };
            assert_eq!(calls(1), 7);
            let (number, kept) = lender.lend(Box::new(calls));
            assert_eq!(kept(1), 14);
            let owned = lender.take_through::<dyn FnMut(u32) -> u32>(number, &mut **kept).err().expect("a box");
            let (away, lent) = Away::new(owned);
            assert_eq!((lent(1), away.back()(1)), (21, 28));
        }
        assert_eq!(away.back().iter().map(|c| *c.0).collect::<Vec<u32>>(), [4, 2, 3, 5]);
        let (away, lent) = Away::new(Counted::new(7));
        let (of, looked_at): (&u32, &Counted) = (&lent.0, away.look());
        assert_eq!((*of, *looked_at.0), (7, 7));
        drop(away.back());
        assert_eq!(ALIVE.get(), 0);
    }

    #[test]
    fn what_is_looked_at_is_taken_whole() {
        let words = [String::from("a"), String::from("b")];
        let mut boxes = Boxes::default();
        let lender = boxes.lender();
        let (number, lent) = lender.lend(Box::new(vec!["c"]));
        let (looked_at, taken) = (LookedAt::new(lent), |at| lender.take_looked_at::<Vec<&'static str>, _>(number, at));
        assert_eq!((format!("{looked_at:?}"), looked_at.len()), ("[\"c\"]".to_owned(), 1));
        let mut shorter: Vec<&str> = taken(looked_at);
        shorter.extend(words.iter().map(String::as_str));
        assert_eq!(shorter.concat(), "cab");
    }

    #[test]
    fn other_sizes_and_alignments_do_not_fit() {
        assert!(!fits::<u32>(&1u64) && !fits::<[u8; 8]>(&1u64) && !fits::<first::Aligned>(&first::Small(1, 2, 3)));
        assert!(fits::<u64>(&1u64) && fits::<second::Small>(&first::Small(1, 2, 3)));
        if cfg!(debug_assertions) {
            let refused = std::panic::catch_unwind(|| unbox::<u32>(Box::new(1u64)));
            assert!(refused.is_err());
        }
    }
}
