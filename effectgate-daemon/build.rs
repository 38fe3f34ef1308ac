//! Embeds the kernel object that `cargo xtask build` made. Without one the
//! crate still builds, checks and tests; only loading then says what is missing.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=EFFECTGATE_BPF_OBJECT");
    println!("cargo::rustc-check-cfg=cfg(kernel_object)");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let object = match env::var_os("EFFECTGATE_BPF_OBJECT") {
        Some(path) => {
            println!("cargo::rerun-if-changed={}", PathBuf::from(&path).display());
            // Tests of the object itself need one.
            println!("cargo::rustc-cfg=kernel_object");
            fs::read(&path).unwrap_or_else(|error| {
                panic!("EFFECTGATE_BPF_OBJECT names {}: {error}", PathBuf::from(&path).display())
            })
        }
        None => Vec::new(),
    };
    fs::write(out.join("effectgate.bpf.o"), object).expect("OUT_DIR is writable");
}
