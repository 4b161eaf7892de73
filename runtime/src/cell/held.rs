//! The variables that a running cell has made so far, or has taken to move them: in boxes outside of its code, so that they are
//! there however it ends.
use std::any::{Any, type_name};
use std::cell::{Cell, RefCell};
use xlazy_core::sys::{Away, Boxes, Lender, LookedAt};

/// The boxes, and the `let`s that have completed.
#[derive(Default)]
pub(super) struct Held {
    boxes: Boxes,
    lets: RefCell<Vec<Let>>,
    /// The cell came to its end.
    done: Cell<bool>,
}

/// A `let` that has completed.
struct Let {
    /// Which of the cell's variables it is.
    number: usize,
    name: &'static str,
    place: Place,
}

enum Place {
    /// The number of its box, and how what is in it is stored.
    Held(usize, Keep),
    /// It is in the cell's code alone, which stores it at its end.
    Inside,
    /// It borrows, and ends with the cell.
    Borrows,
    /// It is declared, and has no value yet.
    Unset,
    /// Lent for good.
    Lent(Loaned),
    /// Lent until a cell mentions it, as an [`Away`].
    Away(Loaned),
}

/// What can be looked at of what is stored.
pub(super) type Look = fn(&dyn Any) -> Option<&dyn Any>;

/// What is stored of a variable that is lent.
pub(super) struct Loaned {
    pub stored: Box<dyn Any>,
    pub type_name: &'static str,
    /// None where what borrows it may be changing it.
    pub look: Option<Look>,
}

/// A variable that something borrows which lives on after its cell.
pub(super) struct Lent<T: 'static>(pub &'static T);

/// How a value is stored.
#[derive(Clone, Copy)]
pub(super) enum Keep {
    /// With the name of its type.
    Value(&'static str),
    Handle(fn(&str, Box<dyn Any>), &'static str),
}

impl Keep {
    fn type_name(self) -> &'static str {
        let (Keep::Value(name) | Keep::Handle(_, name)) = self;
        name
    }
}

/// What the cell's code knows of its frame.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Holds<'f> {
    boxes: Lender<'f>,
    lets: &'f RefCell<Vec<Let>>,
    done: &'f Cell<bool>,
}

impl Held {
    pub fn holds(&mut self) -> Holds<'_> {
        Holds { boxes: self.boxes.lender(), lets: &self.lets, done: &self.done }
    }

    /// What became of each, in order.
    pub fn ended(&mut self) -> Vec<(&'static str, Ended)> {
        let (mut values, done) = (self.boxes.values(), self.done.take());
        let ended = |Let { name, place, .. }: Let| {
            let how = match place {
                Place::Held(boxed, keep) => {
                    values[boxed].take().map_or(Ended::Moved(keep.type_name()), |value| Ended::Holds(value, keep))
                }
                // It is stored already.
                Place::Inside if done => return None,
                Place::Inside | Place::Unset => Ended::Moved(""),
                Place::Borrows => Ended::Borrowed,
                Place::Lent(loaned) => Ended::Lent(loaned),
                Place::Away(loaned) => Ended::Away(loaned),
            };
            Some((name, how))
        };
        self.lets.get_mut().drain(..).filter_map(ended).collect()
    }
}

pub(super) enum Ended {
    Holds(Box<dyn Any>, Keep),
    /// It was moved away, or it was in the code of a cell that ended early. With its type's name, where that is known.
    Moved(&'static str),
    Borrowed,
    Lent(Loaned),
    Away(Loaned),
}

/// A place of the cell's code that is moved away where a variable is had back: nothing of what borrowed it can be used behind that.
pub struct Until;

/// What borrows another variable, as cells have it: for the time that they run.
pub trait View: 'static {
    type For<'f>;
    fn shorten(held: &mut Self) -> Self::For<'_>;
}

impl<T: ?Sized + 'static> View for &'static mut T {
    type For<'f> = &'f mut T;
    fn shorten(held: &mut Self) -> &mut T {
        held
    }
}

