//! `cargo bench`: what the host pays per op.
fn main() {
    print!("{}", xlazy::bench::host().table());
}
