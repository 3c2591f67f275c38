//! Passes arguments on to the linker of the binary: `cargo xtask dist` links it once more.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CODESPAR_LINK_ARGS");
    let args = std::env::var("CODESPAR_LINK_ARGS").unwrap_or_default();
    for arg in args.lines() {
        println!("cargo:rustc-link-arg-bin=codespar={arg}");
    }
}