impl<T: ?Sized + 'static> View for &'static T {
    type For<'f> = &'f T;
    fn shorten(held: &mut Self) -> &T {
        held
    }
}

/// A closure, which has no type that cells could write.
impl<T: ?Sized + 'static> View for Box<T> {
    type For<'f> = &'f mut T;
    fn shorten(held: &mut Self) -> &mut T {
        held
    }
}

impl<V: View> View for Option<V> {
    type For<'f> = Option<V::For<'f>>;
    fn shorten(held: &mut Self) -> Self::For<'_> {
        held.as_mut().map(V::shorten)
    }
}

impl<'f> Holds<'f> {
    /// A `let` whose variable stays in the cell's code has completed.
    #[inline(never)]
    pub fn inside(self, number: usize, name: &'static str, borrows: bool) {
        let place = if borrows { Place::Borrows } else { Place::Inside };
        self.set(number, name, place);
    }

    /// A `let` without a value.
    #[inline(never)]
    pub fn unset(self, number: usize, name: &'static str) {
        self.set(number, name, Place::Unset);
    }

    #[inline(never)]
    pub fn done(self) {
        self.done.set(true);
    }

    #[inline(never)]
    fn set(self, number: usize, name: &'static str, place: Place) {
        let mut lets = self.lets.borrow_mut();
        match lets.iter_mut().find(|l| l.number == number) {
            Some(known) => known.place = place,
            None => lets.push(Let { number, name, place }),
        }
    }

