fn main() {
    println!("cargo::rustc-env=LEVEL={}", std::env::var("OPT_LEVEL").unwrap());
}