    /// A variable whose type is no handle, or not known yet.
    pub fn value<T: 'static>(self, number: usize, name: &'static str, value: T) -> &'f mut T {
        let (boxed, lent) = self.boxes.lend(Box::new(value));
        self.set(number, name, Place::Held(boxed, Keep::Value(type_name::<T>())));
        lent
    }

    pub(super) fn handle<T: 'static>(
        self,
        number: usize,
        name: &'static str,
        value: T,
        keep: fn(&str, Box<dyn Any>),
    ) -> &'f mut T {
        let (boxed, lent) = self.boxes.lend(Box::new(value));
        self.set(number, name, Place::Held(boxed, Keep::Handle(keep, type_name::<T>())));
        lent
    }

    /// A closure, beside what stores it: its type has no name by which later cells could have it.
    pub fn closure<F: 'static, K: FnOnce(F) + 'static>(
        self,
        number: usize,
        name: &'static str,
        closure: F,
        keep: K,
    ) -> &'f mut (F, K) {
        self.handle(number, name, (closure, keep), keep_closure::<F, K>)
    }

    /// Lends a closure for good, and stores what later cells have of it.
    pub fn lend_closure<F: 'static, K: 'static, L: FnOnce(&'static F) + 'static>(
        self,
        number: usize,
        held: &'f mut (F, K),
        keep: L,
    ) -> &'static (F, K) {
        let (boxed, _, name) = self.boxed(number);
        let lent: &'static (F, K) = Box::leak(Box::new(self.boxes.take(boxed, held)));
        self.closure(number, name, &lent.0, keep);
        lent
    }

    #[inline(never)]
    fn boxed(self, number: usize) -> (usize, Keep, &'static str) {
        let lets = self.lets.borrow();
        match lets.iter().find(|l| l.number == number) {
            Some(Let { name, place: Place::Held(boxed, keep), .. }) => (*boxed, *keep, name),
            _ => unreachable!("generated code holds what it takes"),
        }
    }

    /// Moves the variable away.
    pub fn take<T: 'static>(self, number: usize, held: &'f mut T) -> T {
        self.boxes.take(self.boxed(number).0, held)
    }

    /// Lends the variable for good: what borrows it may live on then, and so it is never changed, moved or dropped any more.
    pub fn lend<T: Clone + 'static>(self, number: usize, held: &'f mut T) -> &'static T {
        let (boxed, _, name) = self.boxed(number);
        let lent: &'static T = Box::leak(Box::new(self.boxes.take(boxed, held)));
        let look: Look = |stored| stored.downcast_ref::<Lent<T>>().map(|lent| lent.0 as &dyn Any);
        let stored = Box::new(Lent(lent));
        self.set(number, name, Place::Lent(Loaned { stored, type_name: type_name::<T>(), look: Some(look) }));
        lent
    }

    /// Lends the variable to what lives on: whoever mentions the variable has it back, and what borrowed it ends.
    pub(super) fn lend_mut<T: 'static>(self, number: usize, held: &'f mut T, changes: bool) -> &'static mut T {
        let (boxed, _, name) = self.boxed(number);
        let look: Look = |stored| stored.downcast_ref::<Away<T>>().map(|away| away.look() as &dyn Any);
        self.lent_for_a_time(number, name, self.boxes.take(boxed, held), (!changes).then_some(look))
    }

    fn lent_for_a_time<T: 'static>(
        self,
        number: usize,
        name: &'static str,
        value: T,
        look: Option<Look>,
    ) -> &'static mut T {
        let (away, lent) = Away::new(value);
        let loaned = Loaned { stored: Box::new(away), type_name: type_name::<T>(), look };
        self.set(number, name, Place::Away(loaned));
        lent
    }

    /// Lends what borrows another one itself, on the same terms.
    pub fn lend_view<T: ?Sized + 'static>(self, number: usize, view: &mut T) -> &'static mut T {
        let (boxed, _, name) = self.boxed(number);
        match self.boxes.take_through(boxed, view) {
            Ok(reference) => self.lent_for_a_time::<&'static mut T>(number, name, reference, None),
            Err(owned) => self.lent_for_a_time::<Box<T>>(number, name, owned, None),
        }
    }

    /// As [`Holds::view`], for what only looks at what it borrows, of whatever type: generated code shortens that.
    pub fn looked_at<'a, T: 'static>(self, _: &'a Until, number: usize, name: &'static str, value: T) -> LookedAt<'a, T>
    where
        'f: 'a,
    {
        LookedAt::new(self.value(number, name, value))
    }

    pub fn take_looked_at<T: 'static, U>(self, number: usize, looked: LookedAt<'_, U>) -> T {
        self.boxes.take_looked_at(self.boxed(number).0, looked)
    }

    /// A variable that borrows another one which cells have back. The cell's code has it until that, or for as long as it runs, so that
    /// nothing else gets it.
    pub fn view<'a, T: View>(self, _: &'a Until, number: usize, name: &'static str, value: T) -> T::For<'a>
    where
        'f: 'a,
    {
        T::shorten(self.value(number, name, value))
    }

    /// A value for a variable that was moved away.
    pub fn again<T: 'static>(self, number: usize, value: T) -> &'f mut T {
        let (_, keep, name) = self.boxed(number);
        let (boxed, lent) = self.boxes.lend(Box::new(value));
        self.set(number, name, Place::Held(boxed, keep));
        lent
    }
}

fn keep_closure<F: 'static, K: FnOnce(F) + 'static>(_: &str, value: Box<dyn Any>) {
    let (closure, keep) = xlazy_core::sys::unbox::<(F, K)>(value);
    keep(closure);
}

/// Where a variable waits for what it is assigned, while its old value is in the making of it.
#[doc(hidden)]
pub struct Hole<'f, T>(Option<&'f mut T>);

impl<T> Default for Hole<'_, T> {
    fn default() -> Self {
        Hole(None)
    }
}

impl<'f, T: 'static> Hole<'f, T> {
    pub fn new() -> Hole<'f, T> {
        Hole::default()
    }

    pub(super) fn leave(&mut self, held: &'f mut T) {
        self.0 = Some(held);
    }

    pub fn fill(self, holds: Holds<'f>, number: usize, value: T) -> &'f mut T {
        match self.0 {
            Some(held) => {
                *held = value;
                held
            }
            None => holds.again(number, value),
        }
    }
}
